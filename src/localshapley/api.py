"""The public functions: check the arguments, put the stages together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import scipy.stats  # noqa: F401 before our own modules: from deep within their imports it takes 0.2 s longer

from localshapley.engine.run_store import StoreSetting
from localshapley.errors import InvalidArgumentError
from localshapley.locality.growing import grow_support
from localshapley.methods import Method
from localshapley.models.estimator_checks import unseeded
from localshapley.models.trainer import Trainer
from localshapley.models.utility import Utility
from localshapley.parameter_docs import documented
from localshapley.problem.base import RowsProblem
from localshapley.problem.build import build_problem
from localshapley.question import AUTO, D, Question, TableInput, UtilityGame
from localshapley.runtime.argument_checks import check_whole
from localshapley.runtime.compiling import Stopwatch
from localshapley.runtime.progress import ProgressSetting
from localshapley.stopping import Rule
from localshapley.supports.base import Support
from localshapley.valuation import Valuation
from localshapley.valuation.provenance import recorded
from localshapley.valuation.row_coverage import of_all_or_few
from localshapley.valuation.seed_average import mean_over_seeds
from localshapley.valuation.solving import solve


@recorded
@documented
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
    question = Question.of(TableInput, locals(), in_parts=True)
    return of_all_or_few(_valued(question) if seeds is None else _mean_over_seeds(question, seeds))


def _mean_over_seeds(question: Question[TableInput], seeds: int) -> Valuation:
    """Value with the seed of a question and those after it."""
    question = of_one_seed(question, seeds)
    limits, model = question.limits, unseeded(question.model)
    others = [replace(limits, seed=limits.seed + i, watch=Stopwatch()) for i in range(1, seeds)]
    runs = [_valued(question, seeds)]
    runs += [_valued(replace(question, limits=other, model=model), seeds) for other in others]
    return mean_over_seeds(runs, None if limits.rule is None else limits.rule.aim)


def _valued(question: Question[TableInput], seeds: int | None = None) -> Valuation:
    """Value with one seed, which may be one of several."""
    problem, limits = grow_support(question) if question.support == AUTO else (build_problem(question), question.limits)
    assert isinstance(problem, RowsProblem)
    if seeds is not None:
        problem.check_seeds(seeds)
    return solve(problem, limits, question.store, origin=problem.origin if limits.per_test else None)


def of_one_seed(question: Question[D], seeds: int) -> Question[D]:
    """The question for one of several seeds, which share the budget and the time."""
    check_whole("seeds", seeds, least=2)
    limits = question.limits
    budget, max_seconds = limits.budget, limits.max_seconds
    if budget is not None and budget < seeds:
        raise InvalidArgumentError(
            f"budget={budget:,} is too small: {seeds} seeds share it. Give a larger budget, or fewer seeds."
        )
    budget = None if budget is None else budget // seeds
    max_seconds = None if max_seconds is None else max_seconds / seeds
    return replace(question, limits=replace(limits, budget=budget, max_seconds=max_seconds))


@recorded
@documented
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
    method : str or `localshapley.methods` object, default="exact"
        As in `value`.
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
    question = Question.of(UtilityGame, locals())
    return solve(build_problem(question), question.limits, store)
