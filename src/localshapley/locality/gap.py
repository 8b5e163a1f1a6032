"""How far local values are from global ones: is the support large enough?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from localshapley.arrays import Floats, Indices
from localshapley.coalitions.batch import Coalitions, ListSchedule
from localshapley.coalitions.games import SupportGraph
from localshapley.engine.executor import Executor
from localshapley.engine.run_store import StoreSetting, opened
from localshapley.errors import InvalidArgumentError
from localshapley.models.trainer import Work
from localshapley.notes import Note
from localshapley.parameter_docs import documented
from localshapley.problem.base import LocalProblem
from localshapley.problem.build import build_problem
from localshapley.question import L, Question, TableInput
from localshapley.runtime.argument_checks import check_whole
from localshapley.runtime.compiling import announcing_compilation
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.stopping import rank_correlation
from localshapley.supports.base import Support

ENOUGH = 0.25
"""A gap of up to a quarter of the values' size leaves their order mostly unchanged."""


@dataclass(frozen=True, repr=False, eq=False)
class LocalityGap:
    """How far local values are from global ones, on a sample of test rows.

    Attributes
    ----------
    gap : float
        Mean absolute difference between local and global values, relative to the mean absolute global value.
    gap_stderr : float
    noise : float
        The gap that sampling alone would show if there were none; compare `gap` with it.
    rank_correlation : float
        Spearman's correlation of local with global values.
    rank_correlation_stderr : float
    enough : bool
        Whether the gap beyond the noise is at most a quarter.
    advice : str
    local, global_ : arrays of shape (n_rows,)
        The estimated values over the sampled test rows.
    tests : int array
        The sampled test rows.
    permutations, trainings : int
        What a store held was not trained.
    notes : list of Note
    tested : str
        What the tests are: ``"test rows"``, ``"test nodes"``, or games of training nodes.
    """

    gap: float
    gap_stderr: float
    noise: float
    rank_correlation: float
    rank_correlation_stderr: float
    enough: bool
    advice: str
    local: Floats
    global_: Floats
    tests: Indices
    permutations: int
    trainings: int
    notes: list[Note] = field(default_factory=list)
    tested: str = "test rows"

    def __repr__(self) -> str:
        return "\n".join(
            [
                f"Locality gap over {len(self.tests)} {self.tested}, {self.permutations} permutations, "
                f"{self.trainings:,} trainings",
                f"  gap               {self.gap:.3f} ± {self.gap_stderr:.3f} of the values' size "
                f"(sampling alone: {self.noise:.3f})",
                f"  rank correlation  {self.rank_correlation:.3f} ± {self.rank_correlation_stderr:.3f} "
                "(± is one standard error)",
                f"  advice            {self.advice}",
            ]
        )


@documented
def locality_gap(
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
    n_tests: int = 20,
    budget: int = 20_000,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
    owners: Any = None,
    max_seconds: float | None = None,
    store: StoreSetting = None,
    on_error: str = "raise",
    on_interrupt: str = "raise",
) -> LocalityGap:
    """Estimate how far the local values are from the global ones, on a sample of test rows.

    Random permutations of all training rows give the global marginal of every row; the same permutation, with
    the rows outside the support left out, gives its local marginal. Their difference has the gap as its mean, and
    where locality is exact it is zero without any noise. With `cv` the global value of a row is over the rows outside
    the fold of each test row.

    Parameters
    ----------
    support : `localshapley.supports` object, optional
        Which training rows can matter to a test row; by default the family that belongs to the model.
    n_tests : int, default=20
        Test rows to sample.
    budget : int, default=20000
        Maximum number of trainings. A permutation takes one for each training row and one for each row of a sampled
        support; at least two permutations are needed.
    max_seconds : float, optional
        Walk no more permutations after this time; two are finished in any case.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does: end the run, or return what the permutations so far show, if there are two.

    Returns
    -------
    LocalityGap
    """
    return measure_gap(Question.of(TableInput, locals()), n_tests, budget)


