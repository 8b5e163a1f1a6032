"""How good the model is with part of the rows: the best, all but the worst, or random ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Ints
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.models.estimator_checks import prepared, takes_kernel
from localshapley.models.input_checks import check
from localshapley.models.pipelines import transformed
from localshapley.runtime.argument_checks import check_n_jobs, check_whole
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.valuation import Valuation
from localshapley.valuation.table_matching import rows_and_labels

SCORES: dict[str, Callable[[AnyArray, AnyArray], float]] = {"accuracy": accuracy_score, "r2": r2_score}
CURVES = ("best first", "random", "worst removed first", "best removed first")


@dataclass(frozen=True, repr=False, eq=False)
class Curves:
    """Scores of the model on part of the rows.

    Attributes
    ----------
    table : DataFrame
        `curve`, `share` (of the rows added, or removed), `n_rows` (that the model was trained on), and of the score
        over the seeds `mean`, `low` (10 % are below) and `high` (10 % are above).
    score : str
    n_rows : int
        Number of all rows.
    """

    table: pd.DataFrame
    score: str
    n_rows: int

    def plot(self, ax: Any = None) -> Any:
        """Draw the curves with matplotlib; returns the axes."""
        from localshapley.valuation.plots import draw_curves

        return draw_curves(self, ax)

    def __repr__(self) -> str:
        means = self.table.groupby("curve")["mean"].mean()
        lines = [f"  {name:<20} {means[name]:.4f}" for name in CURVES]
        return "\n".join([f"Curves of {self.n_rows} rows, mean {self.score} over the shares", *lines])


def curves(
    valuation: Valuation,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    model: Any,
    score: str | Callable[[AnyArray, AnyArray], float] | None = None,
    shares: Iterable[float] | None = None,
    n_seeds: int = 10,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
) -> Curves:
    """Train the model on part of the rows, chosen by value, and score it on test rows.

    Good values rise fast when the best rows are added first, stay up when the worst are removed first and fall fast
    when the best are removed first; random rows are the reference. Test rows that the values were made with flatter
    them: use other test rows here.

    Parameters
    ----------
    valuation : Valuation
    X, y, X_test, y_test
        As in `value`: the rows that were valued, and rows to score on.
    model : scikit-learn estimator or name
        As in `value`. Where it refuses so few rows, their most frequent class, or their mean, is predicted instead.
    score : {"accuracy", "r2"} or callable, optional
        By default ``"accuracy"`` for a classifier, ``"r2"`` for a regressor; or a function
        `(y_true, y_predicted) -> float` of arrays, such as those of `sklearn.metrics`.
    shares : sequence of float, optional
        Shares of the rows that are added, or removed; by default 5 %, 10 %, ... 100 %.
    n_seeds : int, default=10
        Number of random orders; ties between rows of equal value are broken at random as often.
    seed : int, default=0
    n_jobs : int, optional
        Number of training processes; -1 uses every core.
    progress : bool or callable, optional
        As in `value`.

    Returns
    -------
    Curves

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> v = ls.value(X, y, X_test, y_test, model="knn")
    >>> found = ls.tasks.curves(v, X, y, X_test, y_test, model="knn", shares=[0.2, 0.4], n_seeds=2)
    >>> found.table["curve"].unique().tolist()
    ['best first', 'random', 'worst removed first', 'best removed first']
    """
    X, labels = rows_and_labels(valuation, X, y)
    checked = check(X, labels, X_test, y_test, model=model, seed=seed)
    before, last = checked.model.split()  # as in the valuation, steps before the last one are fitted once
    task = checked.task if before is None else transformed(checked.task, before)
    estimator = prepared(last.estimator, seed)
    classifier = is_classifier(estimator)
    name, measure = _score(score, classifier)
    if takes_kernel(estimator):
        raise InvalidArgumentError("model takes a precomputed kernel, which curves does not; give rows of features.")
    check_n_jobs(n_jobs)
    check_whole("n_seeds", n_seeds)
    plan = _plan(valuation.values, _counts(shares, len(labels)), int(n_seeds), seed)

    # Orders without ties are the same for every seed, and rows kept are those not removed: each set is trained once.
    # All rows come first, so that a model that cannot be trained is not mistaken for one that has too few rows.
    coalitions = {rows.tobytes(): rows for rows in [np.arange(len(labels)), *plan["rows"]]}
    train = SubsetScorer(estimator, task.X, labels, task.X_test, np.asarray(y_test), measure, classifier)
    with Progress(progress, len(coalitions), "training") as bar:
        found = {}
        results = Parallel(n_jobs, return_as="generator")(delayed(train)(rows) for rows in coalitions.values())
        for key, result in zip(coalitions, results, strict=True):
            found[key] = result
            bar.advance(1)
    plan["score"] = [found[rows.tobytes()] for rows in plan["rows"]]
    scores = plan.groupby(["curve", "share", "n_rows"], sort=False)["score"]
    table = scores.agg(mean="mean", low=lambda s: s.quantile(0.1), high=lambda s: s.quantile(0.9)).reset_index()
    return Curves(table, name, len(labels))


@dataclass(frozen=True)
class SubsetScorer:
    """Trains the model on some of the rows and scores it; can be sent to other processes."""

    estimator: Any
    X: Any
    y: AnyArray
    X_test: Any
    y_test: AnyArray
    measure: Callable[[AnyArray, AnyArray], float]
    classifier: bool

    def __call__(self, rows: Ints) -> float:
        """Score of the model that is trained on `rows`."""
        X, y = _safe_indexing(self.X, rows), self.y[rows]
        one_class = self.classifier and (y == y[0]).all()
        try:
            model = clone(self.fallback if one_class else self.estimator).fit(X, y)
            prediction = model.predict(self.X_test)
        except ValueError as error:
            if len(rows) == len(self.y):
                raise InvalidArgumentError(f"model cannot be trained on all of X and y: {error}") from error
            prediction = self.fallback.fit(X, y).predict(self.X_test)
        return float(self.measure(self.y_test, prediction))

    @property
    def fallback(self) -> Any:
        """What predicts where the model cannot be trained."""
        return DummyClassifier() if self.classifier else DummyRegressor()


def _score(score: Any, classifier: bool) -> tuple[str, Callable[[AnyArray, AnyArray], float]]:
    if score is None:
        score = "accuracy" if classifier else "r2"
    if callable(score):
        return getattr(score, "__name__", type(score).__name__), score
    if score not in SCORES:
        raise unknown_name("score", score, SCORES)
    if classifier != (score == "accuracy"):
        raise InvalidArgumentError(
            f"score {score!r} does not fit the model, which is a {'classifier' if classifier else 'regressor'}; "
            f"use {'accuracy' if classifier else 'r2'!r} or a function (y_true, y_predicted) -> float."
        )
    return score, SCORES[score]


def _counts(shares: Iterable[float] | None, n_rows: int) -> dict[float, int]:
    """Number of rows of each share."""
    given = np.arange(1, 21) / 20 if shares is None else np.asarray(list(shares), dtype=np.float64)
    if len(given) == 0 or not ((given > 0) & (given <= 1)).all():
        raise InvalidArgumentError(f"shares must be numbers above 0 and at most 1; got {shares!r}.")
    return {float(share): max(1, round(share * n_rows)) for share in np.unique(given)}


def _plan(values: AnyArray, counts: dict[float, int], n_seeds: int, seed: int) -> pd.DataFrame:
    """The rows to train on, for each curve, share and seed; nothing is trained where no row is left."""
    n_rows, plan = len(values), []
    for s in range(n_seeds):
        rng = np.random.default_rng([seed, s])
        best_first, shuffled = np.lexsort((rng.random(n_rows), -values)), rng.permutation(n_rows)
        for share, k in counts.items():
            kept = (best_first[:k], shuffled[:k], best_first[: n_rows - k], best_first[k:])
            plan += [(name, share, len(rows), np.sort(rows)) for name, rows in zip(CURVES, kept, strict=True)]
    table = pd.DataFrame(plan, columns=["curve", "share", "n_rows", "rows"])
    order = pd.Categorical(table["curve"], CURVES)
    return table[table["n_rows"] > 0].iloc[np.argsort(order.codes[table["n_rows"] > 0], kind="stable")]
