"""OpenDataVal's own benchmark, run by OpenDataVal, with ours among its evaluators.

    LOCALSHAPLEY_DATA=folder make results-opendataval RESULTS="--jobs 14"               # goes on where it was stopped
    LOCALSHAPLEY_DATA=folder python experiments/opendataval_protocol.py --only pol adult --seeds 1
    python experiments/opendataval_protocol.py --keep folder --page                     # the page of what is kept there
    python experiments/opendataval_protocol.py --quick                                  # under two minutes

Its protocol (Jiang et al., OpenDataVal, NeurIPS 2023): 1,000 training, 100 validation and 300 test rows, the prediction
model a logistic regression of scikit-learn, and 10 or 20 % of the training and of the validation rows noisy.

- noisy labels: `noisy_detection`, F1 of the rows that two means call bad; beside it precision at the true number, AUROC
- noisy features: the same, where rows get Gaussian noise and keep their label
- removal and addition: `remove_high_low`, accuracy on the test rows while the rows of lowest or of highest value go
  first; its first half is removal, its second half, read backwards, addition

An environment with OpenDataVal is made by itself where it cannot be imported (`benchmarks/peers/environments.py`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config

import localshapley as ls
from common import arguments, made_with, panels, write
from keep import SOURCES, fingerprint, save

sys.path += [str(Path(__file__).parents[1] / "benchmarks" / part) for part in ("", "peers")]
from environments import python_of

from label_errors import load

NAMES = ("pol", "2dplanes", "adult", "bank", "digits", "mnist")
RATES = (0.1, 0.2)
SEEDS, SLOW_SEEDS = 5, 2
COUNTS, QUICK_COUNTS = (1000, 100, 300), (100, 40, 40)
OURS = ("suspects", "forest out of bag", "local logistic", "local SVM")
GROUPS = {
    "shapley": ("Data Shapley", "Beta Shapley"),  # they share their trainings
    "loo": ("LOO",),
    "oob": ("Data-OOB",),
    "banzhaf": ("Banzhaf",),
    "logistic": ("local logistic",),
    "svm": ("local SVM",),
    "fast": ("suspects", "forest out of bag", "KNN-Shapley", "LAVA", "random"),
}
"""Methods that one process runs one after the other, slow ones first."""
EPOCHS = 2
"""Of Data Shapley and Beta Shapley, of 100 permutations each; by default OpenDataVal takes 10 to 100 of them."""
PUBLISHED = {  # F1 of noisy labels at 20 %, from OpenDataVal's paper
    "adult": {"Data-OOB": 0.631, "KNN-Shapley": 0.561, "Data Shapley": 0.478},
    "pol": {"Data-OOB": 0.845, "KNN-Shapley": 0.447},
}
CURVES = {
    "worst removed": ("least", slice(1, 11)),
    "best removed": ("most", slice(1, 11)),
    "best added": ("least", slice(10, None)),
    "worst added": ("most", slice(10, None)),
}
"""Parts of the curves of `remove_high_low`: what is removed first, and where."""


class Unit(NamedTuple):
    """What one process does in one go."""

    group: str
    data: str
    task: str
    rate: float
    seed: int

    @property
    def file(self) -> str:
        return f"{self.data}-{self.task}-{self.rate:g}-{self.seed}-{self.group}.json"


def main(argv: list[str] | None = None) -> None:
    """Run what is not kept yet, and write `opendataval_protocol.csv`, `.md`, `.svg` and `.png`."""
    args = arguments(__doc__, argv, more=options)
    if not args.page:
        if importlib.util.find_spec("opendataval") is None:
            raise SystemExit(elsewhere(argv if argv is not None else sys.argv[1:]))
        run(args)
    if not args.no_page:
        page(args)


def options(parser: Any) -> None:
    """What this experiment takes beside the usual."""
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help="some of the data sets")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--keep", type=Path, help="folder for the rows of each part that is done")
    parser.add_argument("--page", action="store_true", help="write the page of what is kept; run nothing")
    parser.add_argument("--no-page", action="store_true", help="run only: the page is written elsewhere")


def elsewhere(argv: list[str]) -> int:
    """The exit status of this script in an environment that has OpenDataVal."""
    return subprocess.run([python_of("opendataval"), __file__, *argv], check=False).returncode


def kept(args: Any) -> Path:
    """The folder of what is done, by the contents of sources and data if none is named."""
    adapter = (SOURCES / "opendataval.py").read_text(encoding="utf-8")
    key = fingerprint("opendataval_protocol", ["--quick"] * args.quick + [adapter])[:12]
    folder = args.keep or Path("~/.cache/localshapley").expanduser() / f"opendataval-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def units(args: Any) -> list[Unit]:
    """All parts, the slowest first, the others seed by seed."""
    if args.quick:
        return [Unit(g, "breast_cancer", t, 0.2, 0) for g in ("svm", "fast") for t in ("labels", "features")]
    return [
        Unit(group, name, task, rate, seed)
        for groups in (("shapley",), [group for group in GROUPS if group != "shapley"])
        for seed in range(args.seeds)
        for group in groups
        for name in reversed(args.only or NAMES)
        for task in ("labels", "features")
        for rate in RATES
        if is_run(group, task, rate, seed)
    ]


def is_run(group: str, task: str, rate: float, seed: int) -> bool:
    """Whether the methods of a group, some of which take long, are run for a line of the tables."""
    if group == "shapley":
        return task == "labels" and rate == max(RATES) and seed < SLOW_SEEDS
    return group != "loo" or task == "labels"


def run(args: Any) -> None:
    """Run the parts that are not kept."""
    folder, counts = kept(args), QUICK_COUNTS if args.quick else COUNTS
    todo = [unit for unit in units(args) if not (folder / unit.file).is_file()]
    (folder / "made.txt").write_text(made_with(args.commit), encoding="utf-8")
    if not todo:
        return
    print(f"{len(todo)} parts to run, into {folder}", file=sys.stderr, flush=True)
    tasks = [delayed(part)(unit, counts, folder) for unit in todo]
    with parallel_config("loky", inner_max_num_threads=1):
        done = Parallel(args.jobs, batch_size=1, pre_dispatch="all", return_as="generator_unordered")(
            [delayed(compiled)(), *tasks] if args.jobs > 1 else tasks
        )
        for name, seconds in done:
            print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)


def compiled() -> tuple[str, float]:
    """Compile our kernels in one process while the others do the slow parts, which need none."""
    started = process_time()
    for name in ("breast_cancer", "digits"):
        for group in ("logistic", "svm", "fast"):
            quiet(Unit(group, name, "labels", 0.2, 0), QUICK_COUNTS)
    return "compiled", process_time() - started


def part(unit: Unit, counts: tuple[int, int, int], folder: Path) -> tuple[str, float]:
    """Run one part and keep its rows; with the processor's seconds that it took."""
    started = process_time()
    try:
        rows = quiet(unit, counts)
    except Exception as error:  # the others go on; it is tried again by the next run
        return f"{unit.file} failed: {error!r}", process_time() - started
    save(folder / unit.file, rows, indent=1)
    return unit.file, process_time() - started


