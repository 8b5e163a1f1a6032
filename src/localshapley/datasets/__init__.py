"""Data sets with fixed splits, for examples, tests and experiments."""

from localshapley.datasets.bundled import NAMES, Dataset, load

__all__ = ["NAMES", "Dataset", "load"]
