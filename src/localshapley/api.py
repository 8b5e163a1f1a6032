"""The public functions: check the arguments, put the stages together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from localshapley.compiling import Stopwatch
from localshapley.engine.loop import solve
from localshapley.engine.run_store import StoreSetting
from localshapley.errors import InvalidArgumentError
from localshapley.inputs.model import unseeded
from localshapley.inputs.numbers import check_whole
from localshapley.locality.growing import build_large_enough
from localshapley.methods import Method
from localshapley.models.trainer import Trainer
from localshapley.models.utility import Utility
from localshapley.problem.base import RowsProblem
from localshapley.problem.build import build_problem
from localshapley.progress import ProgressSetting
from localshapley.question import D, Game, Question, Table
from localshapley.stopping import Rule
from localshapley.supports.base import Support
from localshapley.valuation import Valuation
from localshapley.valuation.record import recorded
from localshapley.valuation.seeds import mean_over_seeds
from localshapley.valuation.sparse import of_all_or_few


@recorded
def value(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    cv: Any = None,
    support: Support | str | None = None,
    score: Any = None,
    method: str | Method = "auto",
    budget: int | None = None,
    tol: float | None = None,
    stop: Rule | None = None,
    max_seconds: float | None = None,
    empty: float | None = None,
    seed: int = 0,
    seeds: int | None = None,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
    owners: Any = None,
    per_test: bool = False,
    store: StoreSetting = None,
    on_error: str = "raise",
    rare: str = "raise",
    on_interrupt: str = "raise",
) -> Valuation:
    """Value every training row by what it does for the predictions on the test rows.

    Parameters
    ----------
    X, X_test : array, DataFrame (pandas or polars), SciPy sparse matrix or list, of shape (n_rows, n_features)
        Training rows, which are valued, and test rows, on which models are scored. Training rows may also be a Dask
        array or DataFrame, a pyarrow data set, the path of a Parquet, Feather or Arrow file or of a folder of these, or
        a NumPy memory map, all of them larger than memory.
    y, y_test : array, Series or list of shape (n_rows,)
        Labels (text or numbers) for a classifier, numbers for a regressor; the name of a column of `X` where that is a
        Dask DataFrame, a data set or a path. Rows and labels are joined by position; if
        both have an index, the same labels in another order are refused, and other labels are noted.
    model : scikit-learn estimator, name or `localshapley.models` object
        What is trained on each coalition of rows: your own model, as it is. Names are ``"knn"``, ``"tree"``,
        ``"forest"``, ``"svm"``, ``"logistic"``, ``"ridge"`` and ``"fixed-forest"``; a regressor if `y` holds fractions.
    cv : int, splitter of scikit-learn, pairs (training rows, test rows) or "oob", optional
        In place of test rows: every row is a test row for the rows of the other folds, and is valued by the folds
        that it is not in. All folds are one run, and a coalition that several of them share is trained once. With
        ``"oob"`` and `models.Fixed` every row is judged by the trees whose bag it is not in, and there is one fit.
    support : `localshapley.supports` object or "auto", optional
        Which training rows can matter to a test row; by default the family that belongs to the model. With ``"auto"``
        that support grows until the values are nearly global, as in `locality_gap`, or `budget` allows no more: a note
        says what gap remains.
    score : str or callable, optional
        ``"confidence"`` (default of classifiers with probabilities), ``"accuracy"`` (of the others),
        ``"margin"``, ``"log_loss"``; ``"squared_error"`` (default of regressors), ``"absolute_error"``; or a
        function `(y_true, prediction) -> float`. More is better: errors are negated.
    method : str or `localshapley.methods` object, default="auto"
        ``"auto"`` is exact where that is cheaper than sampling to the target, game by game and size by size, and
        sampled elsewhere. ``"exact"`` trains each distinct subset of all supports once (LSMR), or nothing if the
        model has a closed form; ``"sample"`` draws them (LSMR-A, unbiased, with standard errors). For comparison:
        ``"pivot"`` (the paper's LSMR-A with corrected weights), ``"pivot-printed"`` (as printed, biased),
        ``"subset-centric"`` and ``"baseline"`` (the paper's slower exact ways), ``"local-mc"`` (permutations of each
        support). All rows play for every test row, whatever the support, with ``"global-mc"`` (permutations), ``"tmc"``
        (the same, truncated: biased), ``"complementary"`` (a coalition against its complement), ``"loo"``
        (leave-one-out) and ``"random"``.
    budget : int, optional
        Maximum number of trainings. A sampled run never exceeds it, and spends it if no `tol` or `stop` is given; an
        exact one that would need more is refused before it starts.
    tol : float, optional
        Stop sampling when the standard errors of all values together, `‖stderr‖ / ‖values‖`, are at most this;
        0.1 if neither `tol`, `stop` nor `budget` is given.
    stop : `localshapley.stopping` rule, optional
        Another rule, such as ``stopping.RankStable(top=20)``; rules combine with ``&`` and ``|``.
    max_seconds : float, optional
        Stop sampling by this time, counted from the call, to within a twentieth of it or one training: rounds are
        sized to fit into what is left of it. If there is no time for a first estimate on all test rows, some of them
        count, drawn at random, and a warning says how many; if even that takes longer, or `per_test` asks for all of
        them, the run is refused before it starts. With a `store` it trains until then, and the same call goes on.
    empty : float, optional
        Score of the empty coalition on every test row. By default every class is equally likely, and a
        regressor predicts the mean of `y`; with `cv`, that of the rows outside the test row's fold.
    seed : int, default=0
        The same arguments and seed give the same values, bit for bit.
    seeds : int, optional
        For a model that draws random numbers: value with so many seeds, `seed` and those after it, and give the means
        of the values, with their error in `Valuation.stderr_seed`. `budget` and `max_seconds` are shared out evenly. A
        random state that the model was given holds for the first seed; folds that `cv=5` draws differ, too.
    n_jobs : int, optional
        Number of training processes; -1 uses every core.
    progress : bool or callable, optional
        True shows a bar, False none; by default a bar on a terminal or in a notebook when the run takes over a second,
        and elsewhere a line on standard error now and then when it takes over ten.
        A function is called with trainings done and the total.
    owners : array or Series of shape (n_rows,), optional
        Who contributed each training row, in the order of `X`: the owners are valued in place of the rows, each as a
        whole. For the sums of the rows' values see `localshapley.tasks.owners`.
    per_test : bool, default=False
        Whether to keep the value of each training row to each test row, a sparse matrix; refused if it would not fit
        in memory.
    store : path or `localshapley.Store`, optional
        File that keeps what has been trained, such as ``"run.db"``. A run that was killed resumes where it stopped,
        and other runs with this model and score reuse what they share with it. Where training is quicker than
        reading, the store is not used, and a note says so.
    on_error : {"raise", "skip"}, default="raise"
        What an error in training does (other than the model's refusal of too few rows): end the run, with everything
        so far in the store, or score the coalition like the empty one, which biases the values and is noted.
    rare : {"raise", "drop"}, default="raise"
        What rows of a class with one row do, where `cv` is a number of folds: end the run, as no fold can test what it
        has not learnt, or be left out. The index of the result then says which rows were valued.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does to a sampled run: end it, or return the values from the rounds so far, with standard errors.

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
    return of_all_or_few(_over_seeds(Question.of(Table, locals(), in_parts=True), seeds))


def _over_seeds(question: Question[Table], seeds: int | None) -> Valuation:
    """Value with the seed of a question or, where several are asked for, with it and those after it."""
    question = of_one_seed(question, seeds)
    first = _valued(question, seeds)
    if seeds is None:
        return first
    limits, model = question.limits, unseeded(question.model)
    others = [replace(limits, seed=limits.seed + i, watch=Stopwatch()) for i in range(1, seeds)]
    runs = [first, *(_valued(replace(question, limits=other, model=model), seeds) for other in others)]
    return mean_over_seeds(runs, None if limits.rule is None else limits.rule.aim)


def _valued(question: Question[Table], seeds: int | None) -> Valuation:
    problem, limits = build_large_enough(question)
    assert isinstance(problem, RowsProblem)
    problem.check_seeds(seeds)
    return solve(problem, limits, question.store, origin=problem.origin if limits.per_test else None)


def of_one_seed(question: Question[D], seeds: int | None) -> Question[D]:
    """The question for one of several seeds, which share the budget and the time."""
    check_whole("seeds", seeds, least=2, optional=True)
    limits = question.limits
    budget, max_seconds = limits.budget, limits.max_seconds
    if seeds is None:
        return question
    if budget is not None and budget < seeds:
        raise InvalidArgumentError(
            f"budget={budget:,} is too small: {seeds} seeds share it. Give a larger budget, or fewer seeds."
        )
    budget = None if budget is None else budget // seeds
    max_seconds = None if max_seconds is None else max_seconds / seeds
    return replace(question, limits=replace(limits, budget=budget, max_seconds=max_seconds))


@recorded
def shapley(
    supports: Iterable[Iterable[int]],
    utility: Utility | Trainer,
    n_players: int | None = None,
    *,
    method: str | Method = "exact",
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
        Name of the game in the store, needed with `store`. A function does not show whether its results have changed,
        so another utility needs another name.

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
    question = Question.of(Game, locals())
    return solve(build_problem(question), question.limits, store)
