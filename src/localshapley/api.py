"""The public functions: check the arguments, put the stages together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from localshapley.engine import Settings, play
from localshapley.errors import InvalidArgumentError
from localshapley.games import SupportGraph
from localshapley.models.trainer import Trainer
from localshapley.models.utility import Utility, UtilityTrainer
from localshapley.problem import pose
from localshapley.progress import ProgressSetting
from localshapley.stopping import Rule
from localshapley.supports.base import Support
from localshapley.valuation import Valuation


def value(
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
    per_test: bool = False,
) -> Valuation:
    """Value every training row by what it does for the predictions on the test rows.

    Parameters
    ----------
    X, X_test : array, DataFrame, SciPy sparse matrix or list, of shape (n_rows, n_features)
        Training rows, which are valued, and test rows, on which models are scored.
    y, y_test : array, Series or list of shape (n_rows,)
        Labels (text or numbers) for a classifier, numbers for a regressor.
    model : scikit-learn estimator, name or `localshapley.models` object
        What is trained on each coalition of rows: your own model, as it is. Names are ``"knn"``, ``"tree"``,
        ``"forest"``, ``"svm"``, ``"logistic"`` and ``"ridge"``.
    support : `localshapley.supports` object, optional
        Which training rows can matter to a test row; by default the family that belongs to the model.
    score : str or callable, optional
        ``"confidence"`` (default of classifiers with probabilities), ``"accuracy"`` (of the others),
        ``"margin"``, ``"log_loss"``; ``"squared_error"`` (default of regressors), ``"absolute_error"``; or a
        function `(y_true, prediction) -> float`. More is better: errors are negated.
    method : str, default="auto"
        ``"auto"`` is exact where that is cheaper than sampling to the target, game by game and size by size, and
        sampled elsewhere. ``"exact"`` trains each distinct subset of all supports once (LSMR); ``"sample"`` draws
        them (LSMR-A, unbiased, with standard errors). For comparison: ``"pivot"`` (the paper's LSMR-A with corrected
        weights), ``"pivot-printed"`` (as printed, biased), ``"subset-centric"`` and ``"baseline"`` (the paper's
        slower exact ways).
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
    per_test : bool, default=False
        Whether to keep the value of each training row to each test row, a sparse matrix.

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
    settings = Settings(method, budget, tol, stop, max_seconds, seed, progress, per_test)
    problem = pose(
        X, y, X_test, y_test, model=model, support=support, score=score, empty=empty, seed=seed, n_jobs=n_jobs
    )
    played = play(problem.graph, problem.trainer, settings)
    notes = problem.notes + _trainer_notes(problem.trainer)
    return played.valuation(
        model=problem.model, score=problem.task.score.name, support=repr(problem.support), notes=notes, ids=problem.ids
    )


def shapley(
    supports: Iterable[Iterable[int]],
    utility: Utility | Trainer,
    n_players: int | None = None,
    *,
    method: str = "exact",
    budget: int | None = None,
    tol: float | None = None,
    stop: Rule | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
    per_test: bool = False,
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
    method, budget, tol, stop, max_seconds, seed, n_jobs, progress, per_test
        As in `value`; the default method is ``"exact"``.

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
    settings = Settings(method, budget, tol, stop, max_seconds, seed, progress, per_test)
    graph = SupportGraph(supports, n_players)
    if graph.n_tests == 0:
        raise InvalidArgumentError("supports is empty; give the players of at least one test row.")
    if not callable(utility) and not hasattr(utility, "evaluate"):
        raise InvalidArgumentError(f"utility must be a function (coalition, tests) -> scores; got {utility!r}.")
    trainer: Trainer = utility if hasattr(utility, "evaluate") else UtilityTrainer(utility, n_jobs)  # type: ignore[assignment]
    played = play(graph, trainer, settings)
    return played.valuation(model="a game", score=trainer.name, support="given", notes=[], ids=None)


def _trainer_notes(trainer: Any) -> list[str]:
    """What happened in training that a reader of the values should know."""
    notes = []
    if getattr(trainer, "n_failed", 0):
        notes.append(
            f"{trainer.n_failed} coalitions were too small for the model and count as nothing learnt "
            f"(first: {trainer.first_failure})."
        )
    if getattr(trainer, "n_silent", 0):
        notes.append(f"{trainer.n_silent} predictions had no answer from the model and count as nothing learnt.")
    given = getattr(trainer, "warnings", {})
    notes += [f"{count} fits gave a {name}." for name, count in sorted(given.items())]
    return notes
