"""The games: which players each test row's game has, and which games share players."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, GraphArrays, Indices, Ints, Lists, Masks, offsets
from localshapley.coalitions.jackknife_blocks import JackknifeBlocks
from localshapley.errors import InvalidArgumentError
from localshapley.formatting import in_words
from localshapley.runtime.memory import check_memory

MOST_WORDS = 2**22
"""Words of 64 bits that tell the games of the players, at most; they take 32 MiB."""


class SupportGraph:
    """The bipartite graph of test rows and players, with equal supports merged into one game.

    Games are ordered by ascending number of players (then by their first test row); this is the order in which
    a subset finds its pivot.

    Parameters
    ----------
    supports : sequence of int arrays
        The players of each test row, in any order.
    n_players : int, optional
        Number of players; by default one more than the largest index.
    merge : bool, default=True
        Whether test rows with equal supports become one game. If not, each test row is a game of its own.
    sources : int array of shape (n_tests,), optional
        The row that each test row is a copy of, where some are copies of the same one; by default all differ.
    among : int, optional
        Number of all players, where those in no support are left out; draws are the same as if they were there.

    Attributes
    ----------
    indptr, players : arrays
        Players of each game, ascending (CSR).
    test_indptr, tests : arrays
        Test rows of each game (CSR).
    where_indptr, where : arrays
        Games of each player, ascending (CSR).
    game_of_test : array of shape (n_tests,)

    Examples
    --------
    >>> graph = SupportGraph([[0, 1, 2], [1, 2], [2, 1]])
    >>> graph.n_games, graph.sizes.tolist()
    (2, [2, 3])
    >>> graph.tests_holding([1, 2]).tolist(), graph.tests_holding([0]).tolist()
    ([0, 1, 2], [0])
    """

    indptr: Ints
    players: Indices
    test_indptr: Ints
    tests: Indices
    where_indptr: Ints
    where: Indices
    game_of_test: Indices
    _among: int | None = None
    sizes_are_bounds = False
    """Whether the sizes of supports, and the test rows of players, are only known to be at most so many."""

    def __init__(
        self,
        supports: Iterable[Iterable[int]],
        n_players: int | None = None,
        *,
        merge: bool = True,
        sources: Ints | None = None,
        among: int | None = None,
    ) -> None:
        self._among = among
        rows = _as_rows(supports)
        largest = max([int(row[-1]) for row in rows if len(row)], default=-1)
        self.n_players = largest + 1 if n_players is None else int(n_players)
        if largest >= self.n_players:
            raise InvalidArgumentError(
                f"supports names player {largest}, but there are only {self.n_players} players "
                f"(0 to {self.n_players - 1}); give larger n_players or drop the index."
            )
        self.n_tests = len(rows)
        self.sources = np.arange(self.n_tests) if sources is None else sources

        tests_of: dict[object, list[int]] = {}
        key: object = None
        for t, row in enumerate(rows):
            if t == 0 or not merge or row is not rows[t - 1]:
                key = row.tobytes() if merge else t
            tests_of.setdefault(key, []).append(t)
        found = list(tests_of.values())
        sizes = np.array([len(rows[tests[0]]) for tests in found], dtype=np.int64)
        groups = [found[i] for i in np.argsort(sizes, kind="stable").tolist()]
        self.indptr = offsets(np.sort(sizes))
        self.players = _concatenate([rows[tests[0]] for tests in groups])
        self.test_indptr = offsets(np.array(list(map(len, groups)), dtype=np.int64))
        self.tests = _concatenate([np.array(tests, dtype=np.int32) for tests in groups])
        self.where_indptr, self.where = _transpose(self.indptr, self.players, self.n_players)
        self.game_of_test = np.empty(self.n_tests, dtype=np.int32)
        self.game_of_test[self.tests] = np.repeat(np.arange(len(groups), dtype=np.int32), np.diff(self.test_indptr))

    @property
    def n_all(self) -> int:
        """Number of players with those that were left out."""
        return self.n_players if self._among is None else self._among

    @property
    def n_games(self) -> int:
        """Number of distinct supports."""
        return len(self.indptr) - 1

    @property
    def arrays(self) -> GraphArrays:
        """Players of the games and games of the players, as kernels take them."""
        return self.indptr, self.players, self.where_indptr, self.where

    @property
    def tests_of_games(self) -> Lists:
        """Test rows of each game, as kernels take them."""
        return self.test_indptr, self.tests

    @cached_property
    def masks(self) -> Masks:
        """A bit for each game of a player, shape (n_players, words of 64 games); without lines where they are many."""
        n_words = -(-self.n_games // 64)
        if self.n_players * n_words > MOST_WORDS:
            return np.zeros((0, n_words), dtype=np.uint64)
        player = np.repeat(np.arange(self.n_players), np.diff(self.where_indptr))
        masks = np.zeros((self.n_players, n_words), dtype=np.uint64)
        np.bitwise_or.at(masks, (player, self.where >> 6), np.uint64(1) << (self.where & 63).astype(np.uint64))
        return masks

    @cached_property
    def sizes(self) -> Ints:
        """Players of each game, shape (n_games,)."""
        return np.diff(self.indptr)

    @cached_property
    def tests_per_game(self) -> Ints:
        """Test rows of each game, shape (n_games,)."""
        return np.diff(self.test_indptr)

    @cached_property
    def support_sizes(self) -> Ints:
        """`|N(t)|` of each test row, shape (n_tests,)."""
        return self.sizes[self.game_of_test]

    @cached_property
    def tests_per_player(self) -> Ints:
        """`|R(z)|` of each player, shape (n_players,)."""
        counts: Ints = np.zeros(self.n_players, dtype=np.int64)
        np.add.at(counts, self.players, np.repeat(self.tests_per_game, self.sizes))
        return counts

    @cached_property
    def bundles(self) -> JackknifeBlocks | None:
        """The test rows in bundles; None for a graph whose test rows are not what a sample consists of."""
        return JackknifeBlocks(self.sources, self.n_players)

    @property
    def n_entries(self) -> int:
        """Pairs of a test row and a player in its support."""
        return int((self.sizes * self.tests_per_game).sum())

    def check_room(self, what: str, bytes_each: int, advice: str) -> None:
        """Refuse what would take `bytes_each` for every pair of a test row and a player in its support."""
        check_memory(f"{what} on {in_words(self.n_entries)} pairs of rows", bytes_each * self.n_entries, advice)

    def support(self, test: int) -> Indices:
        """`N(t)`: the players of one test row, ascending."""
        return self.game(int(self.game_of_test[test]))

    def game(self, game: int) -> Indices:
        """The players of one game, ascending."""
        return self.players[self.indptr[game] : self.indptr[game + 1]]

    def tests_of(self, game: int) -> Indices:
        """The test rows of one game."""
        return self.tests[self.test_indptr[game] : self.test_indptr[game + 1]]

    def listed(self) -> SupportGraph | None:
        """Itself; None of a graph that lists its games only when asked, and was not."""
        return self

    def apart(self) -> SupportGraph:
        """The same supports with a game for each test row."""
        return self.with_supports([self.support(t) for t in range(self.n_tests)], merge=False)

    def of_everyone(self) -> SupportGraph:
        """One game of all players for all test rows."""
        return self.with_supports([np.arange(self.n_players)] * self.n_tests)

    def with_supports(
        self, supports: Iterable[Iterable[int]], n_players: int | None = None, *, merge: bool = True
    ) -> SupportGraph:
        """The same test rows with other supports."""
        among = self._among if n_players is None else None
        n_players = self.n_players if n_players is None else n_players
        found = SupportGraph(supports, n_players, merge=merge, sources=self.sources, among=among)
        if self.bundles is None:
            found.bundles = None
        return found

    @cached_property
    def N(self) -> tuple[Ints, Indices]:  # noqa: N802 - the paper's name
        """Supports of the test rows as CSR arrays `(indptr, players)`."""
        players = _concatenate([self.support(t) for t in range(self.n_tests)])
        return offsets(self.support_sizes), players  # sizes that were bounds are known by now

    @cached_property
    def R(self) -> tuple[Ints, Indices]:  # noqa: N802 - the paper's name
        """Test rows of the players as CSR arrays `(indptr, tests)`."""
        return _transpose(*self.N, self.n_players)

    def tests_holding(self, coalition: Iterable[int]) -> Indices:
        """`R_S`: the test rows whose support holds every player of the coalition, ascending."""
        indptr, where = self.where_indptr, self.where
        games = [where[indptr[z] : indptr[z + 1]] for z in coalition]
        times_held = np.bincount(_concatenate(games), minlength=self.n_games)
        return np.sort(self.tests[np.repeat(times_held == len(games), self.tests_per_game)])

    def overlaps(self, game: int) -> tuple[Indices, Masks]:
        """Games that share a player with `game`, and `N(game) ∩ N(other)` as bit masks over `game`'s players.

        Returns
        -------
        games : array of shape (n_overlaps,), ascending; `game` is one of them
        masks : uint64 array of shape (n_overlaps, words); player ``i`` is bit ``i % 64`` of word ``i // 64``
        """
        from localshapley.kernels.pivots import find_overlaps

        words = max(1, -(-int(self.sizes[game]) // 64))
        games = np.empty(self.n_games, dtype=np.int32)
        masks = np.zeros((self.n_games, words), dtype=np.uint64)
        room = np.zeros_like(masks), np.zeros(self.n_games // 64 + 1, dtype=np.uint64)
        found = find_overlaps(game, self.arrays, room, (games, masks))
        return games[:found].copy(), masks[:found].copy()

    def matrix(self, data: AnyArray) -> sparse.csr_array:
        """Test × player matrix with `data` at the supports' places, row by row."""
        indptr, players = self.N
        return sparse.csr_array((data, players, indptr), shape=(self.n_tests, self.n_players))

    def matrix_of_games(self, of_slots: Floats) -> sparse.csr_array:
        """The same from one number per entry of `players`, for all test rows of a game."""
        parts = [of_slots[self.indptr[g] : self.indptr[g + 1]] for g in self.game_of_test]
        return self.matrix(np.concatenate(parts) if parts else np.empty(0))

    def values(self, data: Floats) -> Floats:
        """Sum over the test rows of `data`, given at the supports' places, for each player."""
        return np.bincount(self.N[1], weights=data, minlength=self.n_players).astype(np.float64)

    def by_player(self, of_slots: Floats) -> Floats:
        """Sum over the games of each player, from one number per entry of `players`."""
        return np.bincount(self.players, weights=of_slots, minlength=self.n_players).astype(np.float64)

    def __repr__(self) -> str:
        sizes = f"{self.sizes.min()}..{self.sizes.max()}" if self.n_games else "none"
        return (
            f"SupportGraph({self.n_tests} test rows, {self.n_players} players, {self.n_games} games of {sizes} players)"
        )


