"""How many wrong labels are found, beside rivals: some labels are flipped, and as many rows are called suspicious.

    LOCALSHAPLEY_DATA=folder python benchmarks/label_errors.py [--seeds 3] [--only NAME] [--jobs 2] [--minutes 60]
    LOCALSHAPLEY_DATA=folder python benchmarks/label_errors.py --no-values --rates 0.4    # a part that takes less time
    LOCALSHAPLEY_DATA=folder python benchmarks/label_errors.py --numbers     # wrong numbers in regression
    LOCALSHAPLEY_DATA=folder python benchmarks/label_errors.py --right-numbers --seeds 5    # regression, none is wrong
    python benchmarks/label_errors.py --chance --seeds 8    # labels that are outcomes of chance: is it cautioned of?
    python benchmarks/label_errors.py --time    # seconds for 1,000 digits

The folder holds `adult.tsv.gz`, `bank.csv`, `201_pol.tsv.gz`, `215_2dplanes.tsv.gz` (PMLB) and MNIST somewhere;
cleanlab must be installed. Every data set has 1,000 rows drawn at random (569 in Breast Cancer, 178 in wine); pol and
2dplanes are split at the median of their target. Labels are flipped in three ways: *uniform*, to any other class;
*pairs*, to the class that a logistic regression confuses most with the right one; *boundary*, to the next class, among
the half of the rows of which it is least sure. No method knows a clean label: rows judge each other, in five folds or
out of bag.

Prints precision at the true number (of as many rows as there are wrong labels, how many are wrong) of

- suspects: the ranking of `audit.label_errors`, the same whatever the model,
- forest value: `models.Fixed(RandomForestClassifier(300, min_samples_leaf=3))`, out of bag,
- Data-OOB, forest: the share of 800 trees (as in the paper) that have not seen the row and predict its label,
- Data-OOB, logistic: the same of 100 bagged logistic regressions,
- KNN-Shapley: soft labels, K by the best held-out accuracy of 1, 3, 5, 10, 20, 50,
- and for each of five models (KNN, tree, RBF-SVM, logistic regression, forest of 100 trees) value: the local value,
  `Nearest(10)`, `tol=0.2`; self-confidence and margin: of held-out probabilities; cleanlab issues and cleanlab quality:
  `find_label_issues` filled up by quality, and `get_label_quality_scores`, from the same probabilities.

The best of so many rivals in a line is ahead partly by luck, if it is picked by the seeds that it is judged on. So
`suspects` is also compared, seed by seed, with the rival that is best in the line on the *other* seeds; the mean of
these differences has a standard error over seeds, and lines within two of them are counted.

`--chance` draws labels from probabilities that the columns tell, so that none is wrong, and counts cautions.

With that, how well `p_wrong` is calibrated, what the list `p_wrong > 0.5` holds, and how often the interval of the
number of wrong labels holds the true number. `--save FOLDER` keeps all of it, and `--tables FOLDER` prints it again and
draws the reliability plot of the docs there.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn import datasets
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.audit.label_noise_models import score_labels, score_numbers

N_ROWS = 1000
TABLES = ("precisions", "probabilities", "numbers")
KINDS, RATES = ("uniform", "pairs", "boundary"), (0.05, 0.1, 0.2, 0.4)
NAMES = ("breast_cancer", "digits", "mnist", "adult", "bank", "pol", "2dplanes", "wine")
SHAPES = (
    "linear", "exp", "quadratic", "interaction", "heavy tails", "heteroscedastic", "lognormal", "skewed noise",
    "noise alone",
)  # fmt: skip
OUTCOMES = ("two columns", "two columns, 300 rows", "sigmoid(x)", "sigmoid(2 x)", "steep", "passengers", "churn")
CATEGORIES = (
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country",
)  # fmt: skip
MODELS: dict[str, Any] = {
    "knn": KNeighborsClassifier(),
    "tree": DecisionTreeClassifier(random_state=0),
    "svm": SVC(),
    "logistic": LogisticRegression(max_iter=300),
    "forest": RandomForestClassifier(random_state=0),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows of a data set, numbers standardised and categories one column each."""
    if name in ("breast_cancer", "digits", "wine"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return StandardScaler().fit_transform(X), y
    if name == "mnist":
        images = ls.datasets.load("mnist")
        return np.asarray(images.X, dtype=float).reshape(len(images.X), -1), np.asarray(images.y)
    if name == "adult":
        table = read("adult.tsv.gz", "\t")
        y = table.pop("target").to_numpy()
        return encoded(table.astype(dict.fromkeys(CATEGORIES, str))), y
    if name == "bank":
        table = read("bank.csv", ";")
        y = np.unique(table.pop("y"), return_inverse=True)[1]
        return encoded(table), y
    table = read({"pol": "201_pol.tsv.gz", "2dplanes": "215_2dplanes.tsv.gz"}[name], "\t")
    y = table.pop("target").to_numpy()
    return encoded(table), (y > np.median(y)).astype(int)


def read(name: str, sep: str) -> pd.DataFrame:
    return pd.read_csv(next(Path(os.environ["LOCALSHAPLEY_DATA"]).rglob(name)), sep=sep)


def encoded(table: pd.DataFrame) -> np.ndarray:
    numbers = table.select_dtypes("number")
    scaled, words = StandardScaler().fit_transform(numbers), table.drop(columns=numbers.columns)
    return np.hstack([scaled, pd.get_dummies(words).to_numpy(float)]) if words.shape[1] else scaled


def flipped(X: np.ndarray, y: np.ndarray, kind: str, rate: float, rng: np.random.Generator) -> Any:
    """Labels of which some are another class, and where they are."""
    n, k = len(y), round(rate * len(y))
    p = cross_val_predict(LogisticRegression(max_iter=300), X, y, cv=5, method="predict_proba")
    top = np.sort(p, axis=1)
    pool = np.argsort(top[:, -1] - top[:, -2])[: max(k, n // 2)] if kind == "boundary" else np.arange(n)
    where, new, classes = rng.choice(pool, k, replace=False), y.copy(), np.unique(y)
    p[np.arange(n), y] = -1
    if kind == "uniform":
        new[where] = [rng.choice(classes[classes != y[i]]) for i in where]
    elif kind == "pairs":
        new[where] = np.array([p[y == c].mean(axis=0).argmax() for c in classes])[y[where]]
    else:
        new[where] = p[where].argmax(axis=1)
    return new, np.isin(np.arange(n), where)


def rankings(X: np.ndarray, y: np.ndarray, seed: int, values: bool) -> Iterator[tuple[str, str, np.ndarray]]:
    """Model, method, and a number for each row that is low where the label looks wrong."""
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))
    fixed = ls.models.Fixed(RandomForestClassifier(300, min_samples_leaf=3, random_state=seed))
    yield "any", "forest value", ls.value(X, y, model=fixed, cv="oob", progress=False, n_jobs=1).values
    yield "any", "Data-OOB, forest", data_oob(RandomForestClassifier(800, random_state=seed), X, y)
    yield (
        "any",
        "Data-OOB, logistic",
        data_oob(BaggingClassifier(LogisticRegression(max_iter=300), 100, random_state=seed), X, y),
    )
    yield "any", "KNN-Shapley", knn_shapley(X, y, folds)
    for name, model in MODELS.items():
        settings: dict[str, Any] = {"support": ls.supports.Nearest(10), "tol": 0.2, "progress": False, "n_jobs": 1}
        if values:
            yield name, "value", ls.value(X, y, model=model, cv=folds, seed=seed, **settings).values
        model = SVC(probability=True, random_state=0) if name == "svm" else model
        p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
        yield name, "self-confidence", p[np.arange(len(y)), y]
        yield name, "margin", margin(p, y)
        yield from ((name, method, order) for method, order in cleanlab(p, y))


def margin(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    others = np.where(np.arange(p.shape[1]) == y[:, None], -np.inf, p)
    return p[np.arange(len(y)), y] - others.max(axis=1)


def data_oob(bag: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Share of the models that have not seen a row and predict its label."""
    bag.fit(X, y)
    right, n = np.zeros(len(y)), np.zeros(len(y))
    for model, seen in zip(bag.estimators_, bag.estimators_samples_, strict=True):
        out = np.setdiff1d(np.arange(len(y)), seen)
        right[out] += bag.classes_[model.predict(X[out]).astype(int)] == y[out]
        n[out] += 1
    return right / np.maximum(n, 1)


def knn_shapley(X: np.ndarray, y: np.ndarray, folds: Any) -> np.ndarray:
    accuracy = {
        k: (cross_val_predict(KNeighborsClassifier(k), X, y, cv=folds) == y).mean() for k in (1, 3, 5, 10, 20, 50)
    }
    model = KNeighborsClassifier(max(accuracy, key=accuracy.__getitem__))
    return ls.value(X, y, model=model, support=ls.supports.Everything(), cv=folds, progress=False, n_jobs=1).values


def cleanlab(p: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    quality = get_label_quality_scores(y, p)
    issues = find_label_issues(y, p, return_indices_ranked_by="self_confidence", n_jobs=1)
    ranked = quality + 10.0
    ranked[issues] = np.arange(len(issues)) / len(y)
    yield "cleanlab issues", ranked
    yield "cleanlab quality", quality


def run(
    name: str, kind: str, rate: float, seed: int, end: float, rivals: bool, values: bool
) -> tuple[list[dict[str, Any]], Any, Any] | None:
    """Precisions of all methods; and of ours, probabilities and the number of wrong labels."""
    if perf_counter() > end:
        return None
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, NAMES.index(name), KINDS.index(kind), round(100 * rate)])
    X, y = load(name)
    rows = rng.permutation(len(y))[:N_ROWS]
    X, y = X[rows], np.unique(y[rows], return_inverse=True)[1]
    y, wrong = flipped(X, y, kind, rate, rng)
    about = {"data": name, "flips": kind, "rate": rate, "seed": seed}
    judged = score_labels(X, y, seed=seed)
    assert judged is not None
    found = []
    others = rankings(X, y, seed, values) if rivals else ()
    for model, method, order in [("any", "suspects", -judged.suspicion), *others]:
        worst = np.argsort(order, kind="stable")[: wrong.sum()]
        found.append(about | {"model": model, "method": method, "precision": wrong[worst].mean()})
    ours = pd.DataFrame({"p_wrong": judged.p_wrong.astype(np.float32), "wrong": wrong}).assign(**about)
    number = about | dict(zip(("about", "low", "high"), judged.n_wrong, strict=True)) | {"true": int(wrong.sum())}
    return found, ours, number


def calibration_error(judged: pd.DataFrame) -> float:
    """Mean distance between what is predicted and what is true in ten bins of `p_wrong`, by their rows."""
    bins = judged.groupby(np.minimum((10 * judged["p_wrong"]).astype(int), 9))
    sizes, gap = bins.size(), (bins["p_wrong"].mean() - bins["wrong"].mean()).abs()
    return float((gap * sizes).sum() / sizes.sum())


def report(found: pd.DataFrame, judged: pd.DataFrame, numbers: pd.DataFrame) -> None:
    """Print the tables."""
    unknown = judged["p_wrong"].isna()
    print(f"in {unknown.sum() / len(judged):.1%} of the rows nothing is learnt, and p_wrong is not known")
    judged = judged[~unknown]
    found = found.assign(who=found["method"] + np.where(found["model"] == "any", "", " of " + found["model"]))
    wide = found.pivot_table(index=["data", "flips", "rate"], columns="who", values="precision")
    for by in ("data", "flips", "rate"):
        print(f"\n{markdown(by_method(found, wide.groupby(by).mean()))}")
    report_calibration(judged, numbers)
    rivals = wide.drop(columns="suspects")
    if not rivals.shape[1]:
        return
    lead = wide["suspects"] - rivals.max(axis=1)
    error = found.groupby(["who", "data", "flips", "rate"])["precision"].sem().mean()
    print(f"\n{len(wide)} lines, standard error of a line about {error:.3f}, {rivals.shape[1]} rivals in each")
    print(f"suspects: best or equal in {(lead >= 0).sum()} lines, within 0.03 of the best in {(lead >= -0.03).sum()}")
    regret = pd.DataFrame({who: wide.max(axis=1) - wide[who] for who in wide}).agg(["mean", "max"]).T
    print(f"\nbehind the best of the line\n{markdown(regret.sort_values('mean').head(8))}")
    behind = pd.DataFrame({"suspects": wide["suspects"], "best": rivals.max(axis=1), "who": rivals.idxmax(axis=1)})
    print(f"\nlines where another is ahead by more than 0.03\n{markdown(behind[lead < -0.03])}")
    if found["seed"].nunique() > 1:
        report_other_seeds(found)


def report_other_seeds(found: pd.DataFrame) -> None:
    """Print how far suspects is from the rival that is best in a line on the other seeds."""
    differences = []
    for line, part in found.groupby(["data", "flips", "rate"]):
        table = part.pivot_table(index="seed", columns="who", values="precision")
        rivals = table.drop(columns="suspects")
        for seed in table.index if len(table) > 1 else ():
            best = rivals.drop(index=seed).mean().idxmax()
            differences.append((*line, table.at[seed, "suspects"] - rivals.at[seed, best]))
    lines = pd.DataFrame(differences, columns=["data", "flips", "rate", "difference"]).groupby(
        ["data", "flips", "rate"]
    )
    table = lines["difference"].agg(["mean", "sem"]).rename(columns={"mean": "difference", "sem": "stderr"})
    pooled = float(np.sqrt((table["stderr"] ** 2).mean()))
    near = table["difference"] >= -2 * np.maximum(table["stderr"], pooled)
    mean, ahead = table["difference"].mean(), (table["difference"] > 0).sum()
    print(f"\nagainst the rival that is best in the line on other seeds: {mean:+.3f} on average")
    print(f"ahead in {ahead} of {len(table)} lines")
    print(f"within two standard errors (each at least {pooled:.3f}, their quadratic mean) in {near.sum()}; others")
    print(markdown(table[~near]))


def report_calibration(judged: pd.DataFrame, numbers: pd.DataFrame) -> None:
    """Print how far probabilities and estimated numbers are right."""
    numbers = numbers[numbers["about"].notna()]
    keys = ["flips", "rate"]
    covers = numbers["true"].between(numbers["low"], numbers["high"])
    judged = judged.assign(listed=judged["p_wrong"] > 0.5)
    quality = {
        "calibration error": judged.groupby(keys)[["p_wrong", "wrong"]].apply(calibration_error),
        "listed": judged.groupby(keys)["listed"].mean(),
        "of these wrong": judged[judged["listed"]].groupby(keys)["wrong"].mean(),
        "of the wrong listed": judged[judged["wrong"]].groupby(keys)["listed"].mean(),
        "estimated rate": (numbers["about"] * numbers["rate"] / numbers["true"])
        .groupby([numbers[key] for key in keys])
        .mean(),
        "interval covers": numbers.assign(covers=covers).groupby(keys)["covers"].mean(),
    }
    print(f"\ncalibration error over all rows {calibration_error(judged):.3f}\n{markdown(pd.DataFrame(quality))}")


def by_method(found: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """A line for each method; of those that depend on a model the mean over the models, and the best of them."""
    lines = {}
    for method, part in found.groupby("method"):
        of = part["who"].unique().tolist()
        best = table[of].mean().idxmax()
        lines[method if len(of) == 1 else f"{method}, mean of five models"] = table[of].mean(axis=1)
        if len(of) > 1:
            lines[best] = table[best]
    return pd.DataFrame(lines).T.assign(mean=lambda t: t.mean(axis=1)).sort_values("mean", ascending=False)


def markdown(table: pd.DataFrame) -> str:
    """A table with three decimals."""
    flat = table.reset_index()
    lines = [list(map(str, flat.columns)), ["---"] * flat.shape[1]]
    lines += [[f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in flat.to_numpy()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(judged: pd.DataFrame, path: Path) -> None:
    """The reliability plot."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.9), sharey=True, layout="constrained")
    judged = judged[judged["p_wrong"].notna()]
    for ax, kind in zip(axes, KINDS, strict=True):
        for rate, part in judged[judged["flips"] == kind].groupby("rate"):
            bins = part.groupby(np.minimum((10 * part["p_wrong"]).astype(int), 9))
            means, sizes = bins[["p_wrong", "wrong"]].mean(), bins.size()
            means = means[sizes >= 30]
            ax.plot(means["p_wrong"], means["wrong"], marker="o", markersize=3, label=f"{100 * rate:.0f} % wrong")
        ax.plot([0, 1], [0, 1], color="gray", linewidth=0.8, linestyle=":")
        ax.set(title=kind, xlabel="p_wrong", aspect="equal")
    axes[0].set_ylabel("share that is wrong")
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def wrong_numbers(seeds: range) -> None:
    """Regression: targets of some rows are another row's, or shifted by 1 to 3 standard deviations."""
    lines = []
    names, kinds, rates = ("diabetes", "friedman", "pol", "2dplanes"), ("other", "shifted"), (0.05, 0.1, 0.2)
    for name, kind, rate, seed in product(names, kinds, rates, seeds):
        rng = np.random.default_rng([seed, round(100 * rate)])
        X, true = table_of_numbers(name, seed)
        rows = rng.permutation(len(true))[:N_ROWS]
        X, y = StandardScaler().fit_transform(X[rows]), true[rows].astype(float)
        where = rng.choice(len(y), round(rate * len(y)), replace=False)
        other = rng.permutation(y)[: len(where)]
        shift = rng.choice([-1, 1], len(where)) * rng.uniform(1, 3, len(where)) * y.std()
        y[where] = other if kind == "other" else y[where] + shift
        wrong = np.isin(np.arange(len(y)), where)
        judged = score_numbers(X, y, seed=seed)
        assert judged is not None
        forest = RandomForestRegressor(300, min_samples_leaf=3, max_features=1 / 3, random_state=seed)
        folds = list(KFold(5, shuffle=True, random_state=seed).split(X))
        ways = {
            "suspects": -judged.suspicion,
            "value, KNN": ls.value(X, y, model="knn", cv=folds, progress=False).values,
            "forest value": ls.value(X, y, model=ls.models.Fixed(forest), cv="oob", progress=False).values,
            "residual, forest out of bag": -np.abs(y - forest.set_params(oob_score=True).fit(X, y).oob_prediction_),
            "residual, ridge": -np.abs(
                y - cross_val_predict(ls.models.named("ridge", regression=True), X, y, cv=folds)
            ),
        }
        found = {way: wrong[np.argsort(order, kind="stable")[: len(where)]].mean() for way, order in ways.items()}
        listed = judged.p_wrong > 0.5
        said = {"listed": listed.mean(), "of these wrong": wrong[listed].mean() if listed.any() else np.nan}
        lines.append({"data": name, "wrong": kind, "rate": rate} | found | said)
    table = pd.DataFrame(lines)
    print(markdown(table.groupby(["data", "wrong"]).mean(numeric_only=True).drop(columns="rate")))
    print(f"\n{markdown(table.groupby(['wrong', 'rate']).mean(numeric_only=True))}")


def right_numbers(seeds: range) -> None:
    """Regression without wrong numbers: how many rows are listed, and how often the interval leaves out 0."""
    lines = []
    drawn = [(name, n, width) for name in SHAPES for n, width in ((200, 1), (200, 3), (500, 5), (1000, 10))]
    stored = [(name, N_ROWS, 0) for name in ("diabetes", "friedman", "pol", "2dplanes")]
    for (name, n, width), seed in product(drawn + stored, seeds):
        rng = np.random.default_rng([seed, n, width])
        X, y = drawn_numbers(name, n, width, rng) if width else table_of_numbers(name, seed)
        rows = rng.permutation(len(y))[:n]
        judged = score_numbers(X[rows], y[rows].astype(float), seed=seed)
        assert judged is not None
        listed, (about, low, _) = int((judged.p_wrong > 0.5).sum()), judged.n_wrong
        lines.append({"data": name, "listed": listed, "runs with some": float(listed > 0),
                      "about": about, "interval leaves out 0": float(low >= 1)})  # fmt: skip
    groups = pd.DataFrame(lines).groupby("data", sort=False)
    table = groups[["listed", "about"]].mean().rename(columns={"listed": "listed on average", "about": "estimated"})
    table.insert(0, "runs", groups.size())
    table.insert(2, "most listed", groups["listed"].max())
    print(markdown(table.join(groups[["runs with some", "interval leaves out 0"]].mean()).astype({"runs": object})))


def drawn_numbers(name: str, n: int, width: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and numbers of one of the `SHAPES` with noise of 0.3, a tenth of how much the linear ones differ."""
    X, weights = rng.normal(size=(n, width)), np.arange(width, 0, -1.0)
    weights /= np.linalg.norm(weights)
    linear, noise = 3 * X @ weights, 0.3 * rng.normal(size=n)
    return X, {
        "linear": linear + noise,
        "exp": np.exp(X[:, 0]) + X[:, -1] / 2 + noise,
        "quadratic": X**2 @ weights + noise,
        "interaction": linear + 2 * X[:, 0] * X[:, -1] + noise,
        "heavy tails": linear + 0.3 * rng.standard_t(3, n),
        "heteroscedastic": linear + noise * np.exp(X[:, 0]),
        "lognormal": np.exp(linear / 3 + noise),
        "skewed noise": linear + rng.lognormal(size=n),
        "noise alone": noise,
    }[name]


def table_of_numbers(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if name == "diabetes":
        return datasets.load_diabetes(return_X_y=True)
    if name == "friedman":
        return datasets.make_friedman1(N_ROWS, noise=1, random_state=seed)
    table = read({"pol": "201_pol.tsv.gz", "2dplanes": "215_2dplanes.tsv.gz"}[name], "\t")
    y = table.pop("target").to_numpy(float)
    return table.to_numpy(float), y


def outcomes_of_chance(seeds: range) -> None:
    """How often it is cautioned that labels may be outcomes of chance: where they are, and where some are flipped."""
    lines = []
    for name, seed in product(OUTCOMES, seeds):
        X, y = drawn_outcomes(name, np.random.default_rng([seed, OUTCOMES.index(name)]))
        lines.append({"labels": f"chance: {name}"} | cautioned(X, y, seed))
    for name, rate, seed in product(("iris", "wine", "breast_cancer"), (0.02, 0.05, 0.1, 0.2), seeds):
        rng = np.random.default_rng([seed, round(100 * rate)])
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        y = flipped(StandardScaler().fit_transform(X), y, "uniform", rate, rng)[0]
        lines.append({"labels": f"{name}, {100 * rate:.0f} % flipped"} | cautioned(X, y, seed))
    groups = pd.DataFrame(lines).groupby("labels", sort=False)
    print(markdown(groups.mean().assign(runs=groups.size().astype(object))))


def cautioned(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, float]:
    """What is listed, and whether a caution speaks of chance."""
    found = ls.audit.label_errors(X, y, seed=seed)
    table, scores = found.table, score_labels(X, np.unique(y, return_inverse=True)[1], seed=seed)
    all_rows, surest, by_chance = (np.nan,) * 3 if scores is None or scores.differ is None else scores.differ
    caution = any("outcomes of chance" in caution for caution in found.verdict.cautions)
    listed = {"listed": len(table) / len(y), "p_wrong > 0.9": (table["p_wrong"] > 0.9).mean() if len(table) else 0.0}
    return listed | {"differ": all_rows, "of the surest": surest, "by chance": by_chance, "cautioned": float(caution)}


def times(repeats: int = 5) -> None:
    """Seconds for 1,000 digits, a tenth of them wrong, after a first call, and how many of the 100 first are wrong."""
    X, y = load("digits")
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:N_ROWS]
    X, (y, wrong) = X[rows], flipped(X[rows], y[rows], "uniform", 0.1, rng)
    of_values = {"cv": 5, "progress": False}

    def by_cleanlab(model: Any) -> np.ndarray:
        p = cross_val_predict(model, X, y, cv=5, method="predict_proba")
        return np.argsort(next(ranked for method, ranked in cleanlab(p, y) if method == "cleanlab issues"))

    ways = {
        "label_errors(X, y)": lambda: ls.audit.label_errors(X, y, n=100).table.index,
        "value, KNN, then label_errors": lambda: (
            ls.audit.label_errors(X, y, n=100, values=ls.value(X, y, model="knn", **of_values)).table.index
        ),
        "value, SVM, then label_errors": lambda: (
            ls.audit.label_errors(X, y, n=100, values=ls.value(X, y, model=SVC(), **of_values)).table.index
        ),
        "cleanlab, KNN": lambda: by_cleanlab(KNeighborsClassifier()),
        "cleanlab, logistic": lambda: by_cleanlab(LogisticRegression(max_iter=300)),
    }
    lines = []
    for name, way in ways.items():
        try:
            listed, seconds, of_cores = way(), [], []
        except ImportError:
            print(f"{name}: cleanlab is not installed")
            continue
        for _ in range(repeats):
            start, before = perf_counter(), process_time()
            way()
            seconds.append(perf_counter() - start)
            of_cores.append(process_time() - before)
        found = int(wrong[np.asarray(listed)[:100]].sum())
        lines.append({"way": name, "seconds": min(seconds), "CPU seconds": min(of_cores), "of 100 wrong": found})
    print(markdown(pd.DataFrame(lines).set_index("way")))


def drawn_outcomes(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and labels that are 1 with a probability that the columns tell: none is wrong."""
    n = {"two columns": 700, "two columns, 300 rows": 300}.get(name, 1000)
    X = rng.normal(size=(n, 2))
    if name == "passengers":  # sex, class, age, fare, and siblings on board
        sex, level = rng.random(n) < 0.35, rng.choice(3, n, p=[0.25, 0.2, 0.55])
        age, fare = rng.gamma(5, 6, n), np.exp(rng.normal(4 - 0.8 * level, 0.5))
        siblings = rng.poisson(0.5, n)
        X = np.column_stack([sex, np.eye(3)[level], age, fare, siblings])
        odds = -0.6 + 2.7 * sex + 1.1 * (1 - level) - 0.035 * (age - 30) - 0.3 * siblings
    elif name == "churn":
        plan = rng.choice(4, n)
        X = np.column_stack([np.eye(4)[plan], rng.normal(size=(n, 4))])
        odds = np.array([-3, -1, 1, 2.0])[plan] + X[:, 4] - X[:, 5]
    else:
        odds = {"sigmoid(x)": X[:, 0], "sigmoid(2 x)": 2 * X[:, 0], "steep": 3 * X[:, 0] + 2 * X[:, 1]}.get(
            name, 1.5 * X[:, 0] + X[:, 1]
        )
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="of the last three: to try new ones")
    parser.add_argument("--only", default="", help="part of the name of a data set")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--no-values", action="store_true", help="no local values of five models, the slowest rivals")
    parser.add_argument("--minutes", type=float, default=600, help="start no run after this time")
    parser.add_argument("--ours", action="store_true", help="no rivals: how well calibrated the probabilities are")
    parser.add_argument("--numbers", action="store_true", help="regression with wrong numbers")
    parser.add_argument("--right-numbers", action="store_true", help="regression without: is anything listed?")
    parser.add_argument("--chance", action="store_true", help="labels that are outcomes of chance: is it said?")
    parser.add_argument("--time", action="store_true", help="seconds, beside valuing first and beside cleanlab")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--tables", type=Path)
    arguments = parser.parse_args()
    if arguments.time:
        warnings.simplefilter("ignore")
        times()
        return
    if arguments.numbers or arguments.right_numbers or arguments.chance:
        warnings.simplefilter("ignore")
        seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
        (wrong_numbers if arguments.numbers else right_numbers if arguments.right_numbers else outcomes_of_chance)(
            seeds
        )
        return
    if arguments.tables is not None:
        found, judged, numbers = (pd.read_parquet(arguments.tables / f"{name}.parquet") for name in TABLES)
        draw(judged, arguments.tables / "reliability.png")
        report(found, judged, numbers)
        return
    end = perf_counter() + 60 * arguments.minutes
    names = [name for name in NAMES if arguments.only in name]
    runs = [(n, k, r, s) for s, n, k, r in product(range(arguments.seeds), names, KINDS, arguments.rates)]
    done = [
        one
        for one in Parallel(arguments.jobs)(
            delayed(run)(*one, end, not arguments.ours, not arguments.no_values) for one in runs
        )
        if one is not None
    ]
    print(f"{len(done)} of {len(runs)} runs")
    found = pd.DataFrame([line for lines, _, _ in done for line in lines])
    judged, numbers = pd.concat([ours for _, ours, _ in done]), pd.DataFrame([number for _, _, number in done])
    if arguments.save is not None:
        for name, table in zip(TABLES, (found, judged, numbers), strict=True):
            table.to_parquet(arguments.save / f"{name}.parquet", index=False, compression="zstd")
    report(found, judged.reset_index(drop=True), numbers)


if __name__ == "__main__":
    main()
