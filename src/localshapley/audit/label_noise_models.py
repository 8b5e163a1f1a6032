"""Witnesses of wrong labels: a forest and a support vector machine, which judge each row without having seen it.

How often a label is wrong is read off the rows whose class both witnesses are sure of: their labels hardly ever differ
from it unless they are wrong. Numbers have a third witness, and residuals of two kinds in place of sure rows.
`docs/concepts/wrong-labels.md` explains each step, and says where it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
from scipy import optimize, sparse, special
from scipy.stats import beta
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from localshapley import scoring
from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.data.row_digests import digest_cells, digest_labels
from localshapley.models.fixed_trees import FixedTrainer
from localshapley.models.task import Task
from localshapley.models.tree_leaves import Grown
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.runtime.threads import cores, in_threads

N_TREES, FEW_TREES, FEW_ROWS = 300, 100, 500
"""Trees of the forest, and as many as do for up to this number of rows, where growing them takes most of the time."""
MAX_BAG = 10_000
"""Rows that each tree is grown on, at most: more would take longer, and change little."""
MAX_OF_MACHINE = 5_000
"""Rows that a support vector machine is trained on, at most."""
MAX_OF_REGRESSION = 50_000
"""Rows that probabilities are fitted to, at most."""
MAX_CELLS = 20_000_000
"""Sparse tables of up to this many cells, empty ones included, are filled in."""
MAX_CLASSES_IN_PAIRS = 20
"""Up to this number of classes the machine is asked about each pair of classes, beyond it about each class."""
MIN_ROWS = 20
"""With fewer rows there are no witnesses."""
MIN_OF_CLASS = 5
"""Rows of rarer classes are not judged."""
SURE = 0.4
"""The witnesses are sure of the class of this share of the rows,"""
NEARLY = 0.95
"""and of those for which it is nearly as probable: so many times as probable as for the last of them at least."""
AS_SURE = 0.85
"""Both hold within each class of which the witnesses are about as sure as of all: so many times at least."""
TOLD = 0.4
"""As if only this share of the sure rows told the rate: it differs a little between them and others."""
PRIOR_ROWS = 10
"""The rates at which one label is taken for another are drawn to the common rate as if by this many rows."""
BEYOND_CHANCE = 0.65
"""Labels may be outcomes of chance unless more of the surest rows have another label than chance would make, by so much
of the way, in logarithms, to as many as of all rows, which wrong labels would make."""
N_QUANTILES = 2_000
"""Points by which a distribution of log odds is described."""
N_STEPS, SMALL_STEP = 300, 1e-7
"""Steps of a fit of one or two kinds of residuals, and how little the last one changes."""
FREEDOMS = (1, 1.5, 2, 3, 5)
"""Degrees of freedom that residuals of right numbers may have: some noise has far heavier tails than other."""
BY_QUALITY = 4
"""A witness of numbers that is off by half as much as another counts two to the power of this as much."""
FINEST = 0.01
"""No witness of numbers is trusted to be nearer than this share of the distance between their quartiles."""
OPEN, CAUTIOUS = (3, 1.0), (10, 0.1)
"""Rows in a leaf of the forest at least, and `C` of the machine. Cautious witnesses learn less from each row, so less
from wrong labels, too."""
FEW_DIFFER, MANY_DIFFER = 0.2, 0.3
"""Cautious witnesses have a say if more labels than this share differ from what the open ones predict, and decide
alone if as many as the second share do. It is a share of two classes: of more, by how much is guessed wrong."""
N_FOLDS = 5
STEPS_OF_FOREST = 5
"""How many steps of the progress bar the forest takes; each fold takes one."""
STEPS = STEPS_OF_FOREST + 2 * N_FOLDS
"""Steps of a forest, a machine and what its probabilities or a second machine take."""


@dataclass(frozen=True)
class Judgement:
    """What the witnesses say about each row.

    Attributes
    ----------
    suspicion : array of shape (n_rows,)
        How much speaks against the label, higher for more; a mean of 0 for labels.
    p_wrong : array of shape (n_rows,)
        Probability that the label is wrong; NaN where the witnesses learn nothing from the columns.
    suggested : array of shape (n_rows,)
        Code of the most probable other class, or the predicted number.
    n_wrong : tuple of float
        Estimated number of wrong labels, with the ends of its 95 % interval; NaN where nothing is learnt.
    differ : tuple of float, optional
        Which share of all labels differs from what the witnesses predict, which share of those of the surest rows, and
        as how many of these would differ if labels were outcomes of chance; None where nothing is learnt.
    """

    suspicion: Floats
    p_wrong: Floats
    suggested: AnyArray
    n_wrong: tuple[float, float, float]
    differ: tuple[float, float, float] | None = None

    def listed(self, n: int | None = None) -> Ints:
        """The rows that are more probably wrong than right, or the `n` most suspicious, the surest first."""
        order = np.argsort(-self.suspicion, kind="stable")
        return order[self.p_wrong[order] > 0.5] if n is None else order[:n]


def judge_labels(X: Any, codes: Ints, *, seed: int = 0, progress: ProgressSetting = False) -> Judgement | None:
    """Let the witnesses judge class codes; None if there are too few rows, or fewer than two classes of five rows."""
    with Progress(progress, 2 * (STEPS + N_FOLDS), "asking the witnesses") as bar:
        return _in_any_order(X, codes, lambda X, codes, same: _judge_labels(X, codes, same, seed, bar))


def judge_numbers(X: Any, y: Floats, *, seed: int = 0, progress: ProgressSetting = False) -> Judgement | None:
    """Let the witnesses judge numbers by how far they are from what is predicted; None if there are too few rows."""
    with Progress(progress, STEPS, "asking the witnesses") as bar:
        return _in_any_order(X, y, lambda X, y, same: _judge_numbers(X, y, same, seed, bar))


def _in_any_order(X: Any, y: AnyArray, judge: Callable[[Any, AnyArray, Ints], Judgement | None]) -> Judgement | None:
    """Judge standardised rows in the order of their digests, so that each is judged alike wherever it is in the table.

    They are rounded, as the last digits of a mean depend on the order in which it is summed up. Columns are put into an
    order that depends on their contents, too. Equal rows with equal labels share what is said of them.
    """
    X = np.round(_alike(filled(X)), 6)
    if not sparse.issparse(X):
        of_columns = np.vstack([np.quantile(X, [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1], axis=0), (y - y.mean()) @ X / len(y)])
        X = np.ascontiguousarray(X[:, np.lexsort(of_columns.round(6))])
    digests = np.column_stack([digest_cells(X), digest_labels(y)])
    order = np.lexsort(digests.T)
    same = np.cumsum(np.r_[False, (np.diff(digests[order], axis=0) != 0).any(axis=1)])
    judged = judge(X[order], y[order], same)
    if judged is None:
        return None
    back = np.argsort(order)
    return replace(
        judged, suspicion=judged.suspicion[back], p_wrong=judged.p_wrong[back], suggested=judged.suggested[back]
    )


def filled(X: Any) -> Any:
    """A table of numbers; a sparse one becomes an array if it is small enough."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X)
    return X.toarray() if np.prod(X.shape) <= MAX_CELLS else X.tocsr()


