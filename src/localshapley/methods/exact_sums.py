"""From scores to values: the weights of the closed form, summed in a fixed order."""

from __future__ import annotations

from math import comb

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats, Ints
from localshapley.coalitions.batch import Batch
from localshapley.coalitions.games import SupportGraph
from localshapley.sampling.estimate import PerTest


def weight_table(sizes: Ints) -> tuple[Ints, Floats, Floats]:
    """Tabulate the weights of the subsets of each game.

    Returns
    -------
    row : array of shape (n_games,)
        The row of the tables for each game.
    gain, loss : arrays of shape (n_rows, max_size + 1)
        A subset of size ``k`` adds ``−loss[row, k] · v`` to every player of the game and ``gain[row, k] · v`` to
        its members: together `+1/(k·C(n,k))` for members, `−1/((n−k)·C(n,k))` for the others.
    """
    distinct, row = np.unique(sizes, return_inverse=True)
    gain = np.zeros((len(distinct), int(sizes.max(initial=0)) + 1))
    loss = np.zeros_like(gain)
    for r, n in enumerate(distinct.tolist()):
        for k in range(n + 1):
            member = 1 / (k * comb(n, k)) if k else 0.0
            loss[r, k] = 1 / ((n - k) * comb(n, k)) if k < n else 0.0
            gain[r, k] = member + loss[r, k]
    return row.astype(np.int64), gain, loss


MANY_PLAYERS = 10
"""Sums over the subsets of so many players lose less than a digit; those of more get back what was rounded off."""


class ExactSum(PerTest):
    """Values as sums over all subsets; they are summed in the order of the coalitions, whatever the batches."""

    def __init__(self, graph: SupportGraph, *, per_test: bool = False) -> None:
        self.graph, self._is_large = graph, graph.sizes.max(initial=0) > MANY_PLAYERS
        self._weights = weight_table(graph.sizes)
        self._members, self._common = np.zeros((2, graph.n_players)), np.zeros((2, graph.n_games))
        self._matrix = np.zeros((2, len(graph.N[1]))) if per_test else None
        n_bundles = 0 if graph.bundles is None else graph.bundles.n
        self._bundled = np.zeros((2, graph.n_players, n_bundles))
        self._room = np.zeros(n_bundles), *np.zeros((2, n_bundles), dtype=np.int64)
        self._common_of_test = np.zeros(graph.n_tests)

    def add(self, batch: Batch, scores: Floats) -> None:
        """Add the scores of a batch, one for each of its test rows."""
        from localshapley.kernels import accumulate

        graph, weights = self.graph, self._weights
        if batch.player >= 0:
            matrix = np.empty((2, 0)) if self._matrix is None else self._matrix
            accumulate.add_scores_to_one(
                batch.subsets, scores, weights, batch.player, self._slot(batch), self._members, matrix
            )
            if graph.bundles is not None:
                slot = batch.player * graph.bundles.n + graph.bundles.of_test[batch.tests[0]]
                scratch = np.empty_like(self._members)
                accumulate.add_scores_to_one(
                    batch.subsets, scores, weights, batch.player, slot, scratch, self._bundled.reshape(2, -1)
                )
            return
        accumulate.add_scores(batch.subsets, graph.tests_per_game, scores, weights, self._members, self._common)
        if self._matrix is not None:
            accumulate.add_scores_per_test(
                batch.subsets, graph.arrays, graph.tests_of_games, scores, weights, graph.N[0], self._matrix
            )
        if graph.bundles is not None:
            accumulate.add_scores_by_bundle(
                batch.subsets,
                graph.tests_of_games,
                graph.bundles.of_test,
                scores,
                weights,
                self._room,
                self._bundled[0],
                self._common_of_test,
            )

    def _slot(self, batch: Batch) -> int:
        """Position of the batch's one player and one test row in the matrix."""
        if self._matrix is None:
            return -1
        indptr, players = self.graph.N
        test = int(batch.tests[0])
        within = np.searchsorted(players[indptr[test] : indptr[test + 1]], batch.player)
        return int(indptr[test] + within)

    def values(self) -> Floats:
        """One value per player."""
        graph = self.graph
        found, rounded_off = (
            members + graph.by_player(np.repeat(common, graph.sizes))
            for members, common in zip(self._members, self._common, strict=True)
        )
        return found + rounded_off if self._is_large else found

    def by_bundle(self) -> Floats | None:
        """Values to each bundle of test rows, shape (1, n_bundles, n_players)."""
        graph, bundles = self.graph, self.graph.bundles
        if bundles is None:
            return None
        common = np.repeat(self._common_of_test, graph.support_sizes)
        found: Floats = self._bundled[0].T + bundles.sums(graph.N, common, bundles.of_test)
        return found[None]

    def matrix(self) -> sparse.csr_array:
        """`φ_z(v_t)` as a test × player matrix; `per_test` must have been asked for."""
        assert self._matrix is not None
        return self.graph.matrix(self._matrix.sum(axis=0) if self._is_large else self._matrix[0])
