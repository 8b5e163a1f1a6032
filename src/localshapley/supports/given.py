"""Supports that come from no model: all rows, random rows, or the user's own lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from localshapley.arrays import Indices
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.argument_checks import check_whole
from localshapley.runtime.memory import check_memory
from localshapley.supports.base import Space, Support


@dataclass(frozen=True, repr=False)
class Everything(Support):
    """All training rows for every test row: the global game."""

    def find(self, space: Space) -> list[Indices]:
        """Give every test row all rows."""
        return [np.arange(space.X.shape[0], dtype=np.int32)] * space.X_test.shape[0]

    def larger(self) -> str:
        """There is none larger."""
        return "supports.Everything()"


@dataclass(frozen=True, repr=False)
class Random(Support):
    """`n` training rows drawn at random for each test row: the floor that a real support must beat.

    Parameters
    ----------
    n : int, default=20
    max_size : int, optional
    """

    n: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("Random(n=...)", self.n)

    @property
    def takes_parts(self) -> bool:
        """Always: no row is looked at."""
        return True

    def find(self, space: Space) -> list[Indices]:
        """Draw the rows of every test row; the same for the same seed."""
        rng = np.random.default_rng(space.seed)
        rows = space.X.shape[0]
        n = min(self.n, rows)
        check_memory(f"{self!r}", 4 * n * space.X_test.shape[0], "use a smaller n")
        return [rng.choice(rows, size=n, replace=False).astype(np.int32) for _ in range(space.X_test.shape[0])]

    def larger(self) -> str:
        """A support twice as large."""
        return f"supports.Random({2 * self.n})"

    def grown(self) -> Random:
        """The same with twice as many rows."""
        return replace(self, n=2 * self.n)


def _listed(lists: object) -> list[object]:
    return list(lists) if isinstance(lists, Iterable) else [None]


@dataclass(frozen=True, repr=False)
class Given(Support):
    """The user's own supports.

    Parameters
    ----------
    lists : sequence of lists of int
        For each test row the indices of its training rows, counted from 0.
    max_size : int, optional
    """

    lists: Sequence[Iterable[int]]

    @property
    def names_rows(self) -> bool:
        """Always: the lists are of one set of test rows."""
        return True

    @property
    def takes_parts(self) -> bool:
        """Always: no row is looked at."""
        return True

    def find(self, space: Space) -> list[Indices]:
        """Return the lists, one for each test row."""
        n_tests, n_rows = space.X_test.shape[0], space.X.shape[0]
        if isinstance(self.lists, str) or not all(isinstance(rows, Iterable) for rows in _listed(self.lists)):
            raise InvalidArgumentError(
                f"supports.Given must be a list with one list of row numbers for each test row; got {self.lists!r}."
            )
        if len(self.lists) != n_tests:
            raise InvalidArgumentError(
                f"supports.Given has {len(self.lists)} lists for {n_tests} test rows; give one for each."
            )
        found = []
        for t, rows in enumerate(self.lists):
            row = np.asarray(list(rows))
            if row.size and (row.ndim != 1 or row.dtype.kind not in "iu"):
                raise InvalidArgumentError(
                    f"supports.Given: the list of test row {t} must hold whole numbers; got {row.tolist()[:5]}."
                )
            outside = row[(row < 0) | (row >= n_rows)] if row.size else row
            if outside.size:
                raise InvalidArgumentError(
                    f"supports.Given: the list of test row {t} names row {outside[0]}, but the training rows are "
                    f"0 to {n_rows - 1}."
                )
            found.append(row.astype(np.int32))
        return found

    def larger(self) -> str:
        """Longer lists."""
        return "longer lists in supports.Given"
