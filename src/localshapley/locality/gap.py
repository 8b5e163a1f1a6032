"""How far local values are from global ones: is the support large enough?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from localshapley.arrays import Floats, Indices
from localshapley.coalitions.batch import Coalitions
from localshapley.compiling import announcing_compilation
from localshapley.errors import InvalidArgumentError
from localshapley.games import SupportGraph
from localshapley.inputs.numbers import check_whole
from localshapley.problem.base import LocalProblem
from localshapley.problem.posing import pose
from localshapley.progress import Progress, ProgressSetting
from localshapley.stopping import rank_correlation
from localshapley.supports.base import Support
from localshapley.workers import Bench

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
    notes : list of str
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
    notes: list[str] = field(default_factory=list)
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
    on_error: str = "raise",
) -> LocalityGap:
    """Estimate how far the local values are from the global ones, on a sample of test rows.

    Random permutations of all training rows give the global marginal of every row; the same permutation, with
    the rows outside the support left out, gives its local marginal. Their difference has the gap as its mean, and
    where locality is exact it is zero without any noise.

    Parameters
    ----------
    X, y, X_test, y_test, model, cv, support, score, empty, seed, n_jobs, progress, owners, on_error
        As in `value`. With `cv` the global value of a row is over the rows outside the fold of each test row.
    n_tests : int, default=20
        Test rows to sample.
    budget : int, default=20000
        Maximum number of trainings. A permutation takes one for each training row and one for each row of a sampled
        support; at least two permutations are needed.

    Returns
    -------
    LocalityGap
    """
    check_sizes(n_tests, budget)
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
        on_error=on_error,
        progress=progress,
    )
    return measure(problem, n_tests, budget, seed, progress)


def check_sizes(n_tests: int, budget: int) -> None:
    """Refuse numbers that are none, before anything is done."""
    check_whole("n_tests", n_tests)
    check_whole("budget", budget)


def measure(problem: LocalProblem, n_tests: int, budget: int, seed: int, progress: ProgressSetting) -> LocalityGap:
    """The gap of a problem, on some of its tests."""
    rng, graph = np.random.default_rng(seed), problem.graph
    tests = np.sort(rng.permutation(graph.n_tests)[:n_tests]).astype(np.int32)
    walks = Walks(problem, tests, rng)
    each = walks.each + int(walks.near(problem).sizes.sum())
    permutations = (budget - 1) // each
    if permutations < 2:
        raise InvalidArgumentError(
            f"budget={budget:,} is too small: two permutations take {2 * each + 1:,} trainings. Give a larger "
            f"budget, a smaller n_tests, or fewer {problem.unit}s to value."
        )
    permutations = min(permutations, 1000)
    with announcing_compilation(progress), Progress(progress, permutations * each, "locality check") as bar:
        walks.walk(permutations, bar)
        return walks.gap(problem, bar)


class Walks:
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
    each : int
        Trainings of one order.
    trainings : int
        Trainings so far.
    """

    def __init__(self, problem: LocalProblem, tests: Indices, rng: np.random.Generator) -> None:
        self.tests, self._rng, self._bench = tests, rng, Bench(problem.trainer)
        self._everyone = SupportGraph([problem.everyone_for(int(t)) for t in tests], problem.graph.n_players)
        self.each, self.trainings = int(self._everyone.sizes.sum()), 0
        self._orders: list[Indices] = []

    def near(self, problem: LocalProblem) -> SupportGraph:
        """The games of the sampled test rows; equal supports share a walk."""
        return SupportGraph([problem.graph.support(t) for t in self.tests], problem.graph.n_players)

    def walk(self, n: int, bar: Progress) -> None:
        """Draw orders, and see what each player adds as it arrives."""
        self._nothing = self._bench.train(Coalitions.from_lists([[]], [self.tests])).scores
        self._orders = [self._rng.permutation(self._everyone.n_players).astype(np.int32) for _ in range(n)]
        self._total = self._gains(self._everyone, bar, n)
        self.trainings += 1

    def n_orders(self, problem: LocalProblem, most: float) -> int:
        """Orders that can be walked with the supports of a problem, with `most` trainings in all."""
        left = most - self.trainings
        return int(min(len(self._orders), left // max(int(self.near(problem).sizes.sum()), 1)))

    def gap(self, problem: LocalProblem, bar: Progress, most: float = np.inf) -> LocalityGap:
        """How far the values of a problem are from the global ones."""
        n = self.n_orders(problem, most)
        local = self._gains(self.near(problem), bar, n)
        return _summarise(local, self._total[:n], self.tests, self.trainings, problem)

    def _gains(self, games: SupportGraph, bar: Progress, n: int) -> Floats:
        """What each player adds in each of the first `n` orders."""
        out, each = np.zeros((n, games.n_players)), int(games.sizes.sum())
        for gains, order in zip(out, self._orders[:n], strict=True):
            gains[:] = _gains(games, order, self.tests, self._nothing, self._bench)
            bar.advance(each)
        self.trainings += n * each
        return out


def _gains(games: SupportGraph, order: Indices, tests: Indices, nothing: Floats, bench: Bench) -> Floats:
    """What each player adds as it arrives, summed over the test rows; players of other games are skipped."""
    gains = np.zeros(games.n_players)
    for game in range(games.n_games):
        own, players = games.tests_of(game), order[np.isin(order, games.game(game))]
        if len(players):
            prefixes = [players[: i + 1] for i in range(len(players))]
            coalitions = Coalitions.from_lists(prefixes, [tests[own]] * len(players))
            scores = np.vstack([nothing[own], bench.train(coalitions).scores.reshape(len(players), len(own))])
            gains[players] += np.diff(scores, axis=0).sum(axis=1)
    return gains


def _summarise(local: Floats, total: Floats, tests: Indices, trainings: int, problem: LocalProblem) -> LocalityGap:
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
        notes=problem.notes,
        tested=problem.tested,
    )


def _jackknife(statistic: Any, a: Floats, b: Floats) -> tuple[float, float]:
    """A statistic of two means over permutations, and its delete-one standard error."""
    m = len(a)
    without = [statistic((a.sum(axis=0) - a[i]) / (m - 1), (b.sum(axis=0) - b[i]) / (m - 1)) for i in range(m)]
    return statistic(a.mean(axis=0), b.mean(axis=0)), float(np.sqrt((m - 1) * np.var(without)))


def _relative_size(a: Floats, b: Floats) -> float:
    return float(np.abs(a).mean() / max(np.abs(b).mean(), 1e-300))