def measure_gap(question: Question[L], n_tests: int, budget: int) -> LocalityGap:
    """The gap of the problem of a question, on some of its tests."""
    check_whole("n_tests", n_tests)
    check_whole("budget", budget)
    problem, limits = build_problem(question), question.limits
    rng, graph = np.random.default_rng(limits.seed), problem.graph
    tests = np.sort(rng.permutation(graph.n_tests)[:n_tests]).astype(np.int32)
    walks = ArrivalOrders(problem, tests, rng)
    near = walks.near(problem)
    each = walks.each + int(near.sizes.sum())
    permutations = (budget - 1) // each
    if permutations < 2:
        raise InvalidArgumentError(
            f"budget={budget:,} is too small: two permutations take {2 * each + 1:,} trainings. Give a larger "
            f"budget, a smaller n_tests, or fewer {problem.unit}s to value."
        )
    permutations = min(permutations, 1000)
    bar = Progress(limits.progress, permutations * each, "locality check")
    with opened(question.store, problem.contents) as known, announcing_compilation(limits.progress), bar:
        executor = Executor(problem.trainer, known, max_seconds=limits.max_seconds, on_interrupt=limits.on_interrupt)
        walks.draw(permutations)
        gains, ended = walks.walk(executor, [walks.everyone, near], permutations, bar)
        notes = list[Note]() if known is None else list(known.notes)
    if ended:
        text = f"only {len(gains)} of {permutations} permutations were walked: {ended}."
        notes.append(Note("permutations-cut", text, n_walked=len(gains), n_asked=permutations, ended=ended))
    return summarise(gains[:, 1], gains[:, 0], tests, executor.counts.trainings, problem, notes)


class ArrivalOrders:
    """Random orders in which all players arrive, and what each adds to a sample of the test rows.

    Parameters
    ----------
    problem : LocalProblem
        Any support of the same rows.
    tests : int array
        The sampled test rows.
    rng : random generator

    Attributes
    ----------
    everyone : SupportGraph
        The global games of the sampled test rows.
    each : int
        Coalitions that arise in these while all players arrive.
    """

    def __init__(self, problem: LocalProblem, tests: Indices, rng: np.random.Generator) -> None:
        self.tests, self._rng = tests, rng
        self.everyone = SupportGraph([problem.everyone_for(int(t)) for t in tests], problem.graph.n_players)
        self.each = int(self.everyone.sizes.sum())
        self.orders: list[Indices] = []
        self._nothing: Floats | None = None

    def near(self, problem: LocalProblem) -> SupportGraph:
        """The games of the sampled test rows; equal supports share a walk."""
        return SupportGraph([problem.graph.support(t) for t in self.tests], problem.graph.n_players)

    def draw(self, n: int) -> None:
        """Draw orders."""
        self.orders = [self._rng.permutation(self.everyone.n_players).astype(np.int32) for _ in range(n)]

    def walk(
        self, executor: Executor, graphs: Sequence[SupportGraph], n: int, bar: Progress
    ) -> tuple[Floats, Note | None]:
        """See what each player adds as it arrives.

        Returns
        -------
        gains : array of shape (n_orders, n_graphs, n_players)
            In the first `n` orders, or fewer where time is up or Ctrl-C ends it; there are two in any case.
        ended : Note or None
            What ended it early; None if nothing did.
        """
        gains: list[Floats] = []
        work = self._arrivals(executor, graphs, self.orders[:n], gains)
        ended = executor.drain(work, bar, may_stop=lambda: len(gains) >= 2)
        return np.array(gains), ended

    def _arrivals(
        self, executor: Executor, graphs: Sequence[SupportGraph], orders: Sequence[Indices], gains: list[Floats]
    ) -> Work:
        """Have the coalitions of all orders scored, one order after the other; adds what players gain in each."""
        each = sum(int(graph.sizes.sum()) for graph in graphs)
        if not each:
            gains += [np.zeros((len(graphs), self.everyone.n_players)) for _ in orders]
        empty = [Coalitions.from_lists([[]], [self.tests])] if self._nothing is None else []
        lists = chain(empty, (self._prefixes(graphs, order) for order in orders))
        found, n_found = list[Floats](), 0
        for batch, scored in executor.scores(ListSchedule(lists, len(empty) + each * len(orders))):
            if self._nothing is None:
                self._nothing = scored.scores
            else:
                found.append(scored.scores)
                n_found += len(batch)
            if n_found == each:
                gains.append(self._gains(graphs, orders[len(gains)], np.concatenate(found), self._nothing))
                found, n_found = [], 0
            yield scored.counts

    def _prefixes(self, graphs: Sequence[SupportGraph], order: Indices) -> Coalitions:
        """The coalitions that arise in each game as its players arrive, game by game."""
        coalitions, tests = list[Indices](), list[Indices]()
        for graph in graphs:
            for game in range(graph.n_games):
                players = _arriving(graph, game, order)
                coalitions += [np.sort(players[: i + 1]) for i in range(len(players))]
                tests += [self.tests[graph.tests_of(game)]] * len(players)
        return Coalitions.from_lists(coalitions, tests)

    def _gains(self, graphs: Sequence[SupportGraph], order: Indices, scores: Floats, nothing: Floats) -> Floats:
        """What each player adds, summed over the test rows; players of other games are skipped."""
        gains = np.zeros((len(graphs), self.everyone.n_players))
        for added, graph in zip(gains, graphs, strict=True):
            for game in range(graph.n_games):
                own, players = graph.tests_of(game), _arriving(graph, game, order)
                if len(players):
                    steps, scores = np.split(scores, [len(players) * len(own)])
                    steps = np.vstack([nothing[own], steps.reshape(len(players), len(own))])
                    added[players] += np.diff(steps, axis=0).sum(axis=1)
        return gains


