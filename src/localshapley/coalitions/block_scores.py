"""Scores by bundle of test rows, where a game has several of them."""

from __future__ import annotations

import numpy as np

from localshapley.arrays import Floats, Indices, Ints, Singles, offsets, singles
from localshapley.coalitions.games import SupportGraph


class BlockScores:
    """Scores by bundle of test rows, of the games that have several test rows.

    Pairs of a row of a collection and a game come in the order of the collection's scores. A pair of such a game has a
    number for each bundle that has test rows of the game.

    Parameters
    ----------
    graph : SupportGraph
        With bundles.

    Attributes
    ----------
    indptr, bundles : arrays
        The bundles of each game, ascending (CSR); none of games with one test row.
    """

    def __init__(self, graph: SupportGraph) -> None:
        assert graph.bundles is not None
        n_games, n_bundles = graph.n_games, graph.bundles.n
        self._graph, self._is_merged = graph, graph.tests_per_game > 1
        game = np.repeat(np.arange(n_games), graph.tests_per_game)
        key = game * n_bundles + graph.bundles.of_test[graph.tests]
        known, self._cell = np.unique(key, return_inverse=True)
        counts = np.bincount(known // n_bundles, minlength=n_games)
        self._cell -= offsets(counts)[game]  # within the game
        self.indptr = offsets(np.where(self._is_merged, counts, 0))
        self.bundles: Ints = (known % n_bundles)[self._is_merged[known // n_bundles]]
        self._first: list[Ints] = [np.zeros(1, dtype=np.int64)]
        self._parts: list[Singles] = []

    def add(self, games: Indices, scores: Floats) -> None:
        """Take in the scores of pairs, one for each test row of each pair's game."""
        counts, n_cells = self._graph.tests_per_game[games], np.diff(self.indptr)[games]
        merged, starts = self._is_merged[games], offsets(n_cells)
        of_test = np.repeat(merged, counts)
        n_tests = counts[merged]
        place = np.repeat(self._graph.test_indptr[games[merged]] - offsets(n_tests)[:-1], n_tests)
        cell = np.repeat(starts[:-1][merged], n_tests) + self._cell[place + np.arange(len(place))]
        summed = np.bincount(cell, weights=scores[of_test], minlength=starts[-1])
        self._first.append(self._first[-1][-1] + starts[1:])
        self._parts.append(singles(summed))

    def gather(self) -> None:
        """Join what came in."""
        self._first, self._parts = [np.concatenate(self._first)], [np.concatenate(self._parts)]

    def of_pairs(self, pairs: Ints, game: int) -> Floats:
        """Scores of pairs of one game, shape (n_pairs, bundles of the game)."""
        n = self.indptr[game + 1] - self.indptr[game]
        return self._parts[0][self._first[0][pairs][:, None] + np.arange(n)].astype(np.float64)
