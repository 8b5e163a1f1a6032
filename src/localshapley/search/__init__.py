"""Exact search for neighbours: the nearest rows, or all within a radius, whole or part by part."""

from localshapley.search.neighbours import nearest, nearest_others
from localshapley.search.radius import within
from localshapley.search.results import Neighbours, join, merge

__all__ = ["Neighbours", "join", "merge", "nearest", "nearest_others", "within"]
