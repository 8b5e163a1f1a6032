"""The result of a valuation: values, errors and cost, its file, its pictures."""

from localshapley.valuation.parts import Cost, Digests, History, Origin, Record
from localshapley.valuation.result import Valuation, load
from localshapley.valuation.skill import Skill

__all__ = ["Cost", "Digests", "History", "Origin", "Record", "Skill", "Valuation", "load"]
