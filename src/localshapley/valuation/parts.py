"""What a result has besides its values: its cost, its history, its origin, and how it was made."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field, replace

import numpy as np

from localshapley.arrays import Floats, Ints, Masks, Singles, relative, singles


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
