"""What is known about a valuation beside its values: how large the games were, what was valued, how it was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from localshapley.arrays import Ints
from localshapley.coalitions.subsets import TrainingCounts
from localshapley.models.skill import Skill


@dataclass(frozen=True, eq=False)
class GameCounts:
    """How large the games were; kept in files, which games are not.

    Attributes
    ----------
    support_sizes : array of shape (n_tests,)
    n_tests : array of shape (n_rows,)
    levels : TrainingCounts or None
        Trainings of the paper's four levels, if they were counted.
    """

    support_sizes: Ints
    n_tests: Ints
    levels: TrainingCounts | None = None


@dataclass(frozen=True)
class Facts:
    """What was valued, and how.

    Attributes
    ----------
    model, score, support, method : str
    chosen : str
    is_random : bool
    skill : Skill, a function that finds it out, or None
        As a `Valuation` has them.
    """

    model: str
    score: str
    support: str
    method: str
    chosen: str = ""
    is_random: bool = False
    skill: Skill | Callable[[], Skill | None] | None = None

    def known_skill(self) -> Skill | None:
        """Return how good the model is; found out when first asked for."""
        return self.skill() if callable(self.skill) else self.skill

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "skill": self.known_skill()}  # a copy elsewhere has no rows to find it out with


@dataclass(frozen=True)
class Provenance:
    """How a valuation was made; nothing of it is part of the values, which the same call gives again, bit for bit.

    Attributes
    ----------
    version : str
        Of this package.
    date : str
        When it was finished, in UTC, such as ``"2026-03-31T09:30:00+00:00"``.
    call : str
        The call in Python, with data under the names of their arguments, or the command line.
    seed : int or None
    limits : dict of str
        What could end the run, as text: those of `tol`, `budget`, `stop` and `max_seconds` that were given, and the
        default `tol` where none was.
    """

    version: str
    date: str
    call: str
    seed: int | None = None
    limits: dict[str, str] = field(default_factory=dict)
