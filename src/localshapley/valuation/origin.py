"""What a valuation is of."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass

import numpy as np

from localshapley.arrays import Floats, Masks


@dataclass(frozen=True)
class Origin:
    """What a valuation is of, by contents: enough to tell which of its games are still the same.

    Attributes
    ----------
    fingerprint : bytes
        Digest of model, score and conventions.
    rows, tests : uint64 arrays of shape (n_rows, 2) and (n_tests, 2)
        Digests of training and test rows with their labels.
    nothing : array of shape (n_tests,)
        Score of the empty coalition.
    """

    fingerprint: bytes
    rows: Masks
    tests: Masks
    nothing: Floats

    def to_text(self) -> bytes:
        """The origin as a text for the header of a file."""
        arrays = (self.rows.astype("<u8"), self.tests.astype("<u8"), self.nothing.astype("<f8"))
        parts = [self.fingerprint, *(array.tobytes() for array in arrays)]
        return json.dumps([b64encode(part).decode() for part in parts]).encode()

    @classmethod
    def from_text(cls, text: bytes) -> Origin:
        """Read what `to_text` wrote."""
        fingerprint, rows, tests, nothing = (b64decode(part, validate=True) for part in json.loads(text))
        return cls(
            fingerprint,
            np.frombuffer(rows, dtype="<u8").astype(np.uint64).reshape(-1, 2),
            np.frombuffer(tests, dtype="<u8").astype(np.uint64).reshape(-1, 2),
            np.frombuffer(nothing, dtype="<f8").astype(np.float64),
        )
