"""The result of a valuation: values, errors and cost, its file, its pictures."""

from localshapley.data.row_digests import Digests
from localshapley.engine.executor import Cost
from localshapley.engine.run_result import FinalEstimate, History
from localshapley.models.skill import Skill
from localshapley.problem.players import GameDigests, Players
from localshapley.valuation.facts import Facts, GameCounts, Provenance
from localshapley.valuation.result import Valuation, load

__all__ = [
    "Cost",
    "Digests",
    "Facts",
    "FinalEstimate",
    "GameCounts",
    "GameDigests",
    "History",
    "Players",
    "Provenance",
    "Skill",
    "Valuation",
    "load",
]
