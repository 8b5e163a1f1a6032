"""`python -m localshapley.cli`."""

from localshapley.cli import main

main()
