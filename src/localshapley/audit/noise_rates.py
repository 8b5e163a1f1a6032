"""From scores of labels to probabilities: how many labels are wrong, and how probably each of them is.

How often a label is wrong is read off the rows whose class the models are sure of: their labels hardly ever differ from
it unless they are wrong. For numbers, residuals of right and of wrong ones are told apart.
`docs/concepts/wrong-labels.md` explains each step, and says where it fails.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np
from scipy import optimize, special
from scipy.stats import beta
from scipy.stats import t as student

from localshapley.arrays import AnyArray, Floats, Ints

MIN_OF_CLASS = 5
"""Rows of rarer classes are not judged."""
SURE_SHARE = 0.4
"""Share of the rows whose class the models are called sure of."""
MIN_OF_LEVEL = 0.95
"""Rows that are nearly as sure count, too: with at least this share of the probability of the last of them."""
MIN_CLASS_LEVEL = 0.85
"""The limit is found class by class for classes whose own limit is at least this share of that of all rows."""
COUNTED_SHARE = 0.4
"""Only this share of the sure rows is counted as evidence, because their rate differs a little from that of others."""
PRIOR_ROWS = 10
"""The rates at which one label is taken for another are drawn to the common rate as if by this many rows."""
WRONG_BEYOND_CHANCE = 0.65
"""Labels may be outcomes of chance if those of the surest rows differ from the prediction no more often than at this
point between two shares, on a logarithmic scale: what chance would bring (0), and the share among all rows (1), which
wrong labels would bring."""
N_QUANTILES = 2_000
"""Points by which a distribution of log odds is described."""
N_STEPS, SMALL_STEP = 300, 1e-7
"""Maximum number of steps of a fit of residuals, and the change at which it ends."""
FREEDOMS = (1, 1.5, 2, 3, 5)
"""Degrees of freedom that residuals of right numbers may have: some noise has far heavier tails than other."""


def is_learnt(probabilities: Floats, codes: Ints) -> bool:
    """Whether the probabilities say more about the labels than how frequent each is, beyond doubt."""
    frequent = (np.bincount(codes) / len(codes))[codes]
    gain = np.log(np.maximum(probabilities[np.arange(len(codes)), codes], 1e-6)) - np.log(frequent)
    return bool(gain.mean() > 2 * gain.std() / np.sqrt(len(gain)))


def are_sure(probabilities: Floats) -> AnyArray:
    """The rows whose class is surest, within each class that the models know about as well as others."""
    top, likely = probabilities.max(axis=1), probabilities.argmax(axis=1)
    of_all = np.quantile(top, 1 - SURE_SHARE)
    levels = np.full(probabilities.shape[1], of_all)
    for c in np.flatnonzero(np.bincount(likely) >= MIN_OF_CLASS):
        level = np.quantile(top[likely == c], 1 - SURE_SHARE)
        if level >= MIN_CLASS_LEVEL * of_all:
            levels[c] = level
    out: AnyArray = top >= MIN_OF_LEVEL * levels[likely]
    return out


def share_by_chance(mistakes: float, share: float) -> float:
    """As how many labels of the surest rows would not be as predicted, if all of them were outcomes of chance.

    As if log odds followed a normal distribution around 0, so wide that this share of all predictions is a mistake.
    """
    steps = special.ndtri(0.5 + (np.arange(N_QUANTILES) + 0.5) / (2 * N_QUANTILES))  # sizes of normal numbers, upwards

    def wrong(width: float, odds: Floats = steps) -> float:
        return float(special.expit(-np.exp(width) * odds).mean())

    known = float(np.clip(mistakes, wrong(10.0), wrong(-10.0)))
    width = optimize.brentq(lambda width: wrong(width) - known, -10.0, 10.0)
    return wrong(width, steps[round((1 - share) * N_QUANTILES) :])


def may_be_chance(all_rows: float, surest: float, by_chance: float) -> bool:
    """Whether hardly more labels of the surest rows differ from what is predicted than chance would make.

    If labels are wrong at random, they differ among the surest rows about as often as among all. Outcomes of chance
    differ among them more rarely, and how much more rarely follows from how often they do among all.
    """
    return bool(surest <= by_chance ** (1 - WRONG_BEYOND_CHANCE) * all_rows**WRONG_BEYOND_CHANCE)


def wrong_rate(differ: AnyArray) -> tuple[float, float, float]:
    """Share of wrong labels, from which of some rows differ, with its 95 % interval, by Jeffreys' prior."""
    k, n = int(differ.sum()), len(differ)
    low, high = beta.ppf([0.025, 0.975], COUNTED_SHARE * k + 0.5, COUNTED_SHARE * (n - k) + 0.5)
    return (k + 0.5) / (n + 1), float(low) if k else 0.0, float(high)