def quiet(unit: Unit, counts: tuple[int, int, int]) -> list[dict[str, Any]]:
    """`results` without the bars and warnings of OpenDataVal."""
    with warnings.catch_warnings(), Path(os.devnull).open("w") as nowhere:
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            return results(unit, counts)


def results(unit: Unit, counts: tuple[int, int, int]) -> list[dict[str, Any]]:
    """What each evaluator of a group finds in one noisy data set."""
    from opendataval.experiment.exper_methods import noisy_detection
    from opendataval.model import ModelFactory
    from sklearn.metrics import roc_auc_score

    fetcher, rows = noisy(unit, counts), []
    for method in GROUPS[unit.group]:
        model, evaluator = ModelFactory("sklogreg", fetcher, max_iter=300), EVALUATORS[method](unit)
        started = process_time()
        evaluator.train(fetcher, model)
        found = np.asarray(evaluator.data_values, dtype=float).ravel()
        seconds = process_time() - started
        wrong = np.isin(np.arange(len(found)), fetcher.noisy_train_indices)
        row = {
            "data": unit.data, "task": unit.task, "rate": unit.rate, "seed": unit.seed, "method": method,
            "F1": float(noisy_detection(evaluator, fetcher)["kmeans_f1"]),
            "precision": float(wrong[np.argsort(found, kind="stable")[: wrong.sum()]].mean()),
            "AUROC": float(roc_auc_score(wrong, -found)),
            "seconds": seconds,
        }  # fmt: skip
        rows.append(row | (curves(evaluator, fetcher, model) if unit.task == "labels" else {}))
    return rows


