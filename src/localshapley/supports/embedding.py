"""Embeddings: neighbours in the space of an encoder, or of the model itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from localshapley.arrays import Indices
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.argument_checks import check_whole
from localshapley.supports.base import Space, Support
from localshapley.supports.chunked import ChunkedMatrix, nearest_rows


@dataclass(frozen=True, repr=False)
class Embedding(Support):
    """The `n` training rows nearest to the test row in the space of an encoder.

    Parameters
    ----------
    encoder : torch module, callable, fitted transformer, or pair of arrays, optional
        A torch module, which runs in evaluation mode, some rows at a time, on its own device; a function from rows (as
        the user gave them) to vectors; a fitted object with `transform`; or the vectors themselves, ``(of the training
        rows, of the test rows)``. By default what the last layer of a `models.Network` gets to see, after training on
        all rows.
    n : int, default=20
    metric : str, default="euclidean"
    max_size : int, optional
    """

    encoder: Any = None
    n: int = 20
    _: KW_ONLY
    metric: Any = "euclidean"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("Embedding(n=...)", self.n)
        if self.encoder is None:
            return
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
    def reads_model(self) -> bool:
        """Where the space is that of the model."""
        return self.encoder is None

    @property
    def takes_parts(self) -> bool:
        """Where there is an encoder, or the vectors themselves."""
        return self.encoder is not None

    @property
    def names_rows(self) -> bool:
        """Where the vectors themselves are given."""
        return isinstance(self.encoder, tuple | list)

    def __repr__(self) -> str:
        if self.encoder is None:
            return f"Embedding(n={self.n})"
        kind = "two arrays" if isinstance(self.encoder, tuple | list) else getattr(self.encoder, "__name__", None)
        return f"Embedding({kind or type(self.encoder).__name__}, n={self.n})"

    def find(self, space: Space) -> list[Indices]:
        """Find the nearest rows of every test row in the embedding."""
        if self.encoder is None:
            embed = _embedding_of(space.reference)
            encoded: tuple[Any, ...] = (embed(space.X), embed(space.X_test))
        elif isinstance(self.encoder, tuple | list):
            encoded = tuple(self.encoder)
        else:
            encode = _encoding(self.encoder)
            if isinstance(space.raw, ChunkedMatrix):
                test = _as_vectors(encode(space.raw_test))
                vectors = space.raw.encoded(_Vectors(encode), test.shape[1])
                return nearest_rows(vectors, test, self.n, self.metric)
            encoded = (encode(space.raw), encode(space.raw_test))
        train, test = (_as_vectors(e) for e in encoded)
        for name, vectors, rows in (("training", train, space.raw), ("test", test, space.raw_test)):
            n_rows = rows.shape[0] if isinstance(rows, ChunkedMatrix) else np.shape(rows)[0]
            if vectors.shape[0] != n_rows:
                raise InvalidArgumentError(
                    f"Embedding(encoder=...) gave {vectors.shape[0]} vectors for {n_rows} {name} rows; "
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
        return f"supports.Embedding({'n=' if self.encoder is None else 'encoder, '}{2 * self.n})"

    def grown(self) -> Embedding:
        """The same with twice as many rows."""
        return replace(self, n=2 * self.n)


def _embedding_of(model: Any) -> Callable[[Any], Any]:
    """What gives the embedding of a trained model."""
    if not hasattr(model, "embed"):
        raise InvalidArgumentError(
            f"supports.Embedding() without an encoder needs a models.Network; {type(model).__name__} has no embedding. "
            "Give Embedding(encoder), or supports.Nearest(n)."
        )
    function: Callable[[Any], Any] = model.embed
    return function


def _encoding(encoder: Any) -> Callable[[Any], Any]:
    """The function from rows to vectors."""
    torch = sys.modules.get("torch")  # if the encoder is a module, torch has been imported
    if torch is not None and isinstance(encoder, torch.nn.Module):
        from localshapley.data.encoding import encode

        return partial(encode, encoder)
    function: Callable[[Any], Any] = getattr(encoder, "transform", encoder)
    return function


@dataclass(frozen=True)
class _Vectors:
    """From rows to vectors, in a form that travels to other processes."""

    encode: Callable[[Any], Any]

    def __call__(self, rows: Any) -> Any:
        return _as_vectors(self.encode(rows))


def _as_vectors(encoded: Any) -> Any:
    if sparse.issparse(encoded):
        return encoded.tocsr()
    vectors = np.asarray(encoded, dtype=np.float64)
    vectors = vectors.reshape(len(vectors), -1)
    if not np.isfinite(vectors).all():
        raise InvalidArgumentError("Embedding(encoder=...) gave NaN or infinity; distances need finite vectors.")
    return vectors
