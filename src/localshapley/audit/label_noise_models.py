"""Label-noise models: a forest and a support vector machine score the label of each row without having seen it.

Numbers in place of labels have a third model. `docs/concepts/wrong-labels.md` explains each step, and says where it
fails; `noise_rates` makes probabilities of the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from localshapley import scoring
from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.audit.noise_rates import (
    MIN_OF_CLASS,
    are_sure,
    class_rates,
    is_learnt,
    posterior,
    share_by_chance,
    two_kinds,
    with_mean,
    wrong_rate,
)
from localshapley.data.row_digests import digest_cells, digest_labels
from localshapley.models.fixed_trees import FixedTrainer
from localshapley.models.task import Task
from localshapley.models.tree_leaves import GrownTrees
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.runtime.threads import cores, in_threads, unthreaded_blas

N_TREES, FEW_TREES, FEW_ROWS = 300, 100, 500
"""Trees of the forest, and as many as do for up to this number of rows, where growing them takes most of the time."""
MAX_BAG = 10_000
"""Rows that each tree is grown on, at most: more would take longer, and change little."""
MAX_MACHINE_ROWS = 5_000
"""Rows that a support vector machine is trained on, at most."""
MAX_REGRESSION_ROWS = 50_000
"""Rows that probabilities are fitted to, at most."""
MAX_CELLS = 20_000_000
"""Sparse tables of up to this many cells, empty ones included, are filled in."""
MAX_CLASSES_IN_PAIRS = 20
"""Up to this number of classes the machine is asked about each pair of classes, beyond it about each class."""
MIN_ROWS = 20
"""With fewer rows there is too little to learn from."""
QUALITY_POWER = 4
"""A model of numbers that is off by half as much as another counts two to the power of this as much."""
MIN_ERROR = 0.01
"""No model of numbers is trusted to be nearer than this share of the distance between their quartiles."""
OPEN, CAUTIOUS = (3, 1.0), (10, 0.1)
"""Minimum number of rows in a leaf of the forest, and `C` of the machine. Cautious models learn less from each row, so
less from wrong labels, too."""
FEW_DIFFER, MANY_DIFFER = 0.2, 0.3
"""Shares of labels that differ from the prediction of the open models: above the first, cautious models have a say, and
from the second on they decide alone. Of more than two classes, shares are scaled by how often a guess is wrong."""
N_FOLDS = 5
STEPS_OF_FOREST = 5
"""How many steps of the progress bar the forest takes; each fold takes one."""
STEPS = STEPS_OF_FOREST + 2 * N_FOLDS
"""Steps of a forest, a machine and what its probabilities or a second machine take."""


@dataclass(frozen=True)
class NoiseScores:
    """What the label-noise models say about each row.

    Attributes
    ----------
    suspicion : array of shape (n_rows,)
        How much speaks against the label, higher for more; a mean of 0 for labels.
    p_wrong : array of shape (n_rows,)
        Probability that the label is wrong; NaN where the models learn nothing from the columns.
    suggested : array of shape (n_rows,)
        The most probable other class (None for rows of rare classes, which are not judged), or the predicted number.
    n_wrong : tuple of float
        Estimated number of wrong labels, with the ends of its 95 % interval; NaN where nothing is learnt.
    differ : tuple of float, optional
        Three shares of labels that differ from what is predicted: of all labels, of those of the surest rows, and of
        these if labels were outcomes of chance; None where nothing is learnt.
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


def noise_scores(
    X: Any, labels: AnyArray, *, regression: bool, seed: int = 0, progress: ProgressSetting = False
) -> NoiseScores | None:
    """Score labels, or numbers; None if there are too few rows, or fewer than two classes of five rows."""
    if regression:
        return score_numbers(X, labels.astype(np.float64), seed=seed, progress=progress)
    classes, codes = np.unique(labels, return_inverse=True)
    scores = score_labels(X, codes, seed=seed, progress=progress)
    if scores is None:
        return None
    suggested = classes.astype(object)[scores.suggested]
    suggested[scores.suggested < 0] = None
    return replace(scores, suggested=suggested)


