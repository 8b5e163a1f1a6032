"""The public functions: check the arguments, put the stages together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from localshapley.engine import Played, Settings, of_everyone, play
from localshapley.errors import InvalidArgumentError
from localshapley.games import SupportGraph
from localshapley.methods.tmc import TMC
from localshapley.models.trainer import Trainer
from localshapley.models.utility import Utility, UtilityTrainer
from localshapley.problem import Problem, check_n_jobs, pose
from localshapley.progress import ProgressSetting
from localshapley.stopping import Rule
from localshapley.store.replay import StoreSetting, kept_values, opened, origin_of, replay_of_game, replay_of_task
from localshapley.supports.base import Support
from localshapley.supports.given import Everything
from localshapley.valuation import Valuation


def value(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    cv: Any = None,
    support: Support | None = None,
    score: Any = None,
    method: str | TMC = "auto",
    budget: int | None = None,
    tol: float | None = None,
    stop: Rule | None = None,
    max_seconds: float | None = None,
    empty: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
    owners: Any = None,
    per_test: bool = False,
    store: StoreSetting = None,
    on_error: str = "raise",
    on_interrupt: str = "raise",
) -> Valuation:
    """Value every training row by what it does for the predictions on the test rows.

    Parameters
    ----------
    X, X_test : array, DataFrame (pandas or polars), SciPy sparse matrix or list, of shape (n_rows, n_features)
        Training rows, which are valued, and test rows, on which models are scored.
    y, y_test : array, Series or list of shape (n_rows,)
        Labels (text or numbers) for a classifier, numbers for a regressor.
    model : scikit-learn estimator, name or `localshapley.models` object
        What is trained on each coalition of rows: your own model, as it is. Names are ``"knn"``, ``"tree"``,
        ``"forest"``, ``"svm"``, ``"logistic"`` and ``"ridge"``; a regressor if `y` holds fractions.
    cv : int, splitter of scikit-learn or pairs (training rows, test rows), optional
        In place of test rows: every row is a test row for the rows of the other folds, and is valued by the folds
        that it is not in. All folds are one run, and a coalition that several of them share is trained once.
    support : `localshapley.supports` object, optional
        Which training rows can matter to a test row; by default the family that belongs to the model.
    score : str or callable, optional
        ``"confidence"`` (default of classifiers with probabilities), ``"accuracy"`` (of the others),
        ``"margin"``, ``"log_loss"``; ``"squared_error"`` (default of regressors), ``"absolute_error"``; or a
        function `(y_true, prediction) -> float`. More is better: errors are negated.
    method : str or `localshapley.baselines.TMC`, default="auto"
        ``"auto"`` is exact where that is cheaper than sampling to the target, game by game and size by size, and
        sampled elsewhere. ``"exact"`` trains each distinct subset of all supports once (LSMR); ``"sample"`` draws
        them (LSMR-A, unbiased, with standard errors). For comparison: ``"pivot"`` (the paper's LSMR-A with corrected
        weights), ``"pivot-printed"`` (as printed, biased), ``"subset-centric"`` and ``"baseline"`` (the paper's
        slower exact ways), ``"local-mc"`` (permutations of each support). All rows play for every test row, whatever
        the support, with ``"global-mc"`` (permutations), ``"tmc"`` (the same, truncated: biased),
        ``"complementary"`` (a coalition against its complement), ``"loo"`` (leave-one-out) and ``"random"``.
    budget : int, optional
        Most trainings that the run may take. A sampled run never exceeds it, and spends it if no `tol` or `stop`
        is given; an exact one that would need more is refused before it starts.
    tol : float, optional
        Stop sampling when the standard errors of all values together, `‖stderr‖ / ‖values‖`, are at most this;
        0.1 if neither `tol`, `stop` nor `budget` is given.
    stop : `localshapley.stopping` rule, optional
        Another rule, such as ``stopping.RankStable(top=20)``; rules combine with ``&`` and ``|``.
    max_seconds : float, optional
        Stop sampling after this time.
    empty : float, optional
        Score of the empty coalition on every test row. By default every class is equally likely, and a
        regressor predicts the mean of `y`.
    seed : int, default=0
        Same arguments and seed give the same values, bit by bit.
    n_jobs : int, optional
        Processes that train; -1 is one for each core.
    progress : bool or callable, optional
        True shows a bar, False none; by default a bar on a terminal when the run takes over a second. A
        function is called with trainings done and the total.
    owners : array or Series of shape (n_rows,), optional
        Who brought each training row: the owners are valued in place of the rows, each as a whole. For the sums of
        the rows' values see `localshapley.tasks.owners`.
    per_test : bool, default=False
        Whether to keep the value of each training row to each test row, a sparse matrix.
    store : path or `localshapley.Store`, optional
        File that keeps what has been trained, such as ``"run.db"``. A run that was killed goes on where it
        stopped, and other runs with this model and score find the rows that they share. Left out, with a note, where
        training is quicker than reading.
    on_error : {"raise", "skip"}, default="raise"
        What an error in training does (other than the model's refusal of too few rows): end the run, with everything
        so far in the store, or count the coalition as nothing learnt, which biases the values and is noted.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does to a sampled run: end it, or return what the rounds so far say, with standard errors.

    Returns
    -------
    Valuation

    Examples
    --------
    >>> import localshapley as ls
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> v = ls.value(X[::2], y[::2], X[1::2], y[1::2], model=KNeighborsClassifier(3))
    >>> v.values.shape
    (75,)
    """
    settings = Settings(method, budget, tol, stop, max_seconds, seed, progress, per_test, on_interrupt)
    problem = pose(
        X,
        y,
        X_test,
        y_test,
        model=model,
        cv=cv,
        support=Everything() if settings.plays_all else support,
        score=score,
        empty=empty,
        seed=seed,
        n_jobs=n_jobs,
        on_error=on_error,
        owners=owners,
    )
    played, notes = _play(problem, problem.graph, settings, store)
    return played.valuation(**_about(problem), notes=notes, origin=origin_of(problem) if per_test else None)


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
    method: str = "auto",
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
    """Value changed data: test rows whose support is as it was keep their values, the others are played again.

    Rows may have been added, removed or moved, in training and test data; they are recognised by their contents. The
    cost of the result is that of the games that were played.

    Parameters
    ----------
    valuation : Valuation
        The valuation so far: exact, with ``per_test=True``.
    X, y, X_test, y_test
        The data as they are now, all rows.
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
    settings = Settings(method, budget, tol, stop, max_seconds, seed, progress, True, on_interrupt)
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
        support=support,
        score=score,
        empty=empty,
        seed=seed,
        n_jobs=n_jobs,
        on_error=on_error,
    )
    origin, graph = origin_of(problem), problem.graph
    if origin.fingerprint != valuation.origin.fingerprint:
        raise InvalidArgumentError(
            "valuation is of another model, score, set of classes or version of the software than the arguments; "
            "values of the two cannot be mixed. Run value() instead."
        )
    kept = kept_values(valuation, origin, graph)
    n_changed = graph.n_tests - len(kept)
    # Test rows that keep their values take part with an empty support, which costs nothing.
    supports = [np.empty(0, dtype=np.int32) if t in kept else graph.support(t) for t in range(graph.n_tests)]
    played, notes = _play(problem, SupportGraph(supports, graph.n_players), settings, store)
    assert played.per_test is not None
    for t, indptr in enumerate(played.per_test.indptr[:-1]):
        kept.setdefault(t, played.per_test.data[indptr : played.per_test.indptr[t + 1]])
    by_test = np.concatenate([kept[t] for t in range(graph.n_tests)])
    notes.append(
        f"{graph.n_tests - n_changed} of {graph.n_tests} test rows kept their values, {n_changed} were played again."
    )
    played = replace(played, graph=graph, values=graph.values(by_test), per_test=graph.matrix(by_test))
    return played.valuation(**_about(problem), notes=notes, origin=origin)