def _arriving(graph: SupportGraph, game: int, order: Indices) -> Indices:
    """The players of a game in an order of all."""
    return order[np.isin(order, graph.game(game))]


def summarise(
    local: Floats, total: Floats, tests: Indices, trainings: int, problem: LocalProblem, notes: Sequence[Note] = ()
) -> LocalityGap:
    """The gap between what players add in local and in global games, in the same orders."""
    m = len(local)
    difference = total - local
    noise_each = difference.std(axis=0, ddof=1) / np.sqrt(m)
    size = np.abs(total.mean(axis=0)).mean()
    # Local values come from the same permutations, so that their noise is shared and cancels in the gap.
    gap, gap_stderr = _jackknife(_relative_size, difference, total)
    rank, rank_stderr = _jackknife(rank_correlation, local, total)
    noise = float(np.sqrt(2 / np.pi) * noise_each.mean() / max(size, 1e-300))
    beyond = float(np.sqrt(max(gap**2 - noise**2, 0.0)))
    if beyond <= ENOUGH:
        advice = "the support is large enough"
        if noise > ENOUGH:
            advice = "no gap was seen beyond the sampling noise, which is large: give a larger budget to be sure"
    else:
        advice = f"the support misses much of the global values; try {problem.source.larger()}"
    return LocalityGap(
        gap=gap,
        gap_stderr=gap_stderr,
        noise=noise,
        rank_correlation=rank,
        rank_correlation_stderr=rank_stderr,
        enough=beyond <= ENOUGH,
        advice=advice,
        local=local.mean(axis=0),
        global_=total.mean(axis=0),
        tests=tests,
        permutations=m,
        trainings=trainings,
        notes=[*problem.notes, *notes],
        tested=problem.tested,
    )


def _jackknife(statistic: Any, a: Floats, b: Floats) -> tuple[float, float]:
    """A statistic of two means over permutations, and its delete-one standard error."""
    m = len(a)
    without = [statistic((a.sum(axis=0) - a[i]) / (m - 1), (b.sum(axis=0) - b[i]) / (m - 1)) for i in range(m)]
    return statistic(a.mean(axis=0), b.mean(axis=0)), float(np.sqrt((m - 1) * np.var(without)))


def _relative_size(a: Floats, b: Floats) -> float:
    return float(np.abs(a).mean() / max(np.abs(b).mean(), 1e-300))
