"""Coalitions: which subsets are trained, in what order, and for which test rows each is scored."""

from localshapley.coalitions.batch import Batch, Coalitions, ListSchedule
from localshapley.coalitions.subsets import PivotSchedule, RetrainingSchedule, count_levels

__all__ = ["Batch", "Coalitions", "ListSchedule", "PivotSchedule", "RetrainingSchedule", "count_levels"]
