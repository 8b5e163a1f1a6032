"""Whose values a result has, and what was valued, by contents."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from localshapley.arrays import Floats, Ints, Masks, Singles, singles
from localshapley.data.row_digests import Digests
from localshapley.errors import unknown_name

if TYPE_CHECKING:
    import pandas as pd

UNITS = ("row", "owner", "node")
"""What can be valued."""


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
