"""The settings that tune the sampled estimator; none of them can bias it.

docs/decisions/0006-sampling.md has the measurements behind them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, repr=False)
class Tuning:
    """How rounds are sized, and how draws are fitted.

    Attributes
    ----------
    first_draws, least_draws : int
        Draws per game in the first round, where there is a target to reach, and where there is a budget to spend.
    easy_game : int
        Games with up to this many subsets are cheaper to train whole than to sample to any useful target.
    least_growth, max_growth : float
        Growth of a round over all rounds before, on the way to a target.
    margin : float
        Draws on the way to a target, in units of those that seem to be enough for it.
    later : float
        Power of the draws, up to those of its round, by which a draw of a later round counts more: fits improve.
    unseen_share : float
        Share of a target that is left for what was not drawn.
    ends_share : float
        Subsets of one player, and of all but one, are all drawn where each of both kinds takes no more than this share
        of a game's draws so far: what a player decides alone shows there, and nowhere else for sure.
    n_folds, few_folds, many_folds, few_games : int
        Folds of a round, those where games have fewer than eight draws, and those of up to so many games, which cost
        little to fit and have a better fit with more folds, and with a process over subsets.
    pooled_ridge, level_ridge, player_ridge : float
        Ridges of the curve over sizes that all games share, of a game's own curve, and of players and slopes (times the
        number of players).
    max_steps, precision
        Steps of conjugate gradients in a fit, and the precision at which they stop earlier.
    goes_on : bool
        Whether fits go on from those of the round before.
    least_weight : float
        Weight in the fit of subsets that are sure to be drawn.
    nearness, nearness_sum, nearness_scale : float
        Mean rate at which the scores of two subsets lose their likeness with each player that only one has, and the
        most that the rates of all players add up to; variance of what the players do together, in units of the noise.
    nearness_steps, nearness_rows : int
        Steps of conjugate gradients in the fit of this, and the most subsets that it is fitted to.
    nearness_draws, nearness_most, nearness_players : int
        Draws per player from which it is fitted, draws of a game and players up to which it is.
    curve_draws, curve_least, curve_most : int
        Draws per player, and of a game, from which a curve is fitted to what sums over players leave; about the most
        that it is fitted to.
    curve_ridge : float
        Ridge of the curves' coefficients, in units of a draw.
    least_orders : int
        Least number of random orders that the values of a curve are means of.
    prior_draws : float
        Prior draws at the pooled variance, for each factor of the variance model.
    inflation : float
        Inflation of the variance, times 1 / (effective number of draws).
    smoothing : float
        Share of the variance model in a residual's variance.
    beside_draws : float
        Draws for which counts what a player's residuals are at the sizes beside a size.
    beside_games : int
        Games up to which this is looked at.
    max_spread : int
        Number of players up to which the columns that represent the covariances are kept.
    """

    first_draws: int = 6
    least_draws: int = 5
    easy_game: int = 64
    least_growth: float = 0.15
    max_growth: float = 2.0
    margin: float = 1.05
    later: float = 0.4
    unseen_share: float = 0.6
    ends_share: float = 1 / 6
    n_folds: int = 4
    few_folds: int = 2
    many_folds: int = 8
    few_games: int = 8
    pooled_ridge: float = 0.1
    level_ridge: float = 0.05
    player_ridge: float = 0.1
    max_steps: int = 6
    precision: float = 1e-6
    goes_on: bool = True
    least_weight: float = 0.05
    nearness: float = 0.5
    nearness_sum: float = 7.0
    nearness_scale: float = 4.0
    nearness_steps: int = 12
    nearness_rows: int = 1024
    nearness_draws: int = 5
    nearness_most: int = 2048
    nearness_players: int = 40
    curve_draws: int = 5
    curve_least: int = 256
    curve_most: int = 2048
    curve_ridge: float = 20.0
    least_orders: int = 8
    prior_draws: float = 1.0
    inflation: float = 0.3
    smoothing: float = 0.2
    beside_draws: float = 20.0
    beside_games: int = 1
    max_spread: int = 2**18

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if getattr(self, f.name) != f.default)
        return f"Tuning({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"


TUNED = Tuning()
"""The settings that take the fewest trainings."""

QUICK = replace(TUNED, n_folds=2, few_games=0)
"""Those that take the least time where a training takes microseconds: two folds, and no process over subsets."""
