"""`python -m localshapley`."""

from localshapley.cli import main

main()