def _as_rows(supports: Iterable[Iterable[int]]) -> list[Indices]:
    """Check the supports and return each as an ascending int32 array."""
    supports = list(supports)
    if (found := _of_one_size(supports)) is not None:
        return found
    rows: list[Indices] = []
    last: object = None
    for t, given in enumerate(supports):
        if t > 0 and given is last:  # all rows for every test row: one array is enough
            rows.append(rows[-1])
            continue
        last = given
        row = np.asarray(given if isinstance(given, np.ndarray) else list(given))
        if row.size == 0:
            row = row.astype(np.int32)
        if row.ndim != 1 or not np.issubdtype(row.dtype, np.integer):
            raise InvalidArgumentError(
                f"supports[{t}] must be a flat list of player indices (whole numbers); got {given!r}."
            )
        row = np.sort(row)
        if len(row) and row[0] < 0:
            raise InvalidArgumentError(f"supports[{t}] holds the negative index {row[0]}; players are numbered from 0.")
        if len(row) > 1 and (repeated := row[1:][row[1:] == row[:-1]]).size:
            raise InvalidArgumentError(
                f"supports[{t}] names player {repeated[0]} more than once; give each player once."
            )
        rows.append(row.astype(np.int32))
    return rows


def _of_one_size(supports: list[Any]) -> list[Indices] | None:
    """Supports of nearest rows, all at once: different arrays of one size that need no other check than this."""
    if len(supports) < 2 or supports[0] is supports[1] or set(map(type, supports)) != {np.ndarray}:
        return None
    if len(set(map(np.shape, supports))) > 1 or supports[0].ndim != 1 or supports[0].dtype != np.int32:
        return None
    rows = np.sort(np.stack(supports), axis=1)
    if rows.dtype != np.int32 or (rows[:, :1] < 0).any() or (rows[:, 1:] == rows[:, :-1]).any():
        return None
    return list(rows)


def _concatenate(parts: list[Indices]) -> Indices:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)


def _transpose(indptr: Ints, indices: Indices, n_columns: int) -> tuple[Ints, Indices]:
    """Transpose the pattern of a CSR matrix; rows come out ascending."""
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    return offsets(np.bincount(indices, minlength=n_columns)), rows[order]