def _judge_labels(X: Any, codes: Ints, same: Ints, seed: int, bar: Progress) -> Judgement | None:
    counts = np.bincount(codes)
    judged = counts[codes] >= MIN_OF_CLASS
    classes = np.flatnonzero(counts >= MIN_OF_CLASS)
    if judged.sum() < MIN_ROWS or len(classes) < 2:
        return None
    n_rows = len(codes)
    X, codes = X[judged], np.searchsorted(classes, codes[judged])
    trust, shares, decisions, machine = _heard(X, codes, seed, OPEN, bar)
    together = (shares + machine) / 2
    suspicion = -_with_caution(trust, together, X, codes, seed, bar)
    suspicion = _shared(suspicion, same[judged])
    other = _without_own(together, codes).argmax(axis=1)
    noisy = _probabilities(np.hstack([np.log(np.maximum(shares, 1e-3)), decisions]), codes, seed, bar)
    n_wrong, p_wrong, differ = (np.nan,) * 3, np.full(len(codes), np.nan), None
    if _is_learnt(noisy, codes):
        sure = _are_sure(together)
        surest = together[sure].argmax(axis=1)
        rate, *ends = _rate(surest != codes[sure])
        mistakes = float((together.argmax(axis=1) != codes).mean())
        differ = mistakes, float((surest != codes[sure]).mean()), _by_chance(mistakes, float(sure.mean()))
        n_wrong = rate * n_rows, ends[0] * n_rows, ends[1] * n_rows
        rates = _rates(surest, codes[sure], rate, len(classes))
        p_wrong = _posterior(_own(noisy, codes), rates[other, codes], rates[codes, codes])
        p_wrong = IsotonicRegression(y_min=0, y_max=1).fit(suspicion, p_wrong).predict(suspicion)
        p_wrong = _with_mean(p_wrong, rate)
    return Judgement(
        _spread_out(suspicion, judged, 0.0),
        _spread_out(p_wrong, judged, n_wrong[0] / n_rows),
        _spread_out(classes[other], judged, -1),
        n_wrong,
        differ,
    )


