"""How far local values are from global ones: is the support large enough?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from localshapley.arrays import Floats, Indices
from localshapley.coalitions.batch import Coalitions
from localshapley.compiling import told_of_compiling
from localshapley.errors import InvalidArgumentError
from localshapley.games import SupportGraph
from localshapley.models.trainer import Trainer
from localshapley.problem import pose
from localshapley.progress import Progress, ProgressSetting
from localshapley.stopping import rank_correlation
from localshapley.supports.base import Support, check_whole

ENOUGH = 0.25
"""A gap of up to a quarter of the values' size leaves their order mostly as it is."""


@dataclass(frozen=True, repr=False)
class LocalityGap:
    """How far local values are from global ones, on a sample of test rows.

    Attributes
    ----------
    gap : float
        Mean absolute difference between local and global values, relative to the mean absolute global value.
    gap_stderr : float
    noise : float
        The gap that sampling alone would show if there were none; read `gap` against it.
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

    def __repr__(self) -> str:
        return "\n".join(
            [
                f"Locality gap over {len(self.tests)} test rows, {self.permutations} permutations, "
                f"{self.trainings:,} trainings",
                f"  gap               {self.gap:.3f} ± {self.gap_stderr:.3f} of the values' size "
                f"(sampling alone: {self.noise:.3f})",
                f"  rank correlation  {self.rank_correlation:.3f} ± {self.rank_correlation_stderr:.3f}",
                f"  advice            {self.advice}",
            ]
        )


def locality_gap(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    model: Any,
    support: Support | None = None,
    score: Any = None,
    empty: float | None = None,
    n_tests: int = 20,
    budget: int = 20_000,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
) -> LocalityGap:
    """Estimate how far the local values are from the global ones, on a sample of test rows.

    Random permutations of all training rows give the global marginal of every row; the same permutation, with
    the rows outside the support left out, gives its local marginal. Their difference has the gap as its mean, and
    where locality is exact it is zero without any noise.

    Parameters
    ----------
    X, y, X_test, y_test, model, support, score, empty, seed, n_jobs, progress
        As in `value`.
    n_tests : int, default=20
        Test rows to sample.
    budget : int, default=20000
        Most trainings. A permutation takes one for each training row and one for each row of a sampled support;
        at least two permutations are needed.

    Returns
    -------
    LocalityGap
    """
    check_whole("locality_gap", "n_tests", n_tests)
    check_whole("locality_gap", "budget", budget)
    problem = pose(
        X, y, X_test, y_test, model=model, support=support, score=score, empty=empty, seed=seed, n_jobs=n_jobs
    )
    rng = np.random.default_rng(seed)
    graph = problem.graph
    tests = np.sort(rng.permutation(graph.n_tests)[:n_tests]).astype(np.int32)
    games = SupportGraph([graph.support(t) for t in tests], graph.n_players)
    each = graph.n_players + int(games.sizes.sum())  # equal supports walk together
    permutations = (budget - 1) // each
    if permutations < 2:
        raise InvalidArgumentError(
            f"budget={budget:,} is too small: two permutations take {2 * each + 1:,} trainings. Give more, fewer "
            "n_tests, or value fewer training rows."
        )
    permutations = min(permutations, 1000)
    local = np.zeros((permutations, graph.n_players))
    total = np.zeros((permutations, graph.n_players))
    nothing = problem.trainer.evaluate(Coalitions.from_lists([[]], [tests]))
    with told_of_compiling(progress), Progress(progress, permutations * each, "locality check") as bar:
        for p in range(permutations):
            order = rng.permutation(graph.n_players).astype(np.int32)
            total[p] = _walk(problem.trainer, order, tests, nothing).sum(axis=1)
            for game in range(games.n_games):
                own = games.tests[games.test_indptr[game] : games.test_indptr[game + 1]]
                players = order[np.isin(order, games.game(game))]
                local[p] += _walk(problem.trainer, players, tests[own], nothing[own], graph.n_players).sum(axis=1)
            bar.advance(each)
    return _summarise(local, total, tests, permutations * each + 1, problem.support, problem.notes)


def _walk(trainer: Trainer, order: Indices, tests: Indices, nothing: Floats, n_players: int | None = None) -> Floats:
    """Marginal of each player along one permutation, for each test row: shape (n_players, n_tests)."""
    marginals = np.zeros((len(order) if n_players is None else n_players, len(tests)))
    if len(order):
        prefixes = Coalitions.from_lists([order[: i + 1] for i in range(len(order))], [tests] * len(order))
        scores = np.vstack([nothing, trainer.evaluate(prefixes).reshape(len(order), len(tests))])
        marginals[order] = np.diff(scores, axis=0)
    return marginals


def _summarise(
    local: Floats, total: Floats, tests: Indices, trainings: int, support: Support, notes: list[str]
) -> LocalityGap:
    m = len(local)
    difference = total - local
    noise_each = difference.std(axis=0, ddof=1) / np.sqrt(m)
    size = np.abs(total.mean(axis=0)).mean()
    # Local values come out of the same permutations, so that their noise is shared and falls out of the gap.
    gap, gap_stderr = _jackknife(_relative_size, difference, total)
    rank, rank_stderr = _jackknife(rank_correlation, local, total)
    noise = float(np.sqrt(2 / np.pi) * noise_each.mean() / max(size, 1e-300))
    beyond = float(np.sqrt(max(gap**2 - noise**2, 0.0)))
    if beyond <= ENOUGH:
        advice = "the support is large enough"
        if noise > ENOUGH:
            advice = "no gap was seen beyond the sampling noise, which is large: give a larger budget to be sure"
    else:
        advice = f"the support misses much of the global values; try {support.larger()}"
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
        notes=notes,
    )


def _jackknife(statistic: Any, a: Floats, b: Floats) -> tuple[float, float]:
    """A statistic of two means over permutations, and its delete-one standard error."""
    m = len(a)
    without = [statistic((a.sum(axis=0) - a[i]) / (m - 1), (b.sum(axis=0) - b[i]) / (m - 1)) for i in range(m)]
    return statistic(a.mean(axis=0), b.mean(axis=0)), float(np.sqrt((m - 1) * np.var(without)))


def _relative_size(a: Floats, b: Floats) -> float:
    return float(np.abs(a).mean() / max(np.abs(b).mean(), 1e-300))