def shapley(
    supports: Iterable[Iterable[int]],
    utility: Utility | Trainer,
    n_players: int | None = None,
    *,
    method: str | TMC = "exact",
    budget: int | None = None,
    tol: float | None = None,
    stop: Rule | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
    per_test: bool = False,
    store: StoreSetting = None,
    name: str | None = None,
    on_interrupt: str = "raise",
) -> Valuation:
    """Local Shapley values of any game: players, test rows with their supports, and a utility.

    Parameters
    ----------
    supports : sequence of int lists
        For each test row the players of its game.
    utility : callable
        `utility(coalition, tests) -> scores`: `coalition` is a sorted int array of players, `tests` an int array
        of the test rows to score (indices into `supports`); one float per test row comes back. It is called at
        most once per coalition and run with ``"exact"``, ``"sample"``, ``"pivot"`` and ``"auto"``. An object with
        ``evaluate(coalitions)``, as in `localshapley.models`, scores many coalitions in one call.
    n_players : int, optional
        By default one more than the largest index in `supports`.
    method, budget, tol, stop, max_seconds, seed, n_jobs, progress, per_test, store, on_interrupt
        As in `value`; the default method is ``"exact"``.
    name : str, optional
        What the store keeps the game under. Nobody can tell from a function whether its numbers changed, so a store
        needs a name, and another utility needs another one.

    Returns
    -------
    Valuation

    Examples
    --------
    The glove game: players 0 and 1 have a left glove, player 2 the right one.

    >>> import localshapley as ls
    >>> def pairs(coalition, tests):
    ...     return [float(2 in coalition and len(coalition) > 1)]
    >>> ls.shapley([[0, 1, 2]], pairs).values.round(4)
    array([0.1667, 0.1667, 0.6667])
    """
    settings = Settings(method, budget, tol, stop, max_seconds, seed, progress, per_test, on_interrupt)
    graph = SupportGraph(supports, n_players)
    if graph.n_tests == 0:
        raise InvalidArgumentError("supports is empty; give the players of at least one test row.")
    if settings.plays_all:
        graph = of_everyone(graph)
    check_n_jobs(n_jobs)
    if not callable(utility) and not hasattr(utility, "evaluate"):
        raise InvalidArgumentError(f"utility must be a function (coalition, tests) -> scores; got {utility!r}.")
    trainer: Trainer = utility if hasattr(utility, "evaluate") else UtilityTrainer(utility, n_jobs)  # type: ignore[assignment]
    if store is None:
        played, notes = play(graph, trainer, settings), []
    elif not name:
        raise InvalidArgumentError("store needs the name of the game: name='my game, version 1'.")
    else:
        with opened(store) as file:
            replay = replay_of_game(file, name, graph)
            played, notes = play(graph, trainer, settings, replay), replay.notes
    support = "Everything()" if settings.plays_all else "given"
    return played.valuation(model="a game", score=trainer.name, support=support, notes=notes, ids=None)


