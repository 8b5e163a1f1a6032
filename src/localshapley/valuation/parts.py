"""The parts of a result: its values and their errors, whose they are, what is known about them, and how it was made."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints, Masks, Singles, relative, singles
from localshapley.coalitions.exact import Levels
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.inputs.digests import Digests
from localshapley.inputs.numbers import as_numbers
from localshapley.models.skill import Skill

if TYPE_CHECKING:
    import pandas as pd

Pick: TypeAlias = Callable[[AnyArray], AnyArray]
"""Takes an array with an entry for each row to one of other rows: in another order, or among more."""
UNITS = ("row", "owner", "node")
"""What can be valued."""


@dataclass(frozen=True, eq=False)
class FinalEstimate:
    """The values of a run that is over, and what is known about their errors.

    Attributes
    ----------
    values : array of shape (n_rows,)
    stderr : array of shape (n_rows,)
    per_test : sparse array of shape (n_tests, n_rows) or None
    spread : array of shape (n_rows, 64) or None
    spread_tests : array of shape (n_rows, at most 64) or None
    spread_seed : array of shape (n_rows, seeds) or None
        As a `Valuation` has them.
    """

    values: Floats
    stderr: Floats
    per_test: sparse.csr_array | None = None
    spread: Singles | None = None
    spread_tests: Singles | None = None
    spread_seed: Singles | None = None

    def __post_init__(self) -> None:
        for name in ("values", "stderr"):
            object.__setattr__(self, name, as_numbers(name, getattr(self, name)))
        check_lengths(self, ("stderr", "spread", "spread_tests", "spread_seed"), len(self.values))
        if len(self.stderr) and self.stderr.min() < 0:
            raise InvalidArgumentError(f"stderr must be at least 0; got {self.stderr.min():g}.")

    def of_rows(self, pick: Pick, per_test: sparse.csr_array | None) -> FinalEstimate:
        """The same for other rows."""
        spreads = (None if one is None else pick(one) for one in (self.spread, self.spread_tests, self.spread_seed))
        return FinalEstimate(pick(self.values), pick(self.stderr), per_test, *spreads)


@dataclass(frozen=True, eq=False)
class Players:
    """Whose values these are.

    Attributes
    ----------
    ids : pandas Index or None
    unit : {"row", "owner", "node"}
    among : int or None
    digests : Digests or None
    oob_scores : array of shape (n_rows,) or None
        As a `Valuation` has them.
    """

    ids: pd.Index | None = None
    unit: str = "row"
    among: int | None = None
    digests: Digests | None = None
    oob_scores: Floats | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise unknown_name("unit", self.unit, UNITS)


@dataclass(frozen=True, eq=False)
class GameCounts:
    """How large the games were; kept in files, which games are not.

    Attributes
    ----------
    support_sizes : array of shape (n_tests,)
    n_tests : array of shape (n_rows,)
    levels : Levels or None
        Trainings of the paper's four levels, if they were counted.
    """

    support_sizes: Ints
    n_tests: Ints
    levels: Levels | None = None


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


def check_lengths(part: object, names: tuple[str, ...], n: int) -> None:
    """Refuse attributes that are known and have not as many entries as there are values."""
    for name in names:
        found = getattr(part, name)
        if found is not None and len(found) != n:
            raise InvalidArgumentError(f"{name} must have an entry for each of the {n} values; got {len(found)}.")


@dataclass(frozen=True)
class Cost:
    """What a valuation took.

    Attributes
    ----------
    trainer : str
        What trained the coalitions.
    trainings : int
        Coalitions trained; 0 where the model has a closed form.
    draws : int
        Coalitions scored, over all test rows (or classes of them, in a closed form); without reuse each would have
        been trained.
    distinct : int
        Distinct coalitions among them.
    reused : int
        Draws that needed no training of their own.
    trivial : int
        Trainings whose outcome was known: no row, or one class.
    seconds : float
    stored : int
        Coalitions that were found in a store, and needed no training.
    compile_seconds : float
        Additional time for compiling, once per machine.
    """

    trainer: str
    trainings: int
    draws: int
    distinct: int
    reused: int
    trivial: int
    seconds: float
    stored: int = 0
    compile_seconds: float = 0.0


@dataclass(frozen=True)
class Record:
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


@dataclass(frozen=True, eq=False)
class History:
    """How a sampled run arrived at its values, round by round.

    Attributes
    ----------
    trainings : array of shape (n_rounds,)
        Coalitions trained by the end of each round.
    values, stderr : arrays of shape (n_rounds, n_rows)
    """

    trainings: Ints
    values: Singles
    stderr: Singles

    def of_rows(self, pick: Pick) -> History:
        """The same for other rows."""
        return History(self.trainings, pick(self.values.T).T, pick(self.stderr.T).T)

    @property
    def relative_error(self) -> Floats:
        """`‖stderr‖ / ‖values‖` at the end of each round."""
        return np.array([relative(stderr, values) for stderr, values in zip(self.stderr, self.values, strict=True)])


@dataclass(frozen=True)
class Origin:
    """What was valued, by contents: enough to tell which of its games are still the same.

    Attributes
    ----------
    fingerprint : bytes
        Digest of model, score and conventions.
    rows, tests : uint64 arrays of shape (n_rows, 2) and (n_tests, 2)
        Digests of training and test rows with their labels.
    nothing : array of shape (n_tests,)
        Score of the empty coalition.
    apart : array with an entry for each of `per_test`, or empty if nothing was sampled
        Half the difference between what two halves of the draws say: what the draws' error is like.
    draws : float
        Coalitions scored for each test row, on average, if any were sampled.
    folds : array of shape (n_rows,), or empty
        The fold that each row tests, if there are folds and each row is in one.
    """

    fingerprint: bytes
    rows: Masks
    tests: Masks
    nothing: Floats
    apart: Singles = field(default_factory=lambda: np.empty(0, dtype=np.float32))
    folds: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    draws: float = 0.0

    def sampled(self, halves: Floats, draws: float) -> Origin:
        """The same with what is known of the errors, from values by two halves of the draws."""
        return replace(self, apart=singles((halves[0] - halves[1]) / 2), draws=draws)

    def to_text(self) -> bytes:
        """The origin as a text for the header of a file."""
        arrays = (
            self.rows.astype("<u8"),
            self.tests.astype("<u8"),
            self.nothing.astype("<f8"),
            self.folds.astype("<i8"),
            np.array([self.draws], dtype="<f8"),
        )
        parts = [self.fingerprint, *(array.tobytes() for array in arrays)]
        return json.dumps([b64encode(part).decode() for part in parts]).encode()

    @classmethod
    def from_text(cls, text: bytes) -> Origin:
        """Read what `to_text` wrote; an earlier version wrote neither folds nor draws."""
        parts = [b64decode(part, validate=True) for part in json.loads(text)]
        fingerprint, rows, tests, nothing, folds, draws = parts if len(parts) == 6 else (*parts, b"", bytes(8))
        return cls(
            fingerprint,
            np.frombuffer(rows, dtype="<u8").astype(np.uint64).reshape(-1, 2),
            np.frombuffer(tests, dtype="<u8").astype(np.uint64).reshape(-1, 2),
            np.frombuffer(nothing, dtype="<f8").astype(np.float64),
            folds=np.frombuffer(folds, dtype="<i8").astype(np.int64),
            draws=float(np.frombuffer(draws, dtype="<f8")[0]),
        )
