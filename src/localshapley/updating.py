"""Values of changed data: only games whose support has changed are played again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from localshapley.arrays import AnyArray, Floats, Ints, Masks, Singles, offsets, singles
from localshapley.coalitions.games import SupportGraph
from localshapley.data.columns import n_rows_of
from localshapley.data.folds import continued
from localshapley.data.rows import known_table
from localshapley.engine.executor import Executor
from localshapley.engine.kept_values import EnoughPlayed, KeptValues
from localshapley.engine.run_store import StoreSetting
from localshapley.errors import InvalidArgumentError
from localshapley.methods import Auto, Limits, Method
from localshapley.methods.limits import DEFAULT_TOL
from localshapley.models.boosted_trees import BoostedTrainer
from localshapley.models.dispatch import as_model
from localshapley.models.fixed_trees import FixedTrainer
from localshapley.models.fold_trainers import FoldsTrainer
from localshapley.notes import Note
from localshapley.parameters import documented
from localshapley.problem.base import RowsProblem
from localshapley.problem.build import build_problem
from localshapley.question import Question, Table
from localshapley.runtime.progress import ProgressSetting
from localshapley.stopping import Rule
from localshapley.supports.base import Support
from localshapley.valuation import Origin, Valuation
from localshapley.valuation.matching import find, find_rows
from localshapley.valuation.record import recorded
from localshapley.valuation.row_names import check_valuation
from localshapley.valuation.solving import solve


@recorded
@documented
def update(
    valuation: Valuation,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    cv: Any = None,
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
    owners: Any = None,
    store: StoreSetting = None,
    on_error: str = "raise",
    on_interrupt: str = "raise",
) -> Valuation:
    """Value changed data: test rows whose support is unchanged keep their values, the others are played again.

    Rows may have been added, removed or moved, in training and test data; they are recognised by their contents. The
    cost of the result is that of the games that were played, and its errors are those of what was kept and of what was
    played together. `model`, `score`, `empty` and `seed` must be those of the valuation.

    Parameters
    ----------
    valuation : Valuation
        The valuation so far, made with ``per_test=True``; exact or sampled.
    X, y, X_test, y_test
        All of the data as it is now.
    cv : int, splitter of scikit-learn or pairs (training rows, test rows), optional
        As in `value`, in place of test rows. If it is the number of folds that the valuation has, rows stay in their
        folds, and new ones go where fewest of their class are.
    tol : float, optional
        As in `value`, of all values together. By default, there are as many draws for each test row as before.
    budget : int, optional
        Maximum number of trainings for what is played again.
    support : `localshapley.supports` object, optional
        Which training rows can matter to a test row; by default the family that belongs to the model.

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
    check_valuation(valuation)
    question = Question.of(Table, locals(), per_test=True)
    settings, before = question.limits, _origin_of(valuation)
    folds = _same_folds(valuation, before, X, y, cv, model)
    problem = build_problem(replace(question, data=replace(question.data, cv=folds)))
    _check_same(problem, before)
    kept = _kept(valuation, before, problem)
    to_play, kept = _for_rest(kept, valuation, before, problem, settings)
    found = solve(problem, to_play, store, problem.origin, kept)
    n_kept, n_tests = int(kept.tests.sum()), len(kept.tests)
    text = f"{n_kept} of {n_tests} test rows kept their values, {n_tests - n_kept} were played again."
    notes = [Note("tests-kept", text, n_kept=n_kept, n_tests=n_tests)]
    if settings.tol is not None and kept.variance.sum() > (settings.tol * np.linalg.norm(found.values)) ** 2:
        text = (
            f"values that were kept have a larger error than tol={settings.tol:g} allows; value() would play them on."
        )
        notes.append(Note("kept-error-large", text, tol=settings.tol))
    is_as_before = settings.budget is None and found.stopped.code == "budget-spent"
    origin = found.origin if found.origin is None or not before.draws else replace(found.origin, draws=before.draws)
    return replace(
        found,
        notes=[*found.notes, *notes],
        facts=replace(found.facts, skill=valuation.skill),
        origin=origin,
        stopped=Note("draws-as-before", "as many draws for each test row as before") if is_as_before else found.stopped,
    )


def _origin_of(valuation: Valuation) -> Origin:
    """What is known about the test rows of a valuation; refuses those that do not keep it."""
    origin = valuation.origin
    if valuation.per_test is None or origin is None:
        raise InvalidArgumentError(
            "valuation lacks the values of its test rows; make it with value(..., per_test=True), or run value() with "
            "store=... again, which trains only what is new."
        )
    if valuation.stderr.any() and not len(origin.apart):
        raise InvalidArgumentError(
            "valuation is sampled and was saved by an earlier version, without the errors of its test rows; run "
            "value(..., per_test=True) once with this one."
        )
    return origin