def _judge_numbers(X: Any, y: Floats, same: Ints, seed: int, bar: Progress) -> Judgement | None:
    if len(y) < MIN_ROWS:
        return None
    middle = float(np.median(y))
    scale = float(np.subtract(*np.percentile(y, [75, 25]))) or float(y.std()) or 1.0
    target = (y - middle) / scale
    grown = RandomForestRegressor(max_features=1 / 3, **_of_forest(len(y), seed)).fit(X, target)
    bar.advance(STEPS_OF_FOREST)
    folds = list(KFold(N_FOLDS, shuffle=True, random_state=seed).split(target))
    gamma = _gamma(X)
    machines = (SVR(gamma=gamma), SVR(kernel="poly", degree=2, coef0=1, gamma=gamma))
    held_out = [_held_out(machine, "predict", X, target, folds, MAX_OF_MACHINE, bar)[:, 0] for machine in machines]
    residual, together = _together(target, np.array([grown.oob_prediction_, *held_out]))
    residual = _shared(residual, same)
    p_wrong, n_wrong = _two_kinds(residual)
    return Judgement(residual, p_wrong, middle + scale * together, n_wrong)


def _together(target: Floats, predicted: Floats) -> tuple[Floats, Floats]:
    """How far numbers are from what witnesses predict, in what is usual for each, and what they predict together.

    The better a witness predicts, the more it counts. Where witnesses disagree, as at the edge of the data, all of them
    may be off, so residuals are divided by how far they disagree, beside what is usual.

    Parameters
    ----------
    target : array of shape (n_rows,)
    predicted : array of shape (n_witnesses, n_rows)
    """
    off = np.abs(target - predicted)
    usual = np.maximum(np.median(off, axis=1), FINEST)
    weights = (usual.min() / usual) ** BY_QUALITY
    weights /= weights.sum()
    together = weights @ predicted
    disagreement = np.sqrt(weights @ (predicted - together) ** 2)
    usual_together = max(float(np.median(np.abs(target - together))), FINEST)
    return (weights / usual) @ off / np.sqrt(1 + (disagreement / usual_together) ** 2), together


def standardised(X: Any) -> Any:
    """Columns with a standard deviation of 1, and a mean of 0 unless they are sparse."""
    return StandardScaler(with_mean=not sparse.issparse(X)).fit_transform(X)


def _alike(X: Any) -> Any:
    """Columns of one scale: those of two values from 0 to 1, all others in standard deviations, cut off at 3.

    So neither a rare category nor an outlier outweighs everything else; sparse tables are only standardised.
    """
    out = standardised(X)
    if not sparse.issparse(X):
        low, high = X.min(axis=0), X.max(axis=0)
        two = (low < high) & ((low == X) | (high == X)).all(axis=0)
        out[:, two] = (X[:, two] - low[two]) / (high[two] - low[two])
        out[:, ~two] = np.clip(out[:, ~two], -3, 3)
    return out


def _gamma(X: Any) -> float:
    """One over the number of columns that vary, as scikit-learn's "scale" has it for standardised columns."""
    lowest, highest = (np.asarray(end.todense() if sparse.issparse(end) else end) for end in (X.min(0), X.max(0)))
    return 1 / max(int((lowest < highest).sum()), 1)


