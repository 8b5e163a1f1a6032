"""What a support is given, and what it gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

from localshapley.arrays import AnyArray, Indices
from localshapley.data.rows import extremes
from localshapley.errors import InvalidArgumentError
from localshapley.notes import Note
from localshapley.runtime.argument_checks import check_whole
from localshapley.search.nearest_rows import DEVICE
from localshapley.supports.chunked import ChunkedMatrix


@dataclass(frozen=True)
class Space:
    """The data that supports are found in.

    Attributes
    ----------
    X, X_test : array or CSR matrix of shape (n_rows, n_features)
        The rows in the space of the model: what a pipeline hands to its last step. Training rows that lie in parts are
        `ChunkedMatrix`.
    raw, raw_test : any
        The rows as the user gave them, or `ChunkedMatrix`.
    y : array of shape (n_rows,)
    reference : estimator
        The model (last step of the pipeline) trained on all rows.
    seed : int
    frames : tuple of two tables, optional
        The rows in the space of the model as frames, if that is how the model took them.
    """

    X: Any
    X_test: Any
    raw: Any
    raw_test: Any
    y: AnyArray
    reference: Any
    seed: int = 0
    frames: tuple[Any, Any] | None = None

    @property
    def tables(self) -> tuple[Any, Any]:
        """Rows and test rows in the form that the model took."""
        return (self.X, self.X_test) if self.frames is None else self.frames


class Supports(NamedTuple):
    """What a support found: the rows of every test row, and what a reader of the values should know about them."""

    of_tests: list[Indices]
    notes: Sequence[Note] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class Support(ABC):
    """A source of locality.

    Parameters
    ----------
    max_size : int, optional
        Keep at most this many rows of each support, the nearest ones.
    device : {"auto", "cpu", "cuda", "mps"} or torch device, default="auto"
        Where nearest rows are searched; ``"auto"`` is a CUDA GPU if there is one and much to do. Supports do not depend
        on it.
    """

    max_size: int | None = None
    device: Any = "auto"

    @property
    def reads_model(self) -> bool:
        """Whether it reads what the reference model has learnt, so that this must be trained on all rows."""
        return False

    @property
    def names_rows(self) -> bool:
        """Whether the support refers to particular rows, so that it cannot be used for the folds of a table."""
        return False

    @property
    def takes_parts(self) -> bool:
        """Whether it can be found in rows that lie in parts; `find` then gets `ChunkedMatrix`."""
        return False

    def __post_init__(self) -> None:
        check_whole(f"{type(self).__name__}(max_size=...)", self.max_size, optional=True)

    def __call__(self, space: Space) -> list[Indices]:
        """Find the support of every test row."""
        return self.search(space).of_tests

    def search(self, space: Space) -> Supports:
        """Find the support of every test row, with notes on what was found."""
        before = DEVICE.set(self.device)
        try:
            found = self.find(space)
        finally:
            DEVICE.reset(before)
        of_tests, notes = found if isinstance(found, Supports) else Supports(found)
        return Supports(of_tests if self.max_size is None else _nearest_first(of_tests, space, self.max_size), notes)

    def __repr__(self) -> str:
        settings = list[str]()
        for f in fields(self):
            if f.name in ("n", "r") or repr(getattr(self, f.name)) != repr(f.default):
                settings.append(f"{f.name}={getattr(self, f.name)!r}")
        return f"{type(self).__name__}({', '.join(settings)})"

    @abstractmethod
    def find(self, space: Space) -> list[Indices] | Supports:
        """Find the support of every test row, before any cap; with notes, if there is something to say."""

    @abstractmethod
    def larger(self) -> str:
        """Say which setting of this support makes it larger, as code to type."""

    def grown(self) -> Support | None:
        """The larger support that `larger` names; None if there is none, or only the user can say which."""
        return None


def _nearest_first(supports: list[Indices], space: Space, max_size: int) -> list[Indices]:
    """Cut supports to their `max_size` rows nearest to the test row (by Euclidean distance)."""
    if max((len(rows) for rows in supports), default=0) <= max_size:
        return supports
    check_finite(space, "max_size")
    X, out = space.X, []
    places: Sequence[AnyArray] = supports
    if isinstance(X, ChunkedMatrix):
        together = np.unique(np.concatenate(supports))
        X, places = X.gather(together), [np.searchsorted(together, rows) for rows in supports]
    for t, rows in enumerate(supports):
        if len(rows) > max_size:
            distance = pairwise_distances(X[places[t]], space.X_test[t : t + 1])[:, 0]
            rows = rows[np.argsort(distance, kind="stable")[:max_size]]
        out.append(rows)
    return out


def check_finite(space: Space, owner: str) -> None:
    """Refuse rows between which no distance is defined."""
    for name, X in (("X", space.X), ("X_test", space.X_test)):
        if not _is_finite(X):
            raise InvalidArgumentError(
                f"{owner} measures distances, but {name} has missing (NaN) or non-numeric values in the space of "
                "the model; put an imputer or encoder before the model in a Pipeline (one inside GridSearchCV or the "
                "like is too late), or give supports.Embedding or supports.Given."
            )


def are_finite(space: Space) -> bool:
    """Whether distances between the rows are defined."""
    return _is_finite(space.X) and _is_finite(space.X_test)


def _is_finite(X: Any) -> bool:
    if isinstance(X, ChunkedMatrix):
        return True  # looked at part by part
    values = np.asarray(X.data if sparse.issparse(X) else X)
    return values.dtype.kind in "biu" or (values.dtype.kind == "f" and bool(np.isfinite(extremes(values)).all()))
