"""What comes of choosing rows: their order, what each one added, and how they compare with random rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.formatting import counted, printable
from localshapley.notes import Note
from localshapley.selection.comparing import CERTAIN, Comparison
from localshapley.selection.greedy_limits import TINY
from localshapley.valuation import Cost
from localshapley.valuation.result import range_of


@dataclass(frozen=True, repr=False, kw_only=True, eq=False)
class RowOrder:
    """Rows in an order, with what each of them changes; `Selection` and `Pruning` say what the order is.

    Attributes
    ----------
    order : int array of shape (n_chosen,)
        Positions of the rows in `X`.
    gains : array of shape (n_chosen,)
        What each row changed, when its turn came, in the summed score of the test rows; NaN where it was not measured.
    worth : array of shape (n_rows,)
        What each row of `X` alone teaches the test rows near it, beyond what is known without any row.
    start : float
        Mean score of the test rows before the first row of the order. Where numbers are selected, a test row with no
        row yet scores like the worst row of its support, if that is lower.
    n_rows, n_tests : int
    cost : Cost
    stopped : Note
        Why the order does not go on by gain.
    model, score, support : str
    support_sizes : int array of shape (n_tests,)
    ids : pandas Index
        Names of all rows.
    labels : array of shape (n_rows,) or None
        Labels of all rows, if they are classes.
    notes : list of Note
    """

    order: Ints
    gains: Floats
    worth: Floats
    start: float
    n_rows: int
    n_tests: int
    cost: Cost
    stopped: Note
    model: str
    score: str
    support: str
    support_sizes: Ints
    ids: pd.Index
    labels: AnyArray | None
    notes: list[Note]
    compare: Callable[..., Comparison] = field(repr=False)

    @property
    def index(self) -> pd.Index:
        """Names of the rows, in their order."""
        return self.ids[self.order]

    @property
    def scores(self) -> Floats:
        """Mean score of the test rows after each row, as far as it was measured."""
        return self.start + np.cumsum(self.gains) / self.n_tests

    def to_frame(self) -> pd.DataFrame:
        """One line per row, in their order: `position`, `gain`, `worth` and, of classes, `label`."""
        table = pd.DataFrame(
            {"position": self.order, "gain": self.gains, "worth": self.worth[self.order]}, index=self.index
        )
        return table if self.labels is None else table.assign(label=self.labels[self.order])

    def curve(
        self,
        shares: Any = None,
        *,
        folds: int = 5,
        n_random: int = 10,
        seed: int = 0,
        n_jobs: int | None = None,
        progress: Any = None,
    ) -> Comparison:
        """Score the model on part of the rows, beside as many random rows, on rows that were not used to choose.

        The test rows are cut into folds. For each fold rows are chosen again, by the other folds alone, and the model
        is trained on them and scored on the fold. Without test rows (`cv`) the rows themselves are cut, and chosen from
        the other folds. So nothing is scored on what it was chosen by, at the cost of choosing `folds` times.

        Parameters
        ----------
        shares : sequence of float, optional
            Shares of the rows that the model is trained on; by default 2.5, 5, 10, 20, 30 and 50 %.
        folds : int, default=5
        n_random : int, default=10
            Number of random orders.
        seed : int, default=0
        n_jobs : int, optional
            Number of training processes; -1 uses every core.
        progress : bool or callable, optional
            As in `value`.

        Returns
        -------
        Comparison
        """
        return self.compare(shares, folds=folds, n_random=n_random, seed=seed, n_jobs=n_jobs, progress=progress)

    def _lines(self, title: str, about: list[str]) -> str:
        cost = self.cost
        return "\n".join(
            [
                title,
                f"  model    {self.model}",
                f"  score    {self.score}, mean over {counted(self.n_tests, 'test row')}",
                f"  support  {self.support}: {range_of(self.support_sizes)} rows",
                f"  cost     {counted(cost.trainings, 'training')} in {cost.seconds:.2f} s",
                f"  stopped  {self.stopped}",
                *about,
                *(f"  note     {note}" for note in self.notes),
            ]
        )

    def _classes(self) -> str:
        """How many rows of each class there are in the order."""
        assert self.labels is not None
        names, counts = np.unique(self.labels[self.order], return_counts=True)
        listed = [f"{printable(str(name))}: {count}" for name, count in zip(names, counts, strict=True)]
        return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "")


@dataclass(frozen=True, repr=False, kw_only=True, eq=False)
class Selection(RowOrder):
    """Rows in the order in which they were taken: `table.loc[chosen.index]` gives them.

    Each of the first `n_gained` rows was the one of its class that added most to what the rows before it teach. After
    them nothing more is gained, and rows follow at random with the classes in balance; those that do harm come last.
    Gains are those in the supports of the result, also of the first rows, which larger ones chose.

    Attributes
    ----------
    order, gains, worth, start, n_rows, n_tests, cost, stopped, model, score, support, support_sizes, \
    ids, labels, notes
        As in `RowOrder`: `gains` are NaN after the first `n_gained` rows.
    stderr : array of shape (n_chosen,)
        Standard error of each gain over the test rows: how far it would be another with others. That the row was chosen
        for its gain on these is not in it.
    """

    stderr: Floats

    @property
    def n_gained(self) -> int:
        """Number of rows that were taken by gain."""
        return int((~np.isnan(self.gains)).sum())

    @property
    def n_sure(self) -> int:
        """How many of them added more than two standard errors over the test rows."""
        return int((self.gains > CERTAIN * self.stderr).sum())

    def to_frame(self) -> pd.DataFrame:
        """One line per row, in their order: `position`, `gain` and its `stderr`, `worth` and, of classes, `label`."""
        table = super().to_frame()
        table.insert(2, "stderr", self.stderr)
        return table

    def __repr__(self) -> str:
        n, gained = len(self.order), self.n_gained
        about = []
        if gained:
            about.append(f"  gained   {_text(self.start)} → {_text(self.scores[gained - 1])} with {_first(gained)}")
            about.append(f"  sure     {self.n_sure:,} of these gains, beyond two standard errors over the test rows")
        if n > gained:
            balance = "" if self.labels is None else ", classes in balance"
            about.append(f"  others   {counted(n - gained, 'row')} at random{balance}, harmful ones last")
        if self.labels is not None:
            about.append(f"  classes  {self._classes()}")
        return self._lines(f"Selection of {n:,} of {self.n_rows:,} rows", about)


@dataclass(frozen=True, repr=False, kw_only=True, eq=False)
class Pruning(RowOrder):
    """Rows in the order in which they can go: `table.drop(pruned.index)` gives the others.

    Attributes
    ----------
    order, gains, worth, start, n_rows, n_tests, cost, stopped, model, score, support, support_sizes, \
    ids, labels, notes
        As in `RowOrder`: `start` is the mean score with all rows, and a gain below zero is a loss.
    """

    @property
    def n_free(self) -> int:
        """How many of the rows can go, in their order, without a loss."""
        total = np.cumsum(self.gains)
        tiny = TINY * max(float(np.abs(self.gains).max(initial=0.0)), abs(self.start))
        enough = np.flatnonzero(total >= -tiny)
        return int(enough[-1]) + 1 if len(enough) else 0

    @property
    def n_best(self) -> int:
        """How many have gone where the score is highest; the first of several such places."""
        total = np.cumsum(self.gains)
        return int(total.argmax()) + 1 if total.max() > 0 else 0

    @property
    def kept(self) -> pd.Index:
        """Names of the rows that are left, in the order of `X`."""
        return self.ids[np.setdiff1d(np.arange(self.n_rows), self.order)]

    def __repr__(self) -> str:
        n, free, best = len(self.order), self.n_free, self.n_best
        about = [f"  free     {counted(free, 'row')} can go without a loss on these test rows; curve() tries others"]
        if best:
            gained = f"  gained   {_text(self.start)} → {_text(self.scores[best - 1])} without {_first(best)}"
            about.append(f"{gained}, index[:{best}]")
        if n > free:
            about.append(f"  lost     {_text(self.start)} → {_text(self.scores[-1])} without {_first(n)}")
        if self.labels is not None:
            about.append(f"  classes  {self._classes()}")
        return self._lines(f"Pruning: the order in which {n:,} of {self.n_rows:,} rows can go", about)


def _text(score: float) -> str:
    return f"{score:.4g}"


def _first(n: int) -> str:
    return "the first row" if n == 1 else f"the first {n:,} rows"
