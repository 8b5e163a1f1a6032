"""Choosing rows: those that teach most together, and those that can go."""

from localshapley.selection.chosen_rows import Chosen, Pruning, Selection
from localshapley.selection.comparing import Comparison
from localshapley.selection.selecting import prune, select

__all__ = ["Chosen", "Comparison", "Pruning", "Selection", "prune", "select"]
