"""Chosen rows beside random ones, on rows that were not used to choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.data.folds import make_folds
from localshapley.data.rows import known_table
from localshapley.errors import InvalidArgumentError
from localshapley.models.estimator_checks import prepared, takes_kernel
from localshapley.models.input_checks import check
from localshapley.question import TableInput
from localshapley.runtime.argument_checks import check_n_jobs, check_whole
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.selection.learning_curves import SCORES, SubsetScorer

SHARES = (0.025, 0.05, 0.1, 0.2, 0.3, 0.5)
CERTAIN = 2.0
"""Standard errors that a difference must have to count as one."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Scores of the model with chosen rows and with as many random ones.

    Attributes
    ----------
    table : DataFrame
        For each `share` of the rows: `n_rows` that the model was trained on, its mean `score` over the folds, that with
        `random` rows and their `spread` (standard deviation over the random orders), the `difference` between both and
        its `stderr` over the folds.
    score : {"accuracy", "r2"}
    all_rows : float
        Score with all rows.
    removed : bool
        Whether the share is left out; else the model is trained on it.
    """

    table: pd.DataFrame
    score: str
    all_rows: float
    removed: bool

    @property
    def verdict(self) -> str:
        """Where choosing helps, in words."""
        sure = self.table["difference"].abs() > CERTAIN * self.table["stderr"]
        better, worse = sure & (self.table["difference"] > 0), sure & (self.table["difference"] < 0)
        chosen, others = "chosen rows do", "random rows do"
        if self.removed:
            chosen, others = "leaving chosen rows out does", "leaving random rows out does"
        found = {
            f"{chosen} better than {others.rpartition(' ')[0]}": better,
            f"{others} as well": ~(better | worse),
            f"{others} better": worse,
        }
        told = [f"{text} {_where(self.table['share'], where)}" for text, where in found.items() if where.any()]
        return "; ".join(told) + "."

    def __repr__(self) -> str:
        table = self.table.round(3).assign(share=[f"{100 * share:g} %" for share in self.table["share"]])
        what = "Left out" if self.removed else "Chosen"
        return (
            f"{what} and random rows, mean {self.score} on rows that were not used to choose\n"
            f"{table.to_string(index=False)}\nwith all rows: {self.all_rows:.3f}\n{self.verdict}"
        )


def _where(shares: pd.Series[float], where: pd.Series[bool]) -> str:
    """Some of the shares, in words."""
    names, n = [f"{100 * share:g} %" for share in shares[where]], len(shares)
    if len(names) == n:
        return "at every share"
    if len(names) > 1 and where[: len(names)].all():
        return f"up to {names[-1]}"
    if len(names) > 1 and where[n - len(names) :].all():
        return f"from {names[0]} on"
    return f"at {', '.join(names)}"


def compare(
    data: TableInput,
    model: Any,
    choose: Callable[..., Ints],
    removed: bool,
    shares: Iterable[float] | None = None,
    *,
    folds: int = 5,
    n_random: int = 10,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
) -> Comparison:
    """Choose rows by all folds but one, and score on that one, each in turn.

    Parameters
    ----------
    data : TableInput
        What rows were chosen from.
    model
        As the user gave it.
    choose : callable
        `choose(X, y, X_test, y_test, cv=, n=)` gives the positions of `n` rows in their order.
    removed : bool
        Whether these rows are to go.
    shares, folds, n_random, seed, n_jobs, progress
        As in `Selection.curve`.
    """
    check_n_jobs(n_jobs)
    check_whole("n_random", n_random)
    wanted = _checked(SHARES if shares is None else shares)
    parts, scores, of_all, name = list(_parts(data, folds, seed)), [], [], ""
    sizes: list[int] = []
    with Progress(progress, len(parts) * (1 + len(wanted) * (1 + n_random)), "comparing with random rows") as bar:
        for number, (X, y, tests, cv, held) in enumerate(parts):
            train, name = _training(model, X, y, *held, seed)
            counts = [max(1, round(share * len(y))) for share in wanted]
            rng = np.random.default_rng([seed, number])
            orders = [choose(X, y, *tests, cv=cv, n=max(counts))]
            orders += [rng.permutation(len(y)) for _ in range(n_random)]
            used = [np.arange(len(y)), *(_used(order[:k], len(y), removed) for order in orders for k in counts)]
            found = []
            for score in Parallel(n_jobs, return_as="generator")(delayed(train)(rows) for rows in used):
                found.append(score)
                bar.advance(1)
            of_all.append(found[0])
            scores.append(np.reshape(found[1:], (len(orders), len(counts))))
            sizes = [len(rows) for rows in used[1 : 1 + len(counts)]]
    return Comparison(_table(wanted, sizes, np.array(scores)), name, float(np.mean(of_all)), removed)


def _used(rows: Ints, n_rows: int, removed: bool) -> Ints:
    """The rows to train on."""
    return np.setdiff1d(np.arange(n_rows), rows) if removed else np.sort(rows)


def _parts(
    data: TableInput, folds: int, seed: int
) -> Iterator[tuple[Any, AnyArray, tuple[Any, Any], Any, tuple[Any, Any]]]:
    """Rows and labels, test rows and folds to choose by, and rows to score on."""
    X, y, X_test = known_table(data.X), np.asarray(data.y), known_table(data.X_test)
    if data.cv is None:
        y_test = np.asarray(data.y_test)
        for rest, held in _folds(folds, y_test, seed):
            tests, scored = (
                (_safe_indexing(X_test, rest), y_test[rest]),
                (_safe_indexing(X_test, held), y_test[held]),
            )
            yield X, y, tests, None, scored
        return
    for rest, held in _folds(folds, y, seed):
        yield _safe_indexing(X, rest), y[rest], (None, None), data.cv, (_safe_indexing(X, held), y[held])


def _folds(folds: int, labels: AnyArray, seed: int) -> list[tuple[Ints, Ints]]:
    """Folds with the classes in proportion, where each class is large enough."""
    check_whole("folds", folds, least=2)
    counts = np.unique(labels, return_counts=True)[1]
    return make_folds(folds, labels, classifier=bool(counts.min() >= folds), seed=seed)


def _checked(shares: Iterable[float]) -> Floats:
    given = np.unique(np.asarray(list(shares), dtype=np.float64))
    if len(given) == 0 or not ((given > 0) & (given < 1)).all():
        raise InvalidArgumentError(f"shares must be numbers between 0 and 1; got {shares!r}.")
    return given


def _training(model: Any, X: Any, y: AnyArray, X_held: Any, y_held: AnyArray, seed: int) -> tuple[SubsetScorer, str]:
    """Trains the whole model on some of the rows, and the name of its score."""
    checked = check(X, y, X_held, y_held, model=model, seed=seed)
    estimator = checked.model.estimator
    if takes_kernel(estimator):
        raise InvalidArgumentError("model takes a precomputed kernel, which curve does not; give rows of features.")
    name, task = "accuracy" if is_classifier(estimator) else "r2", checked.task
    classifier = name == "accuracy"
    return SubsetScorer(prepared(estimator, seed), task.X, y, task.X_test, y_held, SCORES[name], classifier), name


def _table(shares: Floats, sizes: list[int], scores: Floats) -> pd.DataFrame:
    """Means over folds; `scores` has an axis for folds, one for orders (the chosen one first), and one for shares."""
    chosen, random = scores[:, 0], scores[:, 1:]
    difference = chosen - random.mean(axis=1)
    return pd.DataFrame(
        {
            "share": shares,
            "n_rows": sizes,
            "score": chosen.mean(axis=0),
            "random": random.mean(axis=(0, 1)),
            "spread": random.mean(axis=0).std(axis=0),
            "difference": difference.mean(axis=0),
            "stderr": difference.std(axis=0, ddof=1) / np.sqrt(len(difference)),
        }
    )