def _play(problem: Problem, graph: SupportGraph, settings: Settings, store: StoreSetting) -> tuple[Played, list[str]]:
    """Play games of a problem, with a store if there is one; returns what a reader should know with it."""
    if store is None:
        played, notes = play(graph, problem.trainer, settings), []
    else:
        with opened(store) as file:
            replay = replay_of_task(file, problem)
            played, notes = play(graph, problem.trainer, settings, replay), replay.notes
        if not replay.was_asked:
            notes.append("the store was left out: these values need no training.")
    return played, problem.notes + _trainer_notes(problem.trainer) + notes


def _about(problem: Problem) -> dict[str, Any]:
    return {
        "model": problem.model,
        "score": problem.task.score.name,
        "support": repr(problem.support),
        "ids": problem.ids,
        "unit": "row" if problem.owners is None else "owner",
    }


def _trainer_notes(trainer: Any) -> list[str]:
    """What happened in training that a reader of the values should know."""
    notes = []
    if getattr(trainer, "n_failed", 0):
        notes.append(
            f"{trainer.n_failed} coalitions were too small for the model and count as nothing learnt "
            f"(first: {trainer.first_failure})."
        )
    if getattr(trainer, "n_skipped", 0):
        notes.append(
            f"{trainer.n_skipped} coalitions failed to train and count as nothing learnt: the values are biased "
            f"(first: {trainer.first_skipped})."
        )
    if getattr(trainer, "n_silent", 0):
        notes.append(f"{trainer.n_silent} predictions had no answer from the model and count as nothing learnt.")
    given = getattr(trainer, "warnings", {})
    notes += [f"{count} fits gave a {name}." for name, count in sorted(given.items())]
    return notes
