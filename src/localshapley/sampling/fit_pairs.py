"""The pairs of a round, of a row and a game that holds it, in the order of games and sizes: what fits are made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from localshapley.arrays import AnyArray, Floats, Indices, Ints, max_by, order_by
from localshapley.coalitions.sampled import Strata
from localshapley.runtime.threads import in_threads
from localshapley.sampling.round_sample import RoundSample
from localshapley.sampling.tuning import Tuning

NEGLIGIBLE = 30.0
"""Logarithm of the number of a size's subsets from which on those that are known are too small a share to count."""


@dataclass(frozen=True)
class FitPairs:
    """Pairs by game and size.

    Attributes
    ----------
    where : array of shape (n_pairs,)
        Where each is among the pairs as they were given.
    pairs : tuple of arrays
        As `kernels.surrogate.Pairs` has them.
    stratum : array of shape (n_pairs,)
    alone : array of shape (n_pairs,)
        The fold that alone drew the row, as a bit, or 0: what is fitted for the fold must not know it.
    wanted : array of shape (n_pairs,)
        The folds that need to know what their surrogates leave here, as bits.
    bends : array of shape (n_pairs,)
        Which of them curves are fitted to, as flags.
    pooled : array of shape (n_folds, 8)
        Coefficients of the curve over sizes that all games share.
    """

    where: Ints
    pairs: tuple[Ints, Ints, Floats, Floats, Floats]
    stratum: Ints
    alone: Indices
    wanted: Indices
    bends: AnyArray
    pooled: Floats

    @classmethod
    def of(
        cls, drawn: RoundSample, pairs: tuple[Ints, Ints], log_pi: Floats, y: Floats, of_strata: Floats, tuning: Tuning
    ) -> FitPairs:
        """Put the pairs of a round in order.

        Parameters
        ----------
        drawn : RoundSample
        pairs : tuple of arrays
            Row and stratum of each, as in `Collection.inner`.
        log_pi : array of shape (n_rows,)
            Logarithm of the probability that a row is drawn.
        y : array of shape (n_pairs,)
            Scores less the line from `v(∅)` to `v(N)`.
        of_strata : array of shape (n_strata, 8)
            As from `pooled_levels`.
        tuning : Tuning
        """
        (row, stratum), strata = pairs, drawn.strata
        new = np.where(row >= drawn.before, drawn.folds[row], 0)
        drew = np.maximum(new, 0)  # the folds that drew it; 0 also where it was sure to be taken
        alone = np.where(drew & (drew - 1) == 0, drew, 0)
        weight = fit_weights(drawn, row, stratum, log_pi, tuning)
        pooled = _pooled(y, of_strata, stratum, weight, alone, drawn.n_folds, tuning.pooled_ridge)
        bends = _some(drawn, row, strata.game[stratum], tuning)
        every = (1 << drawn.n_folds) - 1
        wanted = np.where(bends | (strata.log_subsets < NEGLIGIBLE)[stratum], every, drew).astype(np.int32)
        where = order_by(stratum)
        given = row, stratum, weight, alone, wanted, bends
        row, stratum, weight, alone, wanted, bends = in_threads(lambda array: array[where], given)
        indptr = np.searchsorted(stratum, strata.indptr)
        in_order = indptr, row, strata.position[stratum], weight, -strata.log_subsets[stratum]
        return cls(where, in_order, stratum, alone, wanted, bends, pooled)


def fit_weights(drawn: RoundSample, row: Ints, stratum: Ints, log_pi: Floats, tuning: Tuning) -> Floats:
    """Weights of the fit: what a subset's residual adds to the variance, over its probability in the fit."""
    strata = drawn.strata
    log_root = 0.5 * np.log(strata.k * (strata.n - strata.k))
    log_rest = np.log(np.maximum(-np.expm1(np.minimum(log_pi, 0.0)), tuning.least_weight)) - log_pi
    typical = -np.log(np.maximum(drawn.expected, 1e-300)) - log_root
    some = drawn.expected > 0
    largest = max_by(strata.game[some], typical[some], drawn.collection.graph.n_games)
    log_unit = np.where(np.isfinite(largest), largest, 0.0)
    weight: Floats = np.exp(log_rest[row] - (strata.log_subsets + log_root + log_unit[strata.game])[stratum])
    return weight


def pooled_levels(strata: Strata, gain: Floats) -> Floats:
    """A cubic in the size, and one times the game's gain, at each stratum; shape (n_strata, 8)."""
    from localshapley.kernels.surrogate import N_LEVELS

    levels = legendre.legvander(strata.position, N_LEVELS - 1)
    return np.hstack([levels, levels * gain[strata.game][:, None]])


def _pooled(
    y: Floats, of_strata: Floats, stratum: Ints, weight: Floats, alone: Indices, n_folds: int, ridge: float
) -> Floats:
    """For each fold, the combination of the columns of `of_strata` that fits `y` without what the fold alone drew."""
    n_strata, n_columns = of_strata.shape
    fold_of = np.full(1 << n_folds, n_folds)
    fold_of[1 << np.arange(n_folds)] = np.arange(n_folds)
    cell = fold_of[alone] * n_strata + stratum
    sums = (np.bincount(cell, of, (n_folds + 1) * n_strata).reshape(n_folds + 1, -1) for of in (weight, weight * y))
    squares, products = ((each.sum(axis=0) - each)[:-1] for each in sums)
    gram = np.stack([(of_strata.T * each) @ of_strata for each in squares]) + ridge * np.eye(n_columns)
    out: Floats = np.linalg.solve(gram, (products @ of_strata)[..., None])[..., 0]
    return out


def _some(drawn: RoundSample, row: Ints, game: Ints, tuning: Tuning) -> AnyArray:
    """The pairs that curves are fitted to, about so many of each game, as flags.

    By a random number of the row, its key, and by shares that are known before the round draws: which pairs there are
    in a fold's fit does not depend on what the fold draws.
    """
    collection, strata = drawn.collection, drawn.strata
    n_games = collection.graph.n_games
    known, own = (np.bincount(strata.game, of, n_games) for of in (drawn.known, drawn.expected))
    growth = 1 + drawn.expected.sum() / drawn.before  # most pairs of a game come from what others draw
    expected = np.maximum(np.maximum(known * growth, known + own), 1.0)
    chance = (collection.keys[: collection.n_rows, 0] >> np.uint64(11)) * 2.0**-53
    some: AnyArray = chance[row] < (tuning.curve_most / expected)[game]
    return some
