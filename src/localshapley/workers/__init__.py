"""Where coalitions are trained: in this process, in others, on a cluster."""

from localshapley.workers.bench import Bench, Memory, Receiver, Schedule
from localshapley.workers.pieces import Done, Scored, Work

__all__ = ["Bench", "Done", "Memory", "Receiver", "Schedule", "Scored", "Work"]
