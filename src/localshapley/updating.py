"""Values of changed data: only games whose support has changed are played again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from localshapley.arrays import Floats
from localshapley.engine import solve
from localshapley.errors import InvalidArgumentError
from localshapley.methods import Method, read_settings
from localshapley.models.boosted import BoostedTrainer
from localshapley.models.fixed import FixedTrainer
from localshapley.problem.base import RowsProblem
from localshapley.problem.posing import pose
from localshapley.progress import ProgressSetting
from localshapley.stopping import Rule
from localshapley.store.replay import StoreSetting
from localshapley.supports.base import Support
from localshapley.valuation import Valuation


def update(
    valuation: Valuation,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    model: Any,
    support: Support | None = None,
    score: Any = None,
    method: str | Method = "auto",
    budget: int | None = None,
    tol: float | None = None,
    stop: Rule | None = None,
    max_seconds: float | None = None,
    empty: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
    store: StoreSetting = None,
    on_error: str = "raise",
    on_interrupt: str = "raise",
) -> Valuation:
    """Value changed data: test rows whose support is unchanged keep their values, the others are played again.

    Rows may have been added, removed or moved, in training and test data; they are recognised by their contents. The
    cost of the result is that of the games that were played.

    Parameters
    ----------
    valuation : Valuation
        The valuation so far: exact, with ``per_test=True``.
    X, y, X_test, y_test
        All of the data as it is now.
    model, support, score, method, budget, tol, stop, max_seconds, empty, seed, n_jobs, progress, store, on_error, \
    on_interrupt
        As in `value`; model, score and `empty` must be those of the valuation.

    Returns
    -------
    Valuation

    Examples
    --------
    >>> import localshapley as ls
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> settings = dict(model=DecisionTreeClassifier(), support=ls.supports.Nearest(8), method="exact")
    >>> v = ls.value(X[:-1], y[:-1], X_test, y_test, per_test=True, **settings)
    >>> w = ls.update(v, X, y, X_test, y_test, **settings)
    >>> w.cost.trainings < v.cost.trainings
    True
    """
    settings = read_settings(method, budget, tol, stop, max_seconds, seed, progress, True, on_interrupt)
    if valuation.per_test is None or valuation.origin is None:
        raise InvalidArgumentError(
            "valuation lacks the values of its test rows; make it with value(..., per_test=True), or run value() with "
            "store=... again, which trains only what is new."
        )
    if valuation.stderr.any():
        raise InvalidArgumentError(
            "valuation is sampled, and values that were estimated together cannot be kept one by one; run value() with "
            "the same store=... again, which trains only what is new."
        )
    problem = pose(
        X,
        y,
        X_test,
        y_test,
        model=model,
        support=settings.method.support(support),
        score=score,
        empty=empty,
        seed=seed,
        n_jobs=n_jobs,
        on_error=on_error,
        progress=progress,
    )
    if isinstance(problem.trainer, FixedTrainer | BoostedTrainer):
        raise InvalidArgumentError(
            "update() cannot keep values of models.Fixed: changed rows grow other trees, so every value may change. "
            "Run value() again; it takes about the time of a fit."
        )
    if problem.origin.fingerprint != valuation.origin.fingerprint:
        raise InvalidArgumentError(
            "valuation was made with another model, score, set of classes or version of the software; its values "
            "cannot be mixed with new ones. Run value() instead."
        )
    graph, kept = problem.graph, _kept_values(valuation, problem)
    unchanged = len(kept)
    # Test rows that keep their values take part with an empty support, which costs nothing.
    supports = [np.empty(0, dtype=np.int32) if t in kept else graph.support(t) for t in range(graph.n_tests)]
    played = solve(replace(problem, graph=graph.with_supports(supports)), settings, store)
    assert played.per_test is not None
    for t, start in enumerate(played.per_test.indptr[:-1]):
        kept.setdefault(t, played.per_test.data[start : played.per_test.indptr[t + 1]])
    by_test = np.concatenate([kept[t] for t in range(graph.n_tests)])
    bundles = graph.bundles
    assert bundles is not None
    by_bundle = bundles.sums(graph.N, by_test, bundles.of_test)
    return replace(
        played,
        spread_tests=bundles.spread(by_bundle[None], by_draws=played.stderr**2),
        values=graph.values(by_test),
        per_test=graph.matrix(by_test),
        support_sizes=graph.support_sizes,
        n_tests=graph.tests_per_player,
        games=graph,
        counted=None,
        origin=problem.origin,
        notes=[
            *played.notes,
            f"{unchanged} of {graph.n_tests} test rows kept their values, {graph.n_tests - unchanged} were "
            "played again.",
        ],
    )


def _kept_values(valuation: Valuation, problem: RowsProblem) -> dict[int, Floats]:
    """Values of the players of each test row whose support has not changed since an exact valuation."""
    before, matrix = valuation.origin, valuation.per_test
    origin, graph = problem.origin, problem.graph
    assert before is not None
    assert matrix is not None
    place = {key.tobytes(): t for t, key in enumerate(before.tests)}
    kept = {}
    for t in range(graph.n_tests):
        old, players = place.get(origin.tests[t].tobytes()), graph.support(t)
        if old is None:
            continue
        start, stop = matrix.indptr[old], matrix.indptr[old + 1]
        was, now = before.rows[matrix.indices[start:stop]], origin.rows[players]
        was_order, now_order = np.lexsort(was.T), np.lexsort(now.T)
        if len(was) == len(now) and (was[was_order] == now[now_order]).all():
            values = np.empty(len(now))
            values[now_order] = matrix.data[start:stop][was_order]
            # Only the prediction of a model that has learnt nothing may have changed.
            kept[t] = values + (before.nothing[old] - origin.nothing[t]) / max(len(now), 1)
    return kept
