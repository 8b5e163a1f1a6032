"""What a round of sampling drew, and how likely each subset was to be drawn: all that an estimate needs to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints, max_by
from localshapley.coalitions.sampled import Collection, Strata


@dataclass(frozen=True)
class RoundSample:
    """A round as it was drawn.

    Attributes
    ----------
    strata : Strata
    collection : Collection
        The rows of the run so far; those of the round are the last ones.
    full : array of shape (n_games,)
        Rows of the full supports.
    before : int
        Rows before the round.
    known, unknown : arrays of shape (n_strata,)
        Subsets that were trained before the round, and the others, among which it draws.
    expected : array of shape (n_strata,)
        Expected draws; all unknown subsets where a stratum is taken whole.
    counts : array of shape (n_strata, n_folds)
        Draws of each fold; 0 where a stratum is taken whole.
    """

    strata: Strata
    collection: Collection
    full: Ints
    before: int
    known: Floats
    unknown: Floats
    expected: Floats
    counts: Indices

    @property
    def n_folds(self) -> int:
        """Folds to which the draws were dealt."""
        return int(self.counts.shape[1])

    @property
    def folds(self) -> Indices:
        """The folds that drew each row, one bit each; negative where it was sure to be taken."""
        return self.collection.folds[: self.collection.n_rows]

    @property
    def whole(self) -> AnyArray:
        """Strata of which every subset is taken."""
        return np.equal(self.expected, self.unknown)

    @property
    def leaves_any(self) -> bool:
        """Whether there was any subset to draw."""
        return bool((self.unknown > 0.5).any())

    @property
    def n_draws(self) -> int:
        """Subsets drawn, over all games."""
        return int(self.counts.sum() + self.unknown[self.whole].sum())

    @property
    def has_chance(self) -> AnyArray:
        """Games of which something was left to chance, as flags."""
        n_games = self.collection.graph.n_games
        return np.bincount(self.strata.game, weights=self.expected < self.unknown, minlength=n_games) > 0

    @property
    def left_to_chance(self) -> float:
        """Expected number of draws outside strata that are taken whole."""
        return float(self.expected[self.expected < self.unknown].sum())

    def full_pairs(self) -> Ints:
        """Where the scores of the full supports are among the pairs of rows and games."""
        collection = self.collection
        out = np.empty(len(self.full), dtype=np.int64)
        for game, row in enumerate(self.full):
            start, stop = collection.pair_indptr[row], collection.pair_indptr[row + 1]
            out[game] = start + np.searchsorted(collection.games[start:stop], game)
        return out

    def log_share(self) -> Floats:
        """Logarithm of the probability that an unknown subset of a stratum is drawn from it."""
        return self._log_share(self.expected, self.known)

    def log_inclusion(self, row: Ints, stratum: Ints) -> Floats:
        """For every row: logarithm of the probability that any of its games draws it; of the pairs row and stratum."""
        folds = self.folds
        out = _log_union(row, self.log_share()[stratum], len(folds))
        out[(np.arange(len(folds)) >= self.before) & (folds < 0)] = 0.0
        return out

    def log_own_inclusion(self, row: Ints, stratum: Ints) -> Floats:
        """For rows that a single fold drew: logarithm of the probability that it did, given all the other folds."""
        folds, drawn = self.folds, self.counts.sum(axis=1)
        out = np.zeros(len(folds))
        for f in range(self.n_folds):
            pairs = np.flatnonzero((row >= self.before) & (folds[row] == 1 << f))
            others = self.known + (drawn - self.counts[:, f])
            log_share = self._log_share(self.expected / self.n_folds, others)
            union = _log_union(row[pairs], log_share[stratum[pairs]], len(folds))
            out[row[pairs]] = union[row[pairs]]
        return out

    def _log_share(self, expected: Floats, known: Floats) -> Floats:
        out: Floats = np.log(np.maximum(expected, 1e-300)) - self.strata.log_without(known)
        out[self.whole] = 0.0
        return out


def _log_union(row: Ints, log_share: Floats, n_rows: int) -> Floats:
    """`log(1 − Π(1 − p))` over the pairs of each row, from the logarithms of the `p`."""
    top = max_by(row, log_share, n_rows)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.bincount(row, weights=np.exp(log_share - top[row]), minlength=n_rows)
    with np.errstate(divide="ignore"):
        out: Floats = np.log(total) + top  # p so small that they add up
        missed = np.bincount(row, weights=np.log1p(-np.minimum(np.exp(log_share), 1.0)), minlength=n_rows)
        out = np.where(out > -20, np.log(-np.expm1(missed)), out)
    return out
