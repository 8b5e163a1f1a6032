"""The result of a valuation: values, errors and cost, its file, its pictures."""

from localshapley.inputs.digests import Digests
from localshapley.models.skill import Skill
from localshapley.valuation.parts import Cost, Facts, FinalEstimate, GameCounts, History, Origin, Players, Record
from localshapley.valuation.result import Valuation, load

__all__ = [
    "Cost",
    "Digests",
    "Facts",
    "FinalEstimate",
    "GameCounts",
    "History",
    "Origin",
    "Players",
    "Record",
    "Skill",
    "Valuation",
    "load",
]
