"""What a valuation would do, and what that costs, before you run it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from localshapley.api import of_one_seed
from localshapley.arrays import Ints
from localshapley.coalitions.subsets import Levels, count_levels
from localshapley.engine.executor import Executor
from localshapley.engine.forecast import Forecast, until_target, what_is_faster
from localshapley.engine.run_store import StoreSetting, opened
from localshapley.formatting import duration, in_words, kinds
from localshapley.locality.growing import grow_support
from localshapley.methods import Method
from localshapley.methods.closed_form import CLASSES_PER_SECOND
from localshapley.notes import Note
from localshapley.parameters import documented
from localshapley.problem.build import build_problem
from localshapley.question import AUTO, Question, Table
from localshapley.runtime.compiling import announcing_compilation
from localshapley.runtime.progress import ProgressSetting
from localshapley.stopping import Rule
from localshapley.supports.base import Support


@dataclass(frozen=True, repr=False, eq=False)
class Plan:
    """What a valuation would do and cost, beside the paper's four levels.

    Attributes
    ----------
    n_rows, n_tests, n_games : int
        Training rows (or owners), test rows and games (distinct supports).
    support_sizes : array of shape (n_tests,)
    levels : Levels
        Trainings of the paper's four levels and the growth of `|𝒮_T|`.
    method : str
        The method that `value` would run.
    chosen : str
        Which way it would take, and why, where it has a choice.
    samples : bool
        Whether anything would be sampled.
    trainings : int or None
        Trainings of the whole run: all of them, or at most the budget; None where a sampled run ends when its target is
        reached.
    classes : int or None
        Classes of coalitions with equal scores, in place of trainings, where the values have a closed form.
    first_look : int
        Trainings until a sampled run first knows its error; it then says how many more the target takes.
    seconds_per_training : float
        Of a few timed trainings, without compiling.
    target : Forecast or None
        What a sampled run is expected to take until its target, foreseen from its first rounds, or why that cannot be
        told; None where there is no target.
    faster : str
        What would take less time, if it takes longer than a minute.
    model, score, support, trainer : str
    notes : list of Note
    memory : int or None
        Bytes that the run takes at most, beyond what Python and its libraries do, where rows lie in parts.
    unit : str
        What would be valued: ``"row"`` or ``"owner"``.
    """

    n_rows: int
    n_tests: int
    n_games: int
    support_sizes: Ints
    levels: Levels
    method: str
    chosen: str
    samples: bool
    trainings: int | None
    classes: int | None
    first_look: int
    seconds_per_training: float
    target: Forecast | None
    faster: str
    model: str
    score: str
    support: str
    trainer: str
    notes: list[Note] = field(default_factory=list)
    memory: int | None = None
    unit: str = "row"

    def __repr__(self) -> str:
        levels, sizes = self.levels, self.support_sizes
        players, tests = kinds(self.unit)
        error = f" ± {in_words(levels.lsmr_stderr)} (estimated; ± is one standard error)" if levels.lsmr_stderr else ""
        growth = ", ".join(f"{in_words(count // t)} (of {t})" for t, count in levels.growth)
        chosen = f" ({self.chosen})" if self.chosen else ""
        lines = [
            f"Plan for {self.n_rows} {players} and {self.n_tests} {tests}",
            f"  model    {self.model}",
            f"  score    {self.score}",
            f"  support  {self.support}: {sizes.min()} to {sizes.max()} {self.unit}s, median {np.median(sizes):g}",
            f"  games    {self.n_games} distinct supports",
            f"  method   {self.method}{chosen}",
            f"  trainer  {self.trainer}, {duration(self.seconds_per_training)} per training",
            "",
            f"  {'trainings':<26}{'number':>12}  {'time':>12}",
            *(_line(*row) for row in self._table()),
            *self._until_target(),
            "",
            f"  distinct subsets  {in_words(levels.lsmr)}{error}; {levels.reused:.1%} of the subsets are reused",
            f"  distinct subsets per test row, over the first test rows: {growth}",
        ]
        if self.memory is not None:
            lines.append(
                f"  memory   at most about {self.memory / 1e9:.1f} GB, beside that of Python and its libraries"
            )
        if self.faster:
            lines.append(f"  {self.faster}")
        return "\n".join(lines + [f"  note     {note}" for note in self.notes])

    def _table(self) -> list[tuple[str, int, float, str]]:
        """The alternatives, and what would be run: name, trainings, seconds, and how to call it."""
        levels = self.levels
        table = [
            self._row("global", levels.global_, ""),
            self._row("local, player by player", levels.local, "method='baseline'"),
            self._row("subset by subset", levels.subset_centric, "method='subset-centric'"),
            self._row("each subset once (LSMR)", levels.lsmr, "method='exact'"),
        ]
        if self.classes is not None:
            return [*table, ("equivalence classes", self.classes, self.classes / CLASSES_PER_SECOND, "this run")]
        if self.samples:
            table.append(self._row("sampled, until first look", self.first_look, "this run"))
        if self.trainings is not None:
            name = "sampled, budget" if self.samples else f"all of {self.method}"
            table.append(self._row(name, self.trainings, "this run"))
        return table

    def _until_target(self) -> list[str]:
        """What a sampled run takes until its target, with a line for the range."""
        found = self.target
        if found is None:
            return []
        if found.trainings is None or found.seconds is None:
            return [f"  {f'until {found.aim:g}':<26}{'cannot tell':>12}  ({found.unknown})"]
        lines = [_line(f"until {found.aim:g}, estimated", found.trainings, found.seconds, "this run")]
        ranges = found.trainings_range, found.seconds_range
        if ranges[0] is not None and ranges[1] is not None and ranges[0][0] < ranges[0][1]:
            for place, name in enumerate(("  at least", "  at most")):
                lines.append(_line(name, ranges[0][place], ranges[1][place], ""))
        return lines

    def _row(self, name: str, count: int, way: str) -> tuple[str, int, float, str]:
        return name, count, min(count, 10**300) * self.seconds_per_training, way


def _line(name: str, count: int, seconds: float, way: str) -> str:
    return f"  {name:<26}{in_words(count):>12}  {duration(seconds):>12}  {way}".rstrip()


@documented
def plan(
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
) -> Plan:
    """Say what `value` with the same arguments would do and cost; trains a few coalitions.

    What `value` would refuse is refused here.

    Parameters
    ----------
    seeds : int, optional
        As in `value`; the plan is that of one seed.
    store : path or `localshapley.Store`, optional
        As in `value`. What is tried out is looked up there, and kept, so that `value` need not train it again; what it
        holds is still counted as if it had to be trained.
    max_seconds : float, optional
        As in `value`; nothing is tried out for longer than this either.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does while the first rounds are tried out: end the call, or return the plan without a forecast.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import localshapley as ls
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> p = ls.plan(X[::2], y[::2], X[1::2], y[1::2], model="knn")
    >>> p.levels.subset_centric, p.chosen
    (76800, 'closed form: coalitions with equal scores are counted together, and none is trained')
    """
    question, of_seeds = Question.of(Table, locals(), in_parts=True), list[Note]()
    question = question if seeds is None else of_one_seed(question, seeds)
    problem, limits = grow_support(question) if support == AUTO else (build_problem(question), question.limits)
    if seeds is not None:
        problem.check_seeds(seeds)
        of_seeds.append(Note("one-run-of-several", f"this is one of {seeds} runs, one per seed.", n_seeds=seeds))
    graph = problem.graph
    limits.check_room(graph)
    with announcing_compilation(progress):
        levels = count_levels(graph, seed=seed)
        executor = Executor(problem.trainer, max_seconds=limits.max_seconds, on_interrupt=on_interrupt)
        run = limits.method.start(graph, executor, limits)
        seconds = executor.pace(graph, seed)
        with opened(store if run.samples else None, problem.contents) as executor.store:
            target = until_target(run, graph, executor, limits)
    longest = 0.0 if run.counts != "trainings" else seconds * (run.total or run.first_look)
    longest = max(longest, 0.0 if target is None or target.seconds is None else target.seconds)
    return Plan(
        n_rows=graph.n_all,
        memory=problem.memory,
        unit=problem.unit,
        n_tests=graph.n_tests,
        n_games=graph.n_games,
        support_sizes=graph.support_sizes,
        levels=levels,
        method=run.title,
        chosen=run.why,
        samples=run.samples,
        trainings={"trainings": run.total, "parts": 0}.get(run.counts),
        classes=run.total if run.counts == "classes" else None,
        first_look=min(levels.lsmr, run.first_look),
        seconds_per_training=seconds,
        target=target,
        faster=what_is_faster(run, graph, executor, limits) if longest > 60 else "",
        model=problem.model,
        score=problem.score,
        support=problem.support,
        trainer=problem.trainer.name,
        notes=[*problem.notes, *run.notes, *of_seeds],
    )
