"""Choosing rows: those that teach most together, and those that can go."""

from localshapley.selection.chosen_rows import Pruning, RowOrder, Selection
from localshapley.selection.comparing import Comparison
from localshapley.selection.selecting import prune, select

__all__ = ["Comparison", "Pruning", "RowOrder", "Selection", "prune", "select"]
