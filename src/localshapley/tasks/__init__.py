"""What values are good for: finding label errors, choosing rows, paying owners, explaining a prediction."""

from localshapley.tasks.curves import Curves, curves
from localshapley.tasks.explain import explain
from localshapley.tasks.owners import owners
from localshapley.tasks.select import select
from localshapley.tasks.suspects import suspects

__all__ = ["Curves", "curves", "explain", "owners", "select", "suspects"]
