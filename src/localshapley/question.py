"""What is asked: the arguments of a valuation, read and checked once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from localshapley.errors import unknown_name
from localshapley.methods import find_method
from localshapley.methods.limits import Limits
from localshapley.runtime.argument_checks import check_n_jobs
from localshapley.supports.base import Support
from localshapley.supports.given import Everything

AUTO = "auto"
"""The support that grows until it is large enough."""
T = TypeVar("T")
D = TypeVar("D", "TableInput", "GraphInput", "UtilityGame")
L = TypeVar("L", "TableInput", "GraphInput")
"""What has supports of its own, beside which there are global games."""


@dataclass(frozen=True, kw_only=True)
class TableInput:
    """Training rows and test rows, or folds of rows that test each other.

    `in_parts` says whether training rows may lie in parts, of which only those that are in some support are players.
    """

    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None
    cv: Any = None
    rare: str = "raise"
    owners: Any = None
    in_parts: bool = False

    def __post_init__(self) -> None:
        if self.rare not in ("raise", "drop"):
            raise unknown_name("rare", self.rare, ("raise", "drop"))


@dataclass(frozen=True, kw_only=True)
class GraphInput:
    """Nodes of a graph."""

    adjacency: Any
    X: Any
    y: Any
    train: Any
    test: Any
    games: str = "test"
    graph: str = "induced"
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class UtilityGame:
    """Players, the supports of test rows among them, and a utility."""

    supports: Iterable[Iterable[int]]
    utility: Any
    n_players: int | None = None
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class Question(Generic[D]):
    """What is asked: what is valued, by which model, with which supports and score, and how the games are played."""

    data: D
    limits: Limits
    model: Any = None
    support: Support | str | None = None
    score: Any = None
    empty: float | None = None
    n_jobs: int | None = None
    on_error: str = "raise"
    store: Any = None

    def __post_init__(self) -> None:
        check_n_jobs(self.n_jobs)
        if self.on_error not in ("raise", "skip"):
            raise unknown_name("on_error", self.on_error, ("raise", "skip"))

    @classmethod
    def of(cls, kind: type[D], given: Mapping[str, Any], **more: Any) -> Question[D]:
        """Read the arguments of a function, each by its name; others of the same call may be among them."""
        given = {**given, **more}
        limits = _made(Limits, {**given, "method": find_method(given.get("method", "auto"))})
        return _made(cls, {**given, "data": _made(kind, given), "limits": limits})

    @classmethod
    def of_rows(cls, X: Any, y: Any, X_test: Any = None, y_test: Any = None, **given: Any) -> Question[TableInput]:
        """Read arguments that are about rows of a table, of which those that are not given are as by default."""
        return Question.of(TableInput, given, X=X, y=y, X_test=X_test, y_test=y_test)

    @property
    def support_given(self) -> Any:
        """The support to find: all rows, if the method plays with all, or the one that was given."""
        return Everything() if self.limits.method.plays_all else self.support


def _made(kind: type[T], given: Mapping[str, Any]) -> T:
    """Return a record of those arguments that it has a place for."""
    return kind(**{place.name: given[place.name] for place in fields(kind) if place.name in given})  # type: ignore
