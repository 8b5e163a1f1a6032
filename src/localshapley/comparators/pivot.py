"""LSMR-A as in the paper: draws that miss their pivot are discarded.

With corrected weights it is unbiased, but so noisy that it is here for comparison only. As printed it divides by the
probability with which another game would have drawn the subset, and is biased where supports differ in size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.sampled import Collection, log_subsets
from localshapley.errors import InvalidArgumentError, warn
from localshapley.methods.base import CoalitionScorer, Collecting, Method
from localshapley.methods.limits import Limits
from localshapley.notes import Note
from localshapley.sampling.estimate import Estimate, hidden
from localshapley.stopping import Rule

FIRST_DRAWS = 100


@dataclass(frozen=True)
class Pivot(Method):
    """The paper's LSMR-A with corrected weights: unbiased, noisy, for comparison."""

    name = "pivot"
    keeps_tests = False

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> PivotRun:
        """Begin a run."""
        return PivotRun(graph, executor, settings, self.title)


class PivotRun(Collecting):
    """Draws subsets as the paper does, equally many for each game, and keeps those for which the game is the pivot.

    Parameters
    ----------
    graph : SupportGraph
    executor : CoalitionScorer
    settings : Limits
    title : str
    printed : bool
        Whether to weigh as the paper prints it.
    """

    kernels = ("draw_prefixes", "fill_rows", "add_weighted", "rehash", "games_holding", "keep")

    def __init__(
        self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits, title: str, *, printed: bool = False
    ) -> None:
        self.graph, self.title, self._executor, self._printed = graph, title, executor, printed
        self.total, self.first_look = settings.budget, FIRST_DRAWS * graph.n_games
        self.collection = Collection(graph, settings.seed)
        self.draws = self._last = 0  # for each game
        self._found = 0
        self._halves = np.zeros(2, dtype=np.int64)
        self._hits = np.zeros((0, 2), dtype=np.int64)  # by row and half of the draws

    @property
    def ended(self) -> Note | None:
        """Why there is no further round; None if the budget is the reason."""
        return None if self._found else Note("nothing-new-drawn", "no new subsets drawn")

    def draw(self, left: float, estimate: Estimate | None, rule: Rule | None) -> bool:
        """Draw more subsets for each game, half as many again as before; False if there is no room for more."""
        if rule is None and self._last and not self._found:
            return False  # nothing new is drawn, so the budget would never be spent
        draws = rule.step if rule is not None and rule.step else max(FIRST_DRAWS, self.draws // 2)
        while not self._draw(draws, left):
            if draws == 1:
                if self.draws == 0:
                    n_games = self.graph.n_games
                    raise InvalidArgumentError(f"budget is too small for one draw of each of the {n_games} games.")
                return False
            draws //= 2
        return True

    def _draw(self, draws: int, left: float) -> bool:
        """Draw `draws` subsets for each game; False, and nothing kept, if over `left` of them are new."""
        from localshapley.kernels.draws import draw_pivots

        graph, collection = self.graph, self.collection
        before = collection.n_rows
        collection.reserve(draws * graph.n_games + 1, draws * int(graph.sizes.sum()) + int(graph.sizes.max(initial=0)))
        hits = np.zeros((len(collection.keys), 2), dtype=np.int64)
        hits[: len(self._hits)] = self._hits
        collection.n_rows = draw_pivots(
            graph.arrays, graph.masks, draws, collection.streams, before, collection.arrays, hits
        )
        self._found = collection.n_rows - before
        if self._found > left:
            collection.truncate(before)
            return False
        self.draws += draws
        self._last = draws
        self._halves += [(draws + 1) // 2, draws // 2]
        self._hits = hits[: collection.n_rows]
        return True

    def estimate(self) -> Estimate:
        """Return the estimate from all draws so far."""
        from localshapley.kernels.draws import add_weighted

        graph, collection = self.graph, self.collection
        collection.gather()
        row = np.repeat(np.arange(collection.n_rows), np.diff(collection.pair_indptr))
        k = collection.sizes[row]
        n = graph.sizes[collection.games]
        log_total = log_subsets(n, k)
        log_chance = -np.log(n + 1) - log_total
        if not self._printed:
            log_chance = log_chance[collection.pair_indptr[:-1]][row]  # of the pivot, the first game of each row
        scaled = collection.scores * np.exp(-log_total - log_chance)
        sums, squares = np.zeros((2, graph.n_players)), np.zeros(graph.n_players)
        add_weighted(collection.subsets, graph.arrays, scaled, self._hits, sums, squares, np.zeros(graph.n_players))
        halves = sums / np.maximum(self._halves, 1)[:, None]
        return Estimate(
            values=sums.sum(axis=0) / self.draws,
            stderr=np.sqrt(squares) / self.draws,  # of the second moment, of which the mean is a small part
            halves=halves,
            draws_per_game=self.draws,
            draws_since=self._last,
            trainings=collection.n_rows,
            scale=float(collection.ranges().max(initial=0.0)),
            unseen=hidden(np.ones(graph.n_games), np.full(graph.n_games, float(self.draws)), collection.ranges()),
        )


@dataclass(frozen=True)
class PivotPrinted(Method):
    """The paper's LSMR-A with its printed weights, which divide by a probability other than that of the draw."""

    name = "pivot-printed"
    keeps_tests = False

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> PivotRun:
        """Begin a run; warns where it will be biased."""
        if len(np.unique(graph.sizes)) > 1:
            warn(
                "method='pivot-printed' is biased where supports differ in size, as they do here; use 'sample', or "
                "'pivot' for the paper's estimator with corrected weights."
            )
        return PivotRun(graph, executor, settings, self.title, printed=True)
