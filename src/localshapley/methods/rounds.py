"""What the sampled baselines share: coalitions go out round by round, and their scores come back in the same order."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints, chosen_lists, offsets
from localshapley.coalitions.batch import Batch
from localshapley.coalitions.games import SupportGraph
from localshapley.errors import InvalidArgumentError
from localshapley.methods.base import EVERY_SUBSET, GLOBAL_NOTE, CoalitionScorer, Method, Run
from localshapley.methods.limits import Limits
from localshapley.models.trainer import Work
from localshapley.notes import Note
from localshapley.sampling.estimate import Estimate, PerGame, hidden
from localshapley.stopping import Rule

FIRST_DRAWS = 10


@dataclass(frozen=True)
class RoundMethod(Method):
    """A method that draws every game again and again.

    Parameters
    ----------
    max_numbers : int
        Maximum size of a block of draws, in numbers, and of the scores of a batch, in memory at a time.
    """

    max_numbers: int = field(default=2**22, kw_only=True, repr=False)

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Limits) -> RoundRun:
        """Begin a run; a budget that is too small for two draws of all games is refused."""
        run = self.make_run(graph.apart() if settings.per_test else graph, executor, settings.seed)
        needed = run.planned + 2 * run.each
        if settings.budget is not None and settings.budget < needed:
            raise InvalidArgumentError(
                f"budget={settings.budget:,} is too small: {needed:,} trainings are needed for a standard error "
                "(all games twice). Give a larger budget, or fewer rows."
            )
        run.total, run.first_look = settings.budget, run.planned + FIRST_DRAWS * run.each
        return run

    @abstractmethod
    def make_run(self, graph: SupportGraph, executor: CoalitionScorer, seed: int) -> RoundRun:
        """The run of this method."""


class RoundRun(Run):
    """Draws of every game, in rounds; a round is processed in blocks, which fit into memory.

    A block has at most as many draws as there were before it, so that not all is lost when time is up.

    The empty and the full coalition of every game go out once, before the first round.

    Parameters
    ----------
    graph : SupportGraph
    executor : CoalitionScorer
    method : RoundMethod
    seed : int
    each : int
        Maximum number of trainings of one draw of all games.

    Attributes
    ----------
    draws : int
        Finished draws of each game.
    n_scored : int
        Coalitions scored so far.
    nothing, whole : arrays of shape (n_tests,)
        Scores of the empty and the full coalition, in the order of `graph.tests`.
    """

    kernels = ("list_arrived",)
    first_block = 2
    """Draws of the first block."""

    def __init__(
        self, graph: SupportGraph, executor: CoalitionScorer, method: RoundMethod, seed: int, each: int
    ) -> None:
        self.graph, self.executor, self.each = graph, executor, each
        self.title, self._is_global = method.title, method.plays_all
        self.draws = self.n_scored = 0
        self.nothing, self.whole = np.zeros((2, graph.n_tests))
        self.n_slots, n_games = len(graph.players), graph.n_games
        self.game_of_slot = np.repeat(np.arange(n_games), graph.sizes)
        self._random = np.random.default_rng([seed, graph.n_all])
        self._arrival: Ints = (np.arange(self.n_slots) - graph.indptr[self.game_of_slot])[np.newaxis]  # at the ends
        self._ends = True
        self._queue: AnyArray = np.array([(g, k) for g in range(n_games) for k in sorted({0, int(graph.sizes[g])})])
        self._given = self._answered = 0
        self._lock = Lock()  # coalitions may be taken in a different thread from the one that scores come back in
        self._last = self._pending = self._in_block = 0
        self._low, self._high = np.zeros((2, n_games))  # scores of each game less that of its empty coalition
        self._batch_size = max(1, method.max_numbers // int(graph.tests_per_game.max(initial=1)))
        self._block_size = max(1, method.max_numbers // max(self.n_slots, graph.n_tests, 1))

    @property
    def least_look(self) -> int:
        """The first block."""
        return self.planned + self.first_block * self.each

    # What a subclass implements.

    @abstractmethod
    def _begin(self, n: int) -> None:
        """Draw a block of `n` draws of every game; `_arrival` says when players arrive."""

    @abstractmethod
    def _first(self) -> AnyArray:
        """Coalitions of the block that go out first, as rows (draw · games + game, key)."""

    def _next(self) -> AnyArray:
        """Those that go out once the scores of the others are back; none if the block is done."""
        return self._queue[:0]

    def _places(self, draws: Ints, games: Ints, keys: Ints) -> tuple[Ints, Ints]:
        """The players of a coalition are those that arrive from a first place on, and before a last one."""
        return np.zeros_like(keys), keys

    def _tests(self, draws: Ints, games: Ints) -> tuple[Ints, Indices]:
        """The test rows that each is scored on, as lists one after the other."""
        return chosen_lists(self.graph.test_indptr, self.graph.tests, games)

    @abstractmethod
    def _score(self, draws: Ints, games: Ints, keys: Ints, batch: Batch, scores: Floats) -> None:
        """Take in the scores of coalitions."""

    @abstractmethod
    def _finish(self) -> None:
        """Take in a block that has all of its scores, and count its draws."""

    @abstractmethod
    def _by_game(self) -> tuple[Floats, Floats, Floats]:
        """Values, variances and values by each half of the draws, for the players of each game."""

    def _later(self) -> int:
        """Maximum number of coalitions of the block that go out after those that are out now."""
        return 0

    @property
    def notes(self) -> list[Note]:
        """What a reader of the values should know."""
        return [GLOBAL_NOTE] if self._is_global else []

    # The coalitions of a round: the run is their schedule, and takes in their scores.

    def begin(self) -> Work:
        """The empty and the full coalition of every game."""
        return self.executor.feed(self, self)

    def train(self) -> Work:
        """The coalitions of the round; later ones may depend on the scores of earlier ones."""
        while self.left() > 0:
            yield from self.executor.feed(self, self)

    @property
    def planned(self) -> int:
        """Coalitions scored, and to be scored for the draws so far, at most."""
        return self.n_scored + self.left()

    @property
    def distinct(self) -> int:
        """Coalitions scored."""
        return self.n_scored

    def left(self) -> int:
        """Coalitions still to be scored, at most."""
        return len(self._queue) - self._answered + self._later() + self._pending * self.each

    def cut_short(self) -> None:
        """Forget the draws that are not finished."""
        self._queue, self._given, self._answered = np.empty((0, 2), dtype=np.int64), 0, 0
        self._pending = self._in_block = 0

    def take(self, size: int) -> Batch | None:
        """The next coalitions, at most `size`; None when what follows depends on scores that are not back."""
        with self._lock:
            ids = self._queue[self._given : self._given + min(size, self._batch_size)]
            if not len(ids):
                return None
            self._given += len(ids)
            return self._batch(ids)

    def _batch(self, ids: AnyArray) -> Batch:
        from localshapley.kernels.draws import list_arrived

        graph = self.graph
        draws, games = np.divmod(ids[:, 0], graph.n_games)
        first, stop = self._places(draws, games, np.ascontiguousarray(ids[:, 1]))
        indptr = offsets(stop - first)
        players: Indices = np.empty(indptr[-1], dtype=np.int32)
        list_arrived((graph.indptr, graph.players), self._arrival, draws, games, first, stop, players)
        return Batch(indptr, players, *self._tests(draws, games), np.arange(len(ids) + 1), games.astype(np.int32))

    def add(self, batch: Batch, scores: Floats) -> None:
        """Take in the scores of a batch; batches come back in the order in which they were taken."""
        with self._lock:
            self._add(batch, scores)

    def _add(self, batch: Batch, scores: Floats) -> None:
        ids = self._queue[self._answered : self._answered + len(batch)]
        self._answered += len(batch)
        self.n_scored += len(batch)
        draws, games = np.divmod(ids[:, 0], self.graph.n_games)
        if self._ends:
            self._take_ends(games, ids[:, 1], batch, scores)
        else:
            self._score(draws, games, ids[:, 1], batch, scores)
        if self._answered == len(self._queue):
            self._ends = False
            self._follow()

    def _take_ends(self, games: Ints, sizes: Ints, batch: Batch, scores: Floats) -> None:
        graph = self.graph
        for i, (game, size) in enumerate(zip(games, sizes, strict=True)):
            here = slice(graph.test_indptr[game], graph.test_indptr[game + 1])
            found = scores[batch.test_indptr[i] : batch.test_indptr[i + 1]]
            if size == 0:
                self.nothing[here] = found
            if size == graph.sizes[game]:
                self.whole[here] = found
        self._see(np.arange(self.graph.n_games), self.sums(self.whole))

    def _see(self, games: Ints, sums: Floats) -> None:
        """Keep the range of the scores of some games, which are summed over their test rows."""
        sums = sums - self.sums(self.nothing)[games]
        np.minimum.at(self._low, games, sums)
        np.maximum.at(self._high, games, sums)

    def sums(self, of_tests: Floats) -> Floats:
        """Sums over the test rows of each game, of numbers in the order of `graph.tests`."""
        found: Floats = np.add.reduceat(of_tests, self.graph.test_indptr[:-1], axis=-1)
        return found

    def _follow(self) -> None:
        """Get the next coalitions of the round ready, from a new block of draws if need be."""
        self._given = self._answered = 0
        self._queue = self._next() if self._in_block else self._queue[:0]
        while not len(self._queue) and (self._in_block or self._pending):
            if self._in_block:
                self._finish()
            self._in_block = min(self._pending, self._block_size, max(self.first_block, self.draws))
            self._pending -= self._in_block
            if self._in_block:
                self._begin(self._in_block)
                self._queue = self._first()

    def random_order(self, n: int) -> tuple[Ints, Ints]:
        """Draw permutations of every game, the same ones however many are asked for at a time.

        Returns
        -------
        order : array of shape (n, n_slots)
            Players of each game, by their places in `graph.players`, in the order of arrival.
        arrival : array of shape (n, n_slots)
            When each player of each game arrives, from 0.
        """
        random = self._random.random((n, self.n_slots))
        order: Ints = np.argsort(random + self.game_of_slot, axis=1, kind="stable")
        arrival = np.empty_like(order)
        np.put_along_axis(arrival, order, np.arange(self.n_slots) - self.graph.indptr[self.game_of_slot], axis=1)
        return order, arrival

    # Rounds and their estimates.

    @property
    def can_look(self) -> bool:
        """Whether there are enough finished draws for values and their errors."""
        return self.draws > 1

    @property
    def ended(self) -> Note | None:
        """Why there is no further round; None if the budget is the reason."""
        return None if self.each else EVERY_SUBSET

    def draw(self, left: float, estimate: Estimate | None, rule: Rule | None) -> bool:
        """Begin a round, a tenth more draws than before; False if there is no room for more."""
        if not self.each:
            return False
        wanted = rule.step if rule is not None and rule.step else max(FIRST_DRAWS, self.draws // 10)
        self._pending = self._last = int(min(wanted, left // self.each))
        self._start()
        return self._last > 0

    def _start(self) -> None:
        self._follow()

    def estimate(self) -> Estimate:
        """Return the estimate from all draws so far."""
        if not self.each:  # games of one player at most: there is nothing to draw
            self._in_block = 1
            self._begin(1)
            self._finish()
            self._in_block = 0
        graph = self.graph
        by_game, variance, halves = self._by_game()
        return Estimate(
            values=graph.by_player(by_game),
            stderr=np.sqrt(graph.by_player(variance)),
            halves=np.array([graph.by_player(half) for half in halves]),
            draws_per_game=self.draws,
            draws_since=self._last,
            trainings=self.n_scored,
            scale=float((self._high - self._low).max(initial=0.0)),
            exact=not self.each,
            unseen=0.0 if not self.each else self._unseen(),
            per_test=PerGame(graph, by_game, halves),
        )

    def _unseen(self) -> float:
        """How far values may be moved by coalitions that have not been drawn yet."""
        sizes, ranges = self.graph.sizes, self._high - self._low
        return hidden(np.maximum(sizes - 1, 0) / (sizes + 1), np.full(len(sizes), float(self.draws)), ranges)