def _heard(
    X: Any, codes: Ints, seed: int, leaf_and_C: tuple[int, float], bar: Progress
) -> tuple[Floats, Floats, Floats, Floats]:
    """Trust in each label by a forest and a machine, and what it is made of.

    Returns
    -------
    trust : array of shape (n_rows,)
    shares, decisions, machine : arrays of shape (n_rows, ...)
        The forest's probabilities of the classes, the machine's decision values, and its probabilities.
    """
    leaf, C = leaf_and_C
    shares, values = _forest(X, codes, seed, leaf)
    bar.advance(STEPS_OF_FOREST)
    decisions = _decisions(X, codes, seed, C, bar)
    machine = _probabilities(decisions, codes, seed, bar)
    of_forest = _in_deviations(values) + _in_deviations(_margins(shares, codes))
    return of_forest + 2 * _in_deviations(_margins(machine, codes)), shares, decisions, machine


def _with_caution(trust: Floats, together: Floats, X: Any, codes: Ints, seed: int, bar: Progress) -> Floats:
    """Trust in each label, drawn to that of cautious witnesses where many labels are not as predicted."""
    guessed_wrong = 1 - 1 / together.shape[1]
    differ = float((together.argmax(axis=1) != codes).mean()) / (2 * guessed_wrong)
    share = float(np.clip((differ - FEW_DIFFER) / (MANY_DIFFER - FEW_DIFFER), 0, 1))
    if share == 0:
        bar.advance(STEPS + N_FOLDS)
        return trust
    cautious, *_ = _heard(X, codes, seed, CAUTIOUS, bar)
    regression = LogisticRegression(C=CAUTIOUS[1], max_iter=300)
    linear = _held_out(regression, "predict_proba", X, codes, _folds(codes, seed), MAX_OF_MACHINE, bar)
    return (1 - share) * trust + share * (cautious + _in_deviations(_margins(linear, codes)))


def _forest(X: Any, codes: Ints, seed: int, leaf: int) -> tuple[Floats, Floats]:
    """Shares of the classes by the trees that have not seen a row, and the exact values of the rows to such trees."""
    n_rows, every = len(codes), np.arange(len(codes))
    forest = RandomForestClassifier(**_of_forest(n_rows, seed, leaf)).fit(X, codes)
    task = Task(X, codes, X, codes, forest.classes_, codes, scoring.Confidence())
    return forest.oob_decision_function_, FixedTrainer(forest, task, [Grown(forest, X, every)]).values()


def _of_forest(n_rows: int, seed: int, leaf: int = 3) -> dict[str, Any]:
    """Settings of the forest."""
    return {
        "n_estimators": FEW_TREES if n_rows <= FEW_ROWS else N_TREES,
        "min_samples_leaf": leaf,
        "max_samples": min(n_rows, MAX_BAG),
        "oob_score": True,
        "n_jobs": None if n_rows <= FEW_ROWS else -1,
        "random_state": seed,
    }


def _decisions(X: Any, codes: Ints, seed: int, C: float, bar: Progress) -> Floats:
    """Decision values of a support vector machine that has not seen the row, a column for each pair of classes."""
    shape = "ovo" if codes.max() < MAX_CLASSES_IN_PAIRS else "ovr"
    machine = SVC(C=C, gamma=_gamma(X), decision_function_shape=shape)
    return _held_out(machine, "decision_function", X, codes, _folds(codes, seed), MAX_OF_MACHINE, bar)


def _probabilities(evidence: Floats, codes: Ints, seed: int, bar: Progress) -> Floats:
    """Probabilities of the classes, learnt from the evidence about other rows."""
    regression = LogisticRegression(C=0.1, max_iter=300)
    folds = _folds(codes, seed + 1)
    return _held_out(regression, "predict_proba", standardised(evidence), codes, folds, MAX_OF_REGRESSION, bar)


def _folds(codes: Ints, seed: int) -> list[tuple[Ints, Ints]]:
    return list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(codes, codes))


def _held_out(
    model: Any, method: str, X: Any, y: AnyArray, folds: list[tuple[Ints, Ints]], most: int, bar: Progress
) -> Floats:
    """What a model says about each row, trained on at most so many rows of the other folds."""

    def of_fold(fold: tuple[Ints, Ints]) -> Floats:
        train, test = fold
        if len(train) > most:
            labels = y[train] if y.dtype.kind == "i" else None
            train, _ = train_test_split(train, train_size=most, stratify=labels, random_state=0)
        ask: Callable[[Any], Floats] = getattr(clone(model).fit(X[train], y[train]), method)
        return ask(X[test]).reshape(len(test), -1)

    said, at_once = list[Floats](), cores() if isinstance(model, SVC | SVR) else 1  # which let go of the interpreter
    for start in range(0, len(folds), at_once):
        said += in_threads(of_fold, folds[start : start + at_once])
        bar.advance(len(folds[start : start + at_once]))
    back = np.argsort(np.concatenate([test for _, test in folds]))
    return np.concatenate(said)[back]


