"""What a valuation would cost, before it is paid."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from localshapley.arrays import Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.coalitions.exact import Levels, count_levels
from localshapley.compiling import told_of_compiling
from localshapley.engine import CLASSES_PER_SECOND, MAX_CLASSES
from localshapley.games import SupportGraph
from localshapley.methods.sample import FIRST_DRAWS
from localshapley.models.trainer import Solver, Trainer
from localshapley.problem import pose
from localshapley.supports.base import Support
from localshapley.wording import duration, in_words


@dataclass(frozen=True, repr=False)
class Plan:
    """The cost of a valuation, level by level.

    Attributes
    ----------
    n_rows, n_tests, n_games : int
        Training rows, test rows and games (distinct supports).
    support_sizes : array of shape (n_tests,)
    levels : Levels
        Trainings of the paper's four levels and the growth of `|𝒮_T|`.
    classes : int or None
        Classes of coalitions with equal scores, where the model has them: so many are scored for exact values.
    first_look : int
        Trainings until a sampled run first knows its error; it then says how many more the target takes.
    seconds_per_training : float
        Mean of a few timed trainings.
    model, score, support, trainer : str
    notes : list of str
    """

    n_rows: int
    n_tests: int
    n_games: int
    support_sizes: Ints
    levels: Levels
    classes: int | None
    first_look: int
    seconds_per_training: float
    model: str
    score: str
    support: str
    trainer: str
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        levels, sizes = self.levels, self.support_sizes
        error = f" ± {in_words(levels.lsmr_stderr)} (estimated)" if levels.lsmr_stderr else ""
        table = [
            ("global", levels.global_, ""),
            ("local, player by player", levels.local, "method='baseline'"),
            ("subset by subset", levels.subset_centric, "method='subset-centric'"),
            ("each subset once (LSMR)", levels.lsmr, "method='exact'"),
            ("sampled, until first look", self.first_look, "method='auto', 'sample'"),
        ]
        if self.classes is not None and self.classes <= MAX_CLASSES:
            table.append(("classes of coalitions", self.classes, "method='auto', 'exact'"))
        growth = ", ".join(f"{in_words(count // t)} (of {t})" for t, count in levels.growth)
        lines = [
            f"Plan for {self.n_rows} training rows and {self.n_tests} test rows",
            f"  model    {self.model}",
            f"  score    {self.score}",
            f"  support  {self.support}: {sizes.min()} to {sizes.max()} rows, median {np.median(sizes):g}",
            f"  games    {self.n_games} distinct supports",
            f"  trainer  {self.trainer}, {duration(self.seconds_per_training)} a training",
            "",
            f"  {'trainings':<26}{'number':>12}  {'time':>12}",
        ]
        for name, count, method in table:
            each = 1 / CLASSES_PER_SECOND if name.startswith("classes") else self.seconds_per_training
            time = duration(min(count, 10**300) * each)
            lines.append(f"  {name:<26}{in_words(count):>12}  {time:>12}  {method}".rstrip())
        lines += [
            "",
            f"  distinct subsets  {in_words(levels.lsmr)}{error}; {levels.reused:.1%} of the subsets are reused",
            f"  distinct subsets per test row, over the first test rows: {growth}",
        ]
        return "\n".join(lines + [f"  note     {note}" for note in self.notes])


def plan(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    cv: Any = None,
    support: Support | None = None,
    score: Any = None,
    empty: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    owners: Any = None,
) -> Plan:
    """Tell what `value` with the same arguments would cost; trains one reference model and a few coalitions.

    Parameters
    ----------
    X, y, X_test, y_test, model, cv, support, score, empty, seed, n_jobs, owners
        As in `value`.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import localshapley as ls
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> p = ls.plan(X[::2], y[::2], X[1::2], y[1::2], model="knn")
    >>> p.levels.subset_centric
    76800
    """
    problem = pose(
        X,
        y,
        X_test,
        y_test,
        model=model,
        cv=cv,
        support=support,
        score=score,
        empty=empty,
        seed=seed,
        n_jobs=n_jobs,
        owners=owners,
    )
    graph, trainer = problem.graph, problem.trainer
    with told_of_compiling(None):
        levels = count_levels(graph, seed=seed)
        seconds = _time_trainings(graph, trainer, seed)
    return Plan(
        n_rows=graph.n_players,
        n_tests=graph.n_tests,
        n_games=graph.n_games,
        support_sizes=graph.support_sizes,
        levels=levels,
        classes=trainer.count_classes(graph) if isinstance(trainer, Solver) else None,
        first_look=min(levels.lsmr, 1 + (1 + FIRST_DRAWS) * graph.n_games),
        seconds_per_training=seconds,
        model=problem.model,
        score=problem.task.score.name,
        support=repr(problem.support),
        trainer=problem.trainer.name,
        notes=problem.notes,
    )


def _time_trainings(graph: SupportGraph, trainer: Trainer, seed: int, patience: float = 0.5) -> float:
    """Mean seconds of a training, over random coalitions of the supports, for about half a second."""
    rng = np.random.default_rng(seed)

    def sample(n: int) -> Coalitions:
        tests = rng.integers(graph.n_tests, size=n)
        coalitions = [rng.permutation(s)[: rng.integers(len(s) + 1)] for s in map(graph.support, tests)]
        return Coalitions.from_lists(coalitions, [[t] for t in tests])

    everyone = graph.game(graph.n_games - 1)
    trainer.evaluate(Coalitions.from_lists([everyone, everyone[: len(everyone) // 2]], [[0], [0]]))  # may compile
    trainer.evaluate(sample(4))
    trained, spent, n = 0, 0.0, 4
    while spent < patience and trained < 5000:
        coalitions = sample(n)
        started = perf_counter()
        trainer.evaluate(coalitions)
        spent += perf_counter() - started
        trained += n
        n *= 2
    return spent / trained
