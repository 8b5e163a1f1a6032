"""What passes from the coalitions to the models and on to the estimate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from localshapley.arrays import AnyArray, BatchArrays, CoalitionArrays, Floats, Indices, Ints, SubsetArrays, offsets


@dataclass(frozen=True)
class Coalitions:
    """Coalitions to train, each with the test rows to score, as CSR arrays.

    Coalition ``c`` has the players ``players[indptr[c]:indptr[c + 1]]``, ascending, and is scored on the test
    rows ``tests[test_indptr[c]:test_indptr[c + 1]]``.
    """

    indptr: Ints
    players: Indices
    test_indptr: Ints
    tests: Indices

    @classmethod
    def from_lists(cls, coalitions: Sequence[Iterable[int]], tests: Sequence[Iterable[int]]) -> Coalitions:
        """Make the arrays from a list of coalitions and the list of test rows of each.

        >>> Coalitions.from_lists([[0, 2], []], [[5], [5, 6]]).test_indptr.tolist()
        [0, 1, 3]
        """
        members = [np.sort(np.asarray(list(c), dtype=np.int32)) for c in coalitions]
        scored = [np.asarray(list(t), dtype=np.int32) for t in tests]
        none = [np.empty(0, dtype=np.int32)]
        return cls(
            offsets(np.array([len(c) for c in members], dtype=np.int64)),
            np.concatenate(members + none),
            offsets(np.array([len(t) for t in scored], dtype=np.int64)),
            np.concatenate(scored + none),
        )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def arrays(self) -> CoalitionArrays:
        """All four arrays, as kernels take them."""
        return self.indptr, self.players, self.test_indptr, self.tests

    def coalition(self, c: int) -> Indices:
        """The players of one coalition."""
        return self.players[self.indptr[c] : self.indptr[c + 1]]

    def tests_of(self, c: int) -> Indices:
        """The test rows that one coalition is scored on."""
        return self.tests[self.test_indptr[c] : self.test_indptr[c + 1]]

    def parts(self, n: int) -> list[Coalitions]:
        """Cut into at most `n` parts of about the same number of coalitions."""
        cuts = np.linspace(0, len(self), min(n, len(self)) + 1).astype(int)
        return [self.part(a, b) for a, b in pairwise(cuts)]

    def bounded(self, n_tests: int) -> list[Coalitions]:
        """Cut into parts of at most `n_tests` test rows, or of one coalition."""
        parts, start = [], 0
        while start < len(self):
            stop = int(np.searchsorted(self.test_indptr, self.test_indptr[start] + n_tests, side="right")) - 1
            parts.append(self.part(start, max(stop, start + 1)))
            start = max(stop, start + 1)
        return parts

    def part(self, start: int, stop: int) -> Coalitions:
        """The coalitions from `start` up to `stop`."""
        a, b = self.indptr[start], self.indptr[stop]
        s, t = self.test_indptr[start], self.test_indptr[stop]
        return Coalitions(
            self.indptr[start : stop + 1] - a,
            self.players[a:b],
            self.test_indptr[start : stop + 1] - s,
            self.tests[s:t],
        )

    def only(self, wanted: AnyArray) -> Coalitions:
        """The coalitions with the wanted test rows (one flag for each entry of `tests`), those without any left out.

        >>> Coalitions.from_lists([[0, 2], [1]], [[5], [5, 6]]).only(np.array([False, False, True])).players.tolist()
        [1]
        """
        before = offsets(wanted)
        counts = before[self.test_indptr[1:]] - before[self.test_indptr[:-1]]
        kept, sizes = counts > 0, np.diff(self.indptr)
        return Coalitions(
            offsets(sizes[kept]), self.players[np.repeat(kept, sizes)], offsets(counts[kept]), self.tests[wanted]
        )


@dataclass(frozen=True)
class Batch(Coalitions):
    """Coalitions with the games that each belongs to; the test rows are those of its games, game by game.

    `player` is set where only one player's value is wanted (the paper's Algorithm 1).
    """

    game_indptr: Ints
    games: Indices
    player: int = -1

    @classmethod
    def written(cls, room: BatchArrays, n: int, player: int = -1) -> Batch:
        """The `n` coalitions that a kernel wrote to arrays with room for more."""
        indptr, players, test_indptr, tests, game_indptr, games = room
        return cls(
            indptr[: n + 1],
            players[: indptr[n]],
            test_indptr[: n + 1],
            tests[: test_indptr[n]],
            game_indptr[: n + 1],
            games[: game_indptr[n]],
            player,
        )

    @property
    def subsets(self) -> SubsetArrays:
        """Players and games of each coalition, as kernels take them."""
        return self.indptr, self.players, self.game_indptr, self.games

    def part(self, start: int, stop: int) -> Batch:
        """The coalitions from `start` up to `stop`, with their games."""
        part = super().part(start, stop)
        a, b = self.game_indptr[start], self.game_indptr[stop]
        return Batch(
            part.indptr,
            part.players,
            part.test_indptr,
            part.tests,
            self.game_indptr[start : stop + 1] - a,
            self.games[a:b],
            self.player,
        )


class Schedule(Protocol):
    """Gives out coalitions, batch by batch."""

    def take(self, size: int) -> Batch | None:
        """The next coalitions, at most `size`; None if there are none, or what follows depends on scores to come."""

    def left(self) -> float:
        """Coalitions still to be given out."""


class Receiver(Protocol):
    """Takes in scores, in the order in which coalitions were given out."""

    def add(self, batch: Batch, scores: Floats) -> None:
        """Take in one number for each test row of each coalition, flat."""


class ListSchedule:
    """A schedule of coalitions that belong to no game, list by list: a batch has coalitions of one of them.

    Parameters
    ----------
    lists : iterable of Coalitions
        Asked for the next one when all of the one before has been given out.
    n : int
        Coalitions in all.
    """

    def __init__(self, lists: Iterable[Coalitions], n: int) -> None:
        self._lists, self._left, self._given = iter(lists), n, 0
        self._now = next(self._lists, None)

    def take(self, size: int) -> Batch | None:
        """The next coalitions of the same list, at most `size`."""
        while self._now is not None and self._given == len(self._now):
            self._now, self._given = next(self._lists, None), 0
        if self._now is None:
            return None
        start, self._given = self._given, min(self._given + size, len(self._now))
        part = self._now.part(start, self._given)
        self._left -= len(part)
        return Batch(*part.arrays, np.zeros(len(part) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))

    def left(self) -> float:
        """Coalitions still to be given out."""
        return self._left
