"""What values are good for: choosing rows, paying owners, explaining predictions, and seeing what removal does."""

from localshapley.owners.shares import owners
from localshapley.selection.learning_curves import Curves, curves
from localshapley.selection.top_rows import select
from localshapley.valuation.explain import explain

__all__ = ["Curves", "curves", "explain", "owners", "select"]