def _same_folds(valuation: Valuation, before: Origin, X: Any, y: Any, cv: Any, model: Any) -> Any:
    """Folds in which known rows stay where they were, if their number is given and they were dealt here."""
    is_number = isinstance(cv, int | np.integer) and not isinstance(cv, bool)
    if not is_number or not len(before.folds) or before.folds.max() + 1 != cv or valuation.digests is None:
        return cv
    X, labels, n_rows = known_table(X), np.asarray(y), n_rows_of(X)
    if labels.shape != (n_rows,):
        return cv  # which is refused with a message
    place = find_rows(valuation, valuation.digests.of_table(X), labels)
    known = np.full(n_rows, -1)
    known[place[place >= 0]] = before.folds[place >= 0]
    classifies = is_classifier(as_model(model, labels)[0].estimator)
    return continued(known, labels if classifies else np.zeros(n_rows), int(cv))


def _check_same(problem: RowsProblem, before: Origin) -> None:
    """Refuse what cannot be mixed with the values before."""
    if isinstance(problem.trainer, FixedTrainer | BoostedTrainer):
        raise InvalidArgumentError(
            "update() cannot keep values of models.Fixed: changed rows grow other trees, so every value may change. "
            "Run value() again; it takes about the time of a fit."
        )
    if problem.folds is not None and (problem.owners is not None or isinstance(problem.trainer, FoldsTrainer)):
        raise InvalidArgumentError(
            "update() with cv supports neither owners nor pipelines, whose first steps are fitted anew in every fold, "
            "so that every value may change. Run value() instead, or transform the rows before."
        )
    if problem.origin.fingerprint != before.fingerprint:
        raise InvalidArgumentError(
            "valuation was made with another model, score, set of classes or version of the software; its values "
            "cannot be mixed with new ones. Run value() instead."
        )


def _kept(valuation: Valuation, before: Origin, problem: RowsProblem) -> KeptValues:
    """Values and errors of the test rows whose support has the same contents as before."""
    matrix, now, graph = valuation.per_test, problem.origin, problem.graph
    assert matrix is not None
    place = find(
        np.column_stack([now.tests, _sums_of_digests(*graph.N, now.rows)]),
        np.column_stack([before.tests, _sums_of_digests(matrix.indptr, matrix.indices, before.rows)]),
    )
    kept, sizes = place >= 0, np.maximum(graph.support_sizes, 1)
    here, there = _same_places(matrix, before, problem, place)
    by_test, apart = np.zeros((2, len(graph.N[1])))
    by_test[here] = matrix.data[there]
    # Only the prediction of a model that has learnt nothing may have changed.
    nothing = np.where(kept, before.nothing[place] - now.nothing, 0.0)
    by_test += np.repeat(nothing / sizes, graph.support_sizes)
    if not valuation.stderr.any():
        return KeptValues(graph, kept, by_test, apart, np.zeros(graph.n_players))
    apart[here] = before.apart[there]
    row = find(now.rows, before.rows)
    share = _kept_share(matrix, before.apart, graph, np.where(np.repeat(kept, graph.support_sizes), apart, np.nan), row)
    variance = np.where(row >= 0, share * valuation.stderr[row] ** 2, graph.values(apart**2))
    spread = None if valuation.spread is None else valuation.spread[row] * np.sqrt(share)[:, None]
    return KeptValues(graph, kept, by_test, apart, variance, None if spread is None else singles(spread))


def _sums_of_digests(indptr: Ints, players: AnyArray, rows: Masks) -> Masks:
    """What each support holds, in any order: the number of its rows, and the sums of their digests."""
    total = np.zeros((len(players) + 1, 2), dtype=np.uint64)
    np.cumsum(rows[players], axis=0, out=total[1:])
    return np.column_stack([np.diff(indptr).astype(np.uint64), total[indptr[1:]] - total[indptr[:-1]]])


def _same_places(matrix: sparse.csr_array, before: Origin, problem: RowsProblem, place: Ints) -> tuple[Ints, Ints]:
    """Places among the supports as they are now, of test rows that are kept, and those in the matrix before."""
    kept, sizes = place >= 0, problem.graph.support_sizes
    here = np.flatnonzero(np.repeat(kept, sizes))
    start = matrix.indptr[place[kept]] - offsets(sizes[kept])[:-1]
    there = np.repeat(start, sizes[kept]) + np.arange(len(here))
    is_now, was = problem.origin.rows[problem.graph.N[1][here]], before.rows[matrix.indices[there]]
    if not (is_now == was).all():  # rows have moved
        test = np.repeat(np.arange(int(kept.sum())), sizes[kept])
        here, there = (i[np.lexsort((*rows.T, test))] for i, rows in ((here, is_now), (there, was)))
    return here, there


