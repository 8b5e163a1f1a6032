"""Exact search for neighbours: the nearest rows, or all within a radius, whole or part by part."""

from localshapley.search.nearest_rows import nearest, nearest_others
from localshapley.search.results import Neighbours, join, merge
from localshapley.search.within_radius import within

__all__ = ["Neighbours", "join", "merge", "nearest", "nearest_others", "within"]
