"""The numbers that the sampled estimator is tuned by; none of them can bias it.

docs/decisions/0006-sampling.md has the measurements behind them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """How rounds are sized, and how draws are fitted.

    Attributes
    ----------
    first_draws, least_draws : int
        Draws of each game in the first round, where a target is to be reached, and where a budget is to be spent.
    easy_game : int
        Subsets; so few are cheaper to train than to sample to any target worth having.
    max_growth : float
        Of a round over all before, on the way to a target.
    n_folds, few_folds : int
        Folds of a round, and where games have fewer than eight draws.
    pooled_ridge, level_ridge, player_ridge : float
        Of the curve over sizes that all games share, of a game's own curve, and of players and slopes (times the number
        of players).
    max_steps, precision
        Steps of conjugate gradients in a fit, and the precision at which they end before.
    least_weight : float
        In the fit, of subsets that are sure to be drawn.
    prior_draws : float
        At the pooled variance, for each factor of the variance model.
    inflation : float
        Of the variance, times 1 / (effective number of draws).
    smoothing : float
        Share of the variance model in a residual's variance.
    max_spread : int
        Players up to which the columns that stand for the covariances are kept.
    """

    first_draws: int = 6
    least_draws: int = 5
    easy_game: int = 64
    max_growth: float = 2.0
    n_folds: int = 4
    few_folds: int = 2
    pooled_ridge: float = 0.1
    level_ridge: float = 0.05
    player_ridge: float = 0.075
    max_steps: int = 4
    precision: float = 1e-6
    least_weight: float = 0.05
    prior_draws: float = 1.0
    inflation: float = 0.3
    smoothing: float = 0.2
    max_spread: int = 2**18


TUNED = Tuning()
"""As it is measured to be best."""
