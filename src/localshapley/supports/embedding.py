"""Embeddings: neighbours in the space of a pretrained encoder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from localshapley.arrays import Indices
from localshapley.errors import InvalidArgumentError
from localshapley.inputs.numbers import check_whole
from localshapley.supports.base import Space, Support
from localshapley.supports.nearest import nearest_rows


@dataclass(frozen=True, repr=False)
class Embedding(Support):
    """The `n` training rows nearest to the test row in the space of an encoder.

    Parameters
    ----------
    encoder : torch module, callable, fitted transformer, or pair of arrays
        A torch module, which runs in evaluation mode, some rows at a time, on its own device; a function from rows (as
        the user gave them) to vectors; a fitted object with `transform`; or the vectors themselves, ``(of the training
        rows, of the test rows)``.
    n : int, default=20
    metric : str, default="euclidean"
    max_size : int, optional
    """

    encoder: Any
    n: int = 20
    _: KW_ONLY
    metric: Any = "euclidean"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("Embedding(n=...)", self.n)
        if isinstance(self.encoder, tuple | list):
            if len(self.encoder) != 2:
                raise InvalidArgumentError(
                    "Embedding(encoder=...) as arrays must be a pair (training vectors, test vectors); "
                    f"got {len(self.encoder)} of them."
                )
        elif isinstance(self.encoder, type):
            raise InvalidArgumentError(
                f"Embedding(encoder=...) is the class {self.encoder.__name__}; give a fitted instance of it."
            )
        elif hasattr(self.encoder, "transform"):
            try:
                check_is_fitted(self.encoder)
            except NotFittedError:
                raise InvalidArgumentError(
                    f"Embedding(encoder=...) must be fitted; {type(self.encoder).__name__} is not. "
                    "Fit it first, on rows that you do not value, or on X."
                ) from None
        elif not callable(self.encoder):
            raise InvalidArgumentError(
                "Embedding(encoder=...) must be a function, a fitted transformer or a pair of arrays; "
                f"got {type(self.encoder).__name__}."
            )

    @property
    def names_rows(self) -> bool:
        """Where the vectors themselves are given."""
        return isinstance(self.encoder, tuple | list)

    def __repr__(self) -> str:
        kind = "two arrays" if isinstance(self.encoder, tuple | list) else getattr(self.encoder, "__name__", None)
        return f"Embedding({kind or type(self.encoder).__name__}, n={self.n})"

    def find(self, space: Space) -> list[Indices]:
        """Find the nearest rows of every test row in the embedding."""
        if isinstance(self.encoder, tuple | list):
            encoded = tuple(self.encoder)
        else:
            encode = _encoding(self.encoder)
            encoded = (encode(space.raw), encode(space.raw_test))
        train, test = (_as_vectors(e) for e in encoded)
        for name, vectors, rows in (("training", train, space.raw), ("test", test, space.raw_test)):
            if vectors.shape[0] != np.shape(rows)[0]:
                raise InvalidArgumentError(
                    f"Embedding(encoder=...) gave {vectors.shape[0]} vectors for {np.shape(rows)[0]} {name} rows; "
                    "it must give one vector per row, in the same order."
                )
        if train.shape[1] != test.shape[1]:
            raise InvalidArgumentError(
                f"Embedding(encoder=...) gave vectors of {train.shape[1]} numbers for training rows and of "
                f"{test.shape[1]} for test rows; both must lie in one space."
            )
        return nearest_rows(train, test, self.n, self.metric)

    def larger(self) -> str:
        """A support twice as large."""
        return f"supports.Embedding(encoder, {2 * self.n})"


def _encoding(encoder: Any) -> Callable[[Any], Any]:
    """The function from rows to vectors."""
    torch = sys.modules.get("torch")  # if the encoder is a module, torch has been imported
    if torch is not None and isinstance(encoder, torch.nn.Module):
        from localshapley.inputs.encoding import encode

        return partial(encode, encoder)
    function: Callable[[Any], Any] = getattr(encoder, "transform", encoder)
    return function


def _as_vectors(encoded: Any) -> Any:
    if sparse.issparse(encoded):
        return encoded.tocsr()
    vectors = np.asarray(encoded, dtype=np.float64)
    vectors = vectors.reshape(len(vectors), -1)
    if not np.isfinite(vectors).all():
        raise InvalidArgumentError("Embedding(encoder=...) gave NaN or infinity; distances need finite vectors.")
    return vectors
