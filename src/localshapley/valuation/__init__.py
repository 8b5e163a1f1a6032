"""The result of a valuation: values, errors and cost, its file, its pictures."""

from localshapley.valuation.origin import Origin
from localshapley.valuation.result import Cost, History, Valuation, load

__all__ = ["Cost", "History", "Origin", "Valuation", "load"]