def curves(evaluator: Any, fetcher: Any, model: Any) -> dict[str, float]:
    """Mean accuracy over 5 to 50 % of the rows, removed or added."""
    from opendataval.experiment.exper_methods import remove_high_low
    from opendataval.metrics import Metrics

    found = remove_high_low(evaluator, fetcher, model, percentile=0.05, metric=Metrics.ACCURACY)
    by_first = {key.split("_")[1]: curve for key, curve in found.items() if key.startswith("remove_")}
    return {name: float(np.mean(by_first[first][where])) for name, (first, where) in CURVES.items()}


def noisy(unit: Unit, counts: tuple[int, int, int]) -> Any:
    """A data set of OpenDataVal, of our rows and with its noise."""
    from opendataval.dataloader import DataFetcher, NoiseFunc

    X, y = rows_of(unit.data)
    columns = np.eye(y.max() + 1)[y]
    fetcher = DataFetcher.from_data(X, columns, True, random_state=np.random.RandomState(unit.seed))
    noise = NoiseFunc.MIX_LABELS if unit.task == "labels" else NoiseFunc.ADD_GAUSS_NOISE
    return fetcher.split_dataset_by_count(*counts).noisify(noise, noise_rate=unit.rate)


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels; of MNIST 10,000 images, as their 32 principal components."""
    if name == "mnist":
        from sklearn.decomposition import PCA

        images = ls.datasets.load("mnist", n_train=10_000, n_test=1)
        return PCA(32, random_state=0).fit_transform(images.X), np.asarray(images.y)
    return load(name)


def ours(unit: Unit, **settings: Any) -> Any:
    from localshapley.opendataval import LocalShapleyEvaluator

    return LocalShapleyEvaluator(**settings, random_state=unit.seed)


def local(unit: Unit, **settings: Any) -> Any:
    return ours(unit, support=ls.supports.Nearest(20), tol=0.2, n_jobs=1, **settings)


def forest(unit: Unit) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    trees = RandomForestClassifier(300, min_samples_leaf=3, random_state=unit.seed)
    return ours(unit, model=ls.models.Fixed(trees), cv="oob", n_jobs=1)


def theirs(unit: Unit, name: str, **settings: Any) -> Any:
    from opendataval import dataval

    return getattr(dataval, name)(**settings, random_state=unit.seed)


def shapley(unit: Unit, name: str) -> Any:
    return theirs(unit, name, max_mc_epochs=EPOCHS, cache_name=unit.file)


EVALUATORS: dict[str, Callable[[Unit], Any]] = {
    "suspects": lambda unit: ours(unit, by="label_errors"),
    "forest out of bag": forest,
    "local logistic": lambda unit: local(unit, score="confidence"),
    "local SVM": lambda unit: local(unit, score="accuracy", model="svm"),
    "Data-OOB": lambda unit: theirs(unit, "DataOob"),
    "KNN-Shapley": lambda unit: theirs(unit, "KNNShapley", k_neighbors=100),
    "Data Shapley": lambda unit: shapley(unit, "DataShapley"),
    "Beta Shapley": lambda unit: shapley(unit, "BetaShapley"),
    "Banzhaf": lambda unit: theirs(unit, "DataBanzhaf"),
    "LAVA": lambda unit: theirs(unit, "LavaEvaluator"),
    "LOO": lambda unit: theirs(unit, "LeaveOneOut"),
    "random": lambda unit: theirs(unit, "RandomEvaluator"),
}


def page(args: Any) -> None:
    """Write the page of all parts that are kept."""
    folder = kept(args)
    rows = pd.DataFrame([row for path in sorted(folder.glob("*.json")) for row in json.loads(path.read_text())])
    if rows.empty:
        raise SystemExit(f"{folder} has no part that is done")
    rows["method"] = pd.Categorical(rows["method"], [method for method in EVALUATORS if method in set(rows["method"])])
    found = {task: means(rows[rows["task"] == task]) for task in ("labels", "features")}
    tables = {
        "labels": published(found["labels"][[*LINE, "method", *DETECTION, "seeds", "seconds"]]),
        "features": found["features"][[*LINE, "method", *DETECTION, "seeds", "seconds"]],
        "curves": found["labels"][[*LINE, "method", *CURVES]],
    }
    shown = {
        "labels": over_data(found["labels"], ["F1", "precision", "AUROC", "seconds"]),
        "features": over_data(found["features"], ["F1", "precision", "AUROC", "seconds"]),
        "curves": over_data(found["labels"], list(CURVES)),
    }
    points = [
        *seen(found["labels"], "Noisy labels"),
        *seen(found["features"], "Noisy features"),
        *beside(tables["labels"]),
    ]
    made = (folder / "made.txt").read_text(encoding="utf-8") if (folder / "made.txt").is_file() else ""
    title = "OpenDataVal's protocol, ours among its evaluators"
    write(args, "opendataval_protocol", title, about(rows, args.quick), tables, points,
          lambda figure: draw(figure, found["labels"]), made=made, shown=shown)  # fmt: skip


def about(rows: pd.DataFrame, quick: bool) -> str:
    """What the tables hold."""
    counts = QUICK_COUNTS if quick else COUNTS
    return (
        "The benchmark of OpenDataVal (Jiang, Liang, Zou and Kwon, NeurIPS 2023), release 1.3.0, run by its own "
        f"functions: {counts[0]:,} training, {counts[1]} validation and {counts[2]} test rows, a logistic "
        "regression, and noise in 10 or 20 % of the training and of the validation rows. The tables have means over "
        f"{len(set(rows['data']))} data sets; all but *F1 at 10 %* are of 20 % noise. *labels*: F1 of the rows that "
        "two means of the values call bad, precision at the true number of bad rows, AUROC. *features*: the same where "
        "rows get Gaussian noise and keep their label. *curves*: mean accuracy while 5 to 50 % of the rows are removed "
        "or added, best or worst first (high is good for worst removed and best added). The first four methods are "
        "this library's: `audit.label_errors`, exact values of a forest of fixed structure out of bag, and local "
        "values of logistic regression and of an SVM with the 20 nearest rows; the first two judge by models of their "
        "own and do not use the validation rows. OpenDataVal's have its defaults, except that KNN-Shapley has K = 100 "
        "and that "
        f"Data Shapley and Beta Shapley take {100 * EPOCHS} permutations in all, with {SLOW_SEEDS} seeds (the seconds "
        "of both stand beside Data Shapley). Rows of MNIST are 32 principal components; pol and 2dplanes are split at "
        "the median of their target, so that published figures are for orientation only. Seconds are of one thread."
    )


LINE = ["data", "noise"]
DETECTION = ["F1", "±", "precision", "AUROC"]


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds for each data set, rate and method."""
    known = dict.fromkeys(rows["data"])
    order = [name for name in NAMES if name in known] or list(known)
    rows = rows.assign(
        noise=rows["rate"].map("{:.0%}".format).str.replace("%", " %"), data=pd.Categorical(rows["data"], order)
    )
    by = rows.groupby([*LINE, "method"], observed=True)
    columns = [name for name in ("F1", "precision", "AUROC", "seconds", *CURVES) if name in rows]
    table = by[columns].mean().assign(**{"±": by["F1"].sem(), "seeds": by.size()}).reset_index()
    return table.astype({"data": str, "method": str})