def score_labels(X: Any, codes: Ints, *, seed: int = 0, progress: ProgressSetting = False) -> NoiseScores | None:
    """Score class codes; `suggested` holds codes, −1 for rows of rare classes."""
    with Progress(progress, 2 * (STEPS + N_FOLDS), "looking for wrong labels") as bar:
        return _in_any_order(X, codes, lambda X, codes, same: _score_labels(X, codes, same, seed, bar))


def score_numbers(X: Any, y: Floats, *, seed: int = 0, progress: ProgressSetting = False) -> NoiseScores | None:
    """Score numbers by how far they are from what is predicted."""
    with Progress(progress, STEPS, "looking for wrong numbers") as bar:
        return _in_any_order(X, y, lambda X, y, same: _score_numbers(X, y, same, seed, bar))


def _in_any_order(
    X: Any, y: AnyArray, score: Callable[[Any, AnyArray, Ints], NoiseScores | None]
) -> NoiseScores | None:
    """Score standardised rows in the order of their digests, so that each is judged alike wherever it is in the table.

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
    with unthreaded_blas():  # the products are so small that threads of BLAS cost more than they save
        scores = score(X[order], y[order], same)
    if scores is None:
        return None
    back = np.argsort(order)
    return replace(
        scores, suspicion=scores.suspicion[back], p_wrong=scores.p_wrong[back], suggested=scores.suggested[back]
    )


def filled(X: Any) -> Any:
    """A table of numbers; a sparse one becomes an array if it is small enough."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X)
    return X.toarray() if np.prod(X.shape) <= MAX_CELLS else X.tocsr()


def _score_labels(X: Any, codes: Ints, same: Ints, seed: int, bar: Progress) -> NoiseScores | None:
    counts = np.bincount(codes)
    judged = counts[codes] >= MIN_OF_CLASS
    classes = np.flatnonzero(counts >= MIN_OF_CLASS)
    if judged.sum() < MIN_ROWS or len(classes) < 2:
        return None
    n_rows = len(codes)
    X, codes = X[judged], np.searchsorted(classes, codes[judged])
    trust, shares, decisions, machine = _trust(X, codes, seed, OPEN, bar)
    together = (shares + machine) / 2
    suspicion = -_with_caution(trust, together, X, codes, seed, bar)
    suspicion = _shared(suspicion, same[judged])
    other = _without_own(together, codes).argmax(axis=1)
    noisy = _probabilities(np.hstack([np.log(np.maximum(shares, 1e-3)), decisions]), codes, seed, bar)
    n_wrong, p_wrong, differ = (np.nan,) * 3, np.full(len(codes), np.nan), None
    if is_learnt(noisy, codes):
        sure = are_sure(together)
        surest = together[sure].argmax(axis=1)
        rate, *ends = wrong_rate(surest != codes[sure])
        mistakes = float((together.argmax(axis=1) != codes).mean())
        differ = mistakes, float((surest != codes[sure]).mean()), share_by_chance(mistakes, float(sure.mean()))
        n_wrong = rate * n_rows, ends[0] * n_rows, ends[1] * n_rows
        rates = class_rates(surest, codes[sure], rate, len(classes))
        p_wrong = posterior(_own(noisy, codes), rates[other, codes], rates[codes, codes])
        p_wrong = IsotonicRegression(y_min=0, y_max=1).fit(suspicion, p_wrong).predict(suspicion)
        p_wrong = with_mean(p_wrong, rate)
    return NoiseScores(
        _spread_out(suspicion, judged, 0.0),
        _spread_out(p_wrong, judged, n_wrong[0] / n_rows),
        _spread_out(classes[other], judged, -1),
        n_wrong,
        differ,
    )


