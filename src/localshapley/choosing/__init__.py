"""Choosing rows: those that teach most together, and those that can go."""

from localshapley.choosing.comparing import Comparison
from localshapley.choosing.result import Chosen, Pruning, Selection
from localshapley.choosing.selecting import prune, select

__all__ = ["Chosen", "Comparison", "Pruning", "Selection", "prune", "select"]