def over_data(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Means over the data sets for each method, at the highest rate of noise; of F1 at the lowest, too."""
    means = table.groupby(["noise", "method"], sort=False)[columns].mean()
    lowest, highest = table["noise"].min(), table["noise"].max()
    shown = means.loc[highest]
    if "F1" in columns and lowest != highest:
        shown.insert(0, f"F1 at {lowest}", means.loc[lowest]["F1"])
    return shown.reset_index()


def published(table: pd.DataFrame) -> pd.DataFrame:
    """With what OpenDataVal's paper has, at 20 %."""
    figures = [
        PUBLISHED.get(row["data"], {}).get(row["method"]) if row["noise"] == "20 %" else None
        for row in table.to_dict("records")
    ]
    return table.assign(**{"published F1": pd.Series(figures, index=table.index, dtype=float)})


def wide(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """One line for each data set and rate, one column for each method."""
    return table.pivot(index=LINE, columns="method", values=column)[list(dict.fromkeys(table["method"]))]


def seen(table: pd.DataFrame, what: str) -> list[str]:
    """Who finds the noisy rows best, and where `suspects` is behind."""
    lines = wide(table, "F1")
    best = ", ".join(f"{who} on {n}" for who, n in lines.idxmax(axis=1).value_counts().items())
    points = [f"{what}: best F1 of {len(lines)} lines (data set and rate): {best}."]
    lines, error = wide(table, "F1"), wide(table, "±")
    rivals = lines.drop(columns=[name for name in OURS if name in lines])
    behind = [
        f"{' '.join(line)} {lines.loc[line, 'suspects']:.3f} against {rivals.loc[line].max():.3f} of {who}"
        + (" (within two standard errors)" if within_two(lines, error, line, who) else "")
        for line, who in rivals.idxmax(axis=1).items()
        if lines.loc[line, "suspects"] < rivals.loc[line].max()
    ]
    words = "; ".join(behind) if behind else "none"
    return [*points, f"{what}: lines on which `suspects` has a lower F1 than the best of OpenDataVal's: {words}."]


def within_two(lines: pd.DataFrame, error: pd.DataFrame, line: Any, who: str) -> bool:
    """Whether two methods differ by less than two standard errors; not if these are unknown."""
    gap = abs(lines.loc[line, who] - lines.loc[line, "suspects"])
    return bool(gap < 2 * np.hypot(error.loc[line, who], error.loc[line, "suspects"]))


def beside(table: pd.DataFrame) -> list[str]:
    """Published figures and those of this run."""
    known = table.dropna(subset="published F1").to_dict("records")
    pairs = [f"{row['data']}, {row['method']}: {row['published F1']:.3f}, here {row['F1']:.3f}" for row in known]
    return [f"Published F1 at 20 % and what the same evaluator has here: {'; '.join(pairs)}."] if pairs else []


def draw(figure: Any, table: pd.DataFrame) -> None:
    """F1 of noisy labels at the highest rate, for each data set."""
    part = table[table["noise"] == table["noise"].max()]
    names = list(dict.fromkeys(part["data"]))
    figure.set_size_inches(9, 2.8 * -(-len(names) // 2) + 0.4)
    for ax, name in zip(panels(figure, len(names)), names, strict=True):
        own = part[part["data"] == name].iloc[::-1]
        colours = ["C0" if method in OURS else "C7" for method in own["method"]]
        ax.barh(own["method"], own["F1"], xerr=own["±"].fillna(0), color=colours)
        ax.set(title=f"{name}, {own['noise'].iloc[0]} noisy labels", xlabel="F1", xlim=(0, 1))
        ax.tick_params(axis="y", labelsize=7)


if __name__ == "__main__":
    main(sys.argv[1:])