def class_rates(classes: Ints, codes: Ints, wrong: float, n_classes: int) -> Floats:
    """How often rows of each class have each label, drawn to the common rate of wrong ones."""
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (classes, codes), 1)
    prior = np.full_like(counts, wrong / (n_classes - 1))
    np.fill_diagonal(prior, 1 - wrong)
    out: Floats = (counts + PRIOR_ROWS * prior) / (counts.sum(axis=1, keepdims=True) + PRIOR_ROWS)
    return out


def posterior(noisy: Floats, wrong: Floats, right: Floats) -> Floats:
    """Probability that a label is wrong.

    Parameters
    ----------
    noisy : probability of the label as it is in the data, right or wrong
    wrong, right : how often a row of the other class, and of its own class, gets this label
    """
    clean = np.clip((noisy - wrong) / np.maximum(right - wrong, 0.01), 0, 1)
    by_mistake = wrong * (1 - clean)
    total = right * clean + by_mistake
    out: Floats = np.divide(by_mistake, total, out=np.zeros_like(total), where=total > 0)
    return out


def with_mean(p: Floats, mean: float) -> Floats:
    """Probabilities with other odds, all by the same factor, so that they have this mean."""
    logit = special.logit(np.clip(p, 0.001, 0.999))
    more = optimize.brentq(lambda more: special.expit(logit + more).mean() - mean, -20, 20)
    out: Floats = special.expit(logit + more)
    return out


def two_kinds(residual: Floats) -> tuple[Floats, tuple[float, float, float]]:
    """Residuals of right numbers follow Student's distribution, those of wrong ones are anywhere: which, and how many.

    Right numbers alone, with heavy tails, explain most tables without wrong ones. So all is weighed with how probable
    it is that there are two kinds, by Schwarz' criterion: the second takes two more numbers, how many there are and how
    far they reach. The interval is that of the fit; it does not know how far right numbers are from any Student
    distribution.
    """
    n = len(residual)
    single, *_ = max((_fit(residual, freedom, 0.0) for freedom in FREEDOMS), key=itemgetter(0))
    double, p_wrong, share, ends = max((_fit(residual, freedom, 0.05) for freedom in FREEDOMS), key=itemgetter(0))
    are_two = float(special.expit(double - single - np.log(n)))
    low = ends[0] if are_two > 0.975 else 0.0
    return are_two * p_wrong, (are_two * share * n, low * n, ends[1] * n)


def _fit(residual: Floats, freedom: float, share: float) -> tuple[float, Floats, float, tuple[float, float]]:
    """Fit one kind of residuals (a share of 0) or two: log-likelihood, p_wrong, share of wrong ones, its interval.

    Steps of expectation and maximisation, that of Student's distribution with weights.
    """
    scale, reach, is_mixed = max(float(np.median(residual)) / 0.6745, 0.1), float(residual.max()), share > 0
    for _ in range(N_STEPS):
        right = 2 / scale * student.pdf(residual / scale, freedom)
        anywhere = 1 / max(reach, 4 * scale)
        p_wrong = share * anywhere / (share * anywhere + (1 - share) * right)
        before = share, scale
        share = float(np.clip(p_wrong.mean(), 1e-4, 0.5)) if is_mixed else 0.0
        weight = (1 - p_wrong) * (freedom + 1) / (freedom + (residual / scale) ** 2)
        scale = max(float(np.sqrt((weight * residual**2).sum() / (1 - p_wrong).sum())), 0.1)
        if abs(share - before[0]) < SMALL_STEP and abs(scale - before[1]) < SMALL_STEP * scale:
            break
    return _log_likelihood(share, anywhere, right), p_wrong, share, _interval(share, anywhere, right)


def _log_likelihood(share: float, anywhere: float, right: Floats) -> float:
    return float(np.log(share * anywhere + (1 - share) * right).sum())


def _interval(share: float, anywhere: float, right: Floats) -> tuple[float, float]:
    """The shares that are less likely than the fitted one by a factor that 95 % of the data stay within."""
    least = _log_likelihood(share, anywhere, right) - 1.96**2 / 2

    def end(outermost: float) -> float:
        if _log_likelihood(outermost, anywhere, right) >= least:
            return outermost
        return float(optimize.brentq(lambda at: _log_likelihood(at, anywhere, right) - least, outermost, share))

    return end(0.0), end(1.0)