def _own(probabilities: Floats, codes: Ints) -> Floats:
    return probabilities[np.arange(len(codes)), codes]


def _without_own(probabilities: Floats, codes: Ints) -> Floats:
    others = probabilities.copy()
    others[np.arange(len(codes)), codes] = -np.inf
    return others


def _margins(probabilities: Floats, codes: Ints) -> Floats:
    """By how much the row's label is more probable than every other one."""
    out: Floats = _own(probabilities, codes) - _without_own(probabilities, codes).max(axis=1)
    return out


def _in_deviations(numbers: Floats) -> Floats:
    """Distances from the mean in standard deviations, if the numbers differ at all."""
    deviation = numbers.std()
    out: Floats = (numbers - numbers.mean()) / (deviation if deviation > 0 else 1.0)
    return out


def _is_learnt(probabilities: Floats, codes: Ints) -> bool:
    """Whether the probabilities say more about the labels than how frequent each is, beyond doubt."""
    frequent = (np.bincount(codes) / len(codes))[codes]
    gain = np.log(np.maximum(_own(probabilities, codes), 1e-6)) - np.log(frequent)
    return bool(gain.mean() > 2 * gain.std() / np.sqrt(len(gain)))


def _are_sure(probabilities: Floats) -> AnyArray:
    """The rows whose class is surest, within each class that the witnesses know about as well as others."""
    top, likely = probabilities.max(axis=1), probabilities.argmax(axis=1)
    of_all = np.quantile(top, 1 - SURE)
    levels = np.full(probabilities.shape[1], of_all)
    for c in np.flatnonzero(np.bincount(likely) >= MIN_OF_CLASS):
        level = np.quantile(top[likely == c], 1 - SURE)
        if level >= AS_SURE * of_all:
            levels[c] = level
    out: AnyArray = top >= NEARLY * levels[likely]
    return out


def _by_chance(mistakes: float, share: float) -> float:
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
    return bool(surest <= by_chance ** (1 - BEYOND_CHANCE) * all_rows**BEYOND_CHANCE)


def _rate(differ: AnyArray) -> tuple[float, float, float]:
    """Share of wrong labels, from which of some rows differ, with its 95 % interval, by Jeffreys' prior."""
    k, n = int(differ.sum()), len(differ)
    low, high = beta.ppf([0.025, 0.975], TOLD * k + 0.5, TOLD * (n - k) + 0.5)
    return (k + 0.5) / (n + 1), float(low) if k else 0.0, float(high)


def _rates(classes: Ints, codes: Ints, wrong: float, n_classes: int) -> Floats:
    """How often rows of each class have each label, drawn to the common rate of wrong ones."""
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (classes, codes), 1)
    prior = np.full_like(counts, wrong / (n_classes - 1))
    np.fill_diagonal(prior, 1 - wrong)
    out: Floats = (counts + PRIOR_ROWS * prior) / (counts.sum(axis=1, keepdims=True) + PRIOR_ROWS)
    return out


def _posterior(noisy: Floats, wrong: Floats, right: Floats) -> Floats:
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


def _with_mean(p: Floats, mean: float) -> Floats:
    """Probabilities with other odds, all by the same factor, so that they have this mean."""
    logit = special.logit(np.clip(p, 0.001, 0.999))
    more = optimize.brentq(lambda more: special.expit(logit + more).mean() - mean, -20, 20)
    out: Floats = special.expit(logit + more)
    return out


def _two_kinds(residual: Floats) -> tuple[Floats, tuple[float, float, float]]:
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


def _shared(numbers: Floats, same: Ints) -> Floats:
    """The mean of each group of equal rows, for all of them."""
    out: Floats = (np.bincount(same, numbers) / np.maximum(np.bincount(same), 1))[same]
    return out


def _spread_out(entries: AnyArray, judged: AnyArray, otherwise: Any) -> AnyArray:
    """Entries of the judged rows among all rows."""
    out = np.full(len(judged), otherwise, dtype=entries.dtype)
    out[judged] = entries
    return out