def _score_numbers(X: Any, y: Floats, same: Ints, seed: int, bar: Progress) -> NoiseScores | None:
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
    held_out = [_held_out(machine, "predict", X, target, folds, MAX_MACHINE_ROWS, bar)[:, 0] for machine in machines]
    residual, together = _together(target, np.array([grown.oob_prediction_, *held_out]))
    residual = _shared(residual, same)
    p_wrong, n_wrong = two_kinds(residual)
    return NoiseScores(residual, p_wrong, middle + scale * together, n_wrong)


def _together(target: Floats, predicted: Floats) -> tuple[Floats, Floats]:
    """How far numbers are from what models predict, in what is usual for each, and what they predict together.

    The better a model predicts, the more it counts. Where models disagree, as at the edge of the data, all of them may
    be off, so residuals are divided by how far they disagree, beside what is usual.

    Parameters
    ----------
    target : array of shape (n_rows,)
    predicted : array of shape (n_models, n_rows)
    """
    off = np.abs(target - predicted)
    usual = np.maximum(np.median(off, axis=1), MIN_ERROR)
    weights = (usual.min() / usual) ** QUALITY_POWER
    weights /= weights.sum()
    together = weights @ predicted
    disagreement = np.sqrt(weights @ (predicted - together) ** 2)
    usual_together = max(float(np.median(np.abs(target - together))), MIN_ERROR)
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


def _trust(
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
    """Trust in each label, drawn to that of cautious models where many labels are not as predicted."""
    guessed_wrong = 1 - 1 / together.shape[1]
    differ = float((together.argmax(axis=1) != codes).mean()) / (2 * guessed_wrong)
    share = float(np.clip((differ - FEW_DIFFER) / (MANY_DIFFER - FEW_DIFFER), 0, 1))
    if share == 0:
        bar.advance(STEPS + N_FOLDS)
        return trust
    cautious, *_ = _trust(X, codes, seed, CAUTIOUS, bar)
    regression = LogisticRegression(C=CAUTIOUS[1], max_iter=300)
    linear = _held_out(regression, "predict_proba", X, codes, _folds(codes, seed), MAX_MACHINE_ROWS, bar)
    return (1 - share) * trust + share * (cautious + _in_deviations(_margins(linear, codes)))


def _forest(X: Any, codes: Ints, seed: int, leaf: int) -> tuple[Floats, Floats]:
    """Shares of the classes by the trees that have not seen a row, and the exact values of the rows to such trees."""
    n_rows, every = len(codes), np.arange(len(codes))
    forest = RandomForestClassifier(**_of_forest(n_rows, seed, leaf)).fit(X, codes)
    task = Task(X, codes, X, codes, forest.classes_, codes, scoring.Confidence())
    return forest.oob_decision_function_, FixedTrainer(forest, task, [GrownTrees(forest, X, every)]).values()


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
    return _held_out(machine, "decision_function", X, codes, _folds(codes, seed), MAX_MACHINE_ROWS, bar)


def _probabilities(evidence: Floats, codes: Ints, seed: int, bar: Progress) -> Floats:
    """Probabilities of the classes, learnt from the evidence about other rows."""
    regression = LogisticRegression(C=0.1, max_iter=300)
    folds = _folds(codes, seed + 1)
    return _held_out(regression, "predict_proba", standardised(evidence), codes, folds, MAX_REGRESSION_ROWS, bar)


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


def _shared(numbers: Floats, same: Ints) -> Floats:
    """The mean of each group of equal rows, for all of them."""
    out: Floats = (np.bincount(same, numbers) / np.maximum(np.bincount(same), 1))[same]
    return out


def _spread_out(entries: AnyArray, judged: AnyArray, otherwise: Any) -> AnyArray:
    """Entries of the judged rows among all rows."""
    out = np.full(len(judged), otherwise, dtype=entries.dtype)
    out[judged] = entries
    return out