def _kept_share(matrix: sparse.csr_array, before: Singles, graph: SupportGraph, now: Floats, row: Ints) -> Floats:
    """Which share of the variance of each row, at `row` before, is that of test rows which were kept.

    Errors of different test rows count as if they were alike correlated, all with all. Halves of the draws show the
    error of a row in one test row badly, so that they are averaged over the rows of its support.
    """
    least = 1e-9 * float((before**2).mean()) + 1e-300  # where there are no errors, test rows are counted
    each = _by_support(before.astype(np.float64) ** 2, matrix.indptr) + least
    total = np.bincount(matrix.indices, weights=each, minlength=matrix.shape[1])[row]
    each = _by_support(now**2, graph.N[0]) + least
    kept = graph.values(np.nan_to_num(each))
    share = np.divide(kept, total, out=np.zeros_like(kept), where=(total > 0) & (row >= 0))
    found: Floats = np.minimum(share, 1.0)
    return found


def _by_support(numbers: Floats, indptr: Ints) -> Floats:
    """For each entry the mean over the entries of its test row."""
    sizes = np.diff(indptr)
    test = np.repeat(np.arange(len(sizes)), sizes)
    mean = np.bincount(test, weights=numbers, minlength=len(sizes)) / np.maximum(sizes, 1)
    found: Floats = mean[test]
    return found


def _for_rest(
    kept: KeptValues, valuation: Valuation, before: Origin, problem: RowsProblem, settings: Limits
) -> tuple[Limits, KeptValues]:
    """How to play what is left: if nobody says, with as many draws for each test row as before.

    Their number is fixed beforehand. To wait for a small error would bias the values: a few games are often lucky.
    """
    n_tests, n_played, method = len(kept.tests), int((~kept.tests).sum()), settings.method
    if isinstance(method, Auto):  # a few games are no reason to be exact where many were sampled
        method = replace(method, easy=method.easy * n_played // n_tests)
    plain = replace(settings, method=method)
    if method.kind != "sampled" or settings.stop is not None or (settings.budget is not None and settings.tol is None):
        return plain, kept
    if settings.tol is None and before.draws > 0:
        rest = kept.rest()
        first = method.start(rest, Executor(problem.trainer), settings)
        if not first.samples:
            return plain, kept
        budget = before.draws * n_played / _tests_per_training(rest, settings.seed)
        return replace(plain, budget=max(int(budget), first.least_look)), kept
    so_far = float(kept.variance.sum()), _variance_before(kept, valuation, before, problem.origin)
    enough = EnoughPlayed(*so_far, settings.tol or DEFAULT_TOL)
    return replace(plain, tol=None, stop=enough), replace(kept, enough=enough)


def _tests_per_training(rest: SupportGraph, seed: int, n: int = 300) -> float:
    """How many test rows a coalition is scored on that is drawn from the games, on average: supports overlap."""
    played = np.flatnonzero(rest.support_sizes)
    if not len(played):
        return 1.0
    rng = np.random.default_rng(seed)
    tests = rng.choice(played, n)
    supports = [rest.support(t) for t in tests]
    sizes = np.sin(np.pi / 2 * rng.random(n)) ** 2 * [len(support) for support in supports]  # as sizes are drawn
    coalitions = [rng.permutation(s)[: max(1, int(k))] for s, k in zip(supports, sizes, strict=True)]
    return float(np.mean([len(rest.tests_holding(c)) for c in coalitions]))


def _variance_before(kept: KeptValues, valuation: Valuation, before: Origin, now: Origin) -> float:
    """Sum of the variances of the test rows that are to be played as they were before, or of as many others."""
    matrix = valuation.per_test
    if matrix is None or not len(before.apart):
        return 0.0
    each = np.zeros(len(before.tests))
    np.add.at(each, np.repeat(np.arange(len(each)), np.diff(matrix.indptr)), before.apart.astype(np.float64) ** 2)
    place = find(now.tests[~kept.tests], before.tests)
    played = float(np.where(place >= 0, each[place], each.mean()).sum())
    return float((valuation.stderr**2).sum()) * played / max(float(each.sum()), 1e-300)
