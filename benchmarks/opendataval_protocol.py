"""OpenDataVal's own benchmark, run by OpenDataVal, with ours among its evaluators.

    LOCALSHAPLEY_DATA=folder python benchmarks/opendataval_protocol.py [--seeds 3] [--only pol adult] [--slow]

Its protocol (Jiang et al., OpenDataVal, NeurIPS 2023): 1,000 training, 100 validation and 300 test rows, the prediction
model a logistic regression of scikit-learn, and 10 or 20 % of the training and of the validation rows noisy.

- noisy labels: `noisy_detection`, F1 of the rows that two means call bad; beside it precision at the true number, AUROC
- noisy features: the same, where rows get Gaussian noise and keep their label
- removal and addition: `remove_high_low`, mean accuracy while the rows of lowest value go first (high is good), and
  while those of highest value go first (low is good), until half is gone

Evaluators have OpenDataVal's defaults. `--slow` adds Data Shapley, Beta Shapley and leave-one-out, which train ten
thousands of models. An environment with OpenDataVal is made by itself (`peers/environments.py`).
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from environments import python_of

NAMES = ("pol", "2dplanes", "adult", "bank", "digits", "mnist")
RATES = (0.1, 0.2)
COUNTS = (1000, 100, 300)
PUBLISHED = {  # F1 of noisy labels at 20 %, from OpenDataVal's paper
    "adult": {"Data-OOB": 0.631, "KNN-Shapley": 0.561, "Data Shapley": 0.478},
    "pol": {"Data-OOB": 0.845, "KNN-Shapley": 0.447},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--slow", action="store_true", help="with Data Shapley, Beta Shapley and leave-one-out")
    parser.add_argument("--out", type=Path, help="folder for the table of all runs (opendataval.csv)")
    args = parser.parse_args()
    if importlib.util.find_spec("opendataval") is None:
        raise SystemExit(subprocess.run([python_of("opendataval"), *sys.argv], check=False).returncode)
    warnings.simplefilter("ignore")
    rows = []
    for name in args.only:
        for seed in range(args.seeds):
            for task in ("labels", "features"):
                for rate in RATES:
                    rows += results(name, task, rate, seed, args.slow)
        show(pd.DataFrame(rows)[lambda table, name=name: table["data"] == name])
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(args.out / "opendataval.csv", index=False, float_format="%.6g")


def results(name: str, task: str, rate: float, seed: int, slow: bool) -> Iterator[dict[str, Any]]:
    """What each evaluator finds in one noisy data set."""
    from opendataval.experiment.exper_methods import noisy_detection, remove_high_low
    from opendataval.metrics import Metrics
    from opendataval.model import ModelFactory
    from sklearn.metrics import roc_auc_score

    for method, evaluator in evaluators(seed, slow):
        fetcher = noisy(name, task, rate, seed)
        model = ModelFactory("sklogreg", fetcher, max_iter=300)
        started = perf_counter()
        evaluator.train(fetcher, model)
        found = np.asarray(evaluator.data_values, dtype=float).ravel()
        seconds = perf_counter() - started
        wrong = np.isin(np.arange(len(found)), fetcher.noisy_train_indices)
        row = {
            "data": name, "task": task, "rate": rate, "seed": seed, "method": method,
            "F1": noisy_detection(evaluator, fetcher)["kmeans_f1"],
            "precision": wrong[np.argsort(found, kind="stable")[: wrong.sum()]].mean(),
            "AUROC": roc_auc_score(wrong, -found),
            "seconds": seconds,
        }  # fmt: skip
        if task == "labels":
            curves = remove_high_low(evaluator, fetcher, model, percentile=0.05, metric=Metrics.ACCURACY)
            for key, column in (("least", "worst first"), ("most", "best first")):
                found_by = next(curve for what, curve in curves.items() if what.startswith(f"remove_{key}"))
                row[column] = np.mean(found_by[:10])
        yield row


def noisy(name: str, task: str, rate: float, seed: int) -> Any:
    """A data set of OpenDataVal, of our rows and with its noise."""
    from opendataval.dataloader import DataFetcher, NoiseFunc

    from label_errors import load

    X, y = load(name)
    columns = np.eye(y.max() + 1)[y]
    fetcher = DataFetcher.from_data(X, columns, True, random_state=np.random.RandomState(seed))
    noise = NoiseFunc.MIX_LABELS if task == "labels" else NoiseFunc.ADD_GAUSS_NOISE
    return fetcher.split_dataset_by_count(*COUNTS).noisify(noise, noise_rate=rate)


def evaluators(seed: int, slow: bool) -> Iterator[tuple[str, Any]]:
    """Ours and theirs, the latter with their defaults."""
    from opendataval import dataval
    from sklearn.ensemble import RandomForestClassifier

    import localshapley as ls
    from localshapley.opendataval import LocalShapleyEvaluator

    fixed = ls.models.Fixed(RandomForestClassifier(300, min_samples_leaf=3, random_state=seed))
    near = ls.supports.Nearest(20)
    yield "suspects", LocalShapleyEvaluator(by="suspects", random_state=seed)
    yield "forest, out of bag", LocalShapleyEvaluator(model=fixed, cv="oob", random_state=seed)
    yield "local, logistic", LocalShapleyEvaluator(support=near, score="confidence", tol=0.2, random_state=seed)
    yield "local, SVM", LocalShapleyEvaluator(model="svm", support=near, score="accuracy", tol=0.2, random_state=seed)
    yield "Data-OOB", dataval.DataOob(num_models=1000, random_state=seed)
    yield "KNN-Shapley", dataval.KNNShapley(k_neighbors=100, random_state=seed)
    yield "Banzhaf", dataval.DataBanzhaf(num_models=1000, random_state=seed)
    yield "LAVA", dataval.LavaEvaluator(random_state=seed)
    yield "random", dataval.RandomEvaluator(random_state=seed)
    if slow:
        yield "Data Shapley", dataval.DataShapley(gr_threshold=1.05, mc_epochs=300, models_per_iteration=50,
                                                  cache_name=f"cached_{seed}", random_state=seed)  # fmt: skip
        yield "Beta Shapley", dataval.BetaShapley(gr_threshold=1.05, mc_epochs=300, models_per_iteration=50,
                                                  cache_name=f"cached_{seed}", random_state=seed)  # fmt: skip
        yield "LOO", dataval.LeaveOneOut(random_state=seed)


def show(table: pd.DataFrame) -> None:
    """Means over seeds of one data set, with what is published."""
    columns = ["F1", "precision", "AUROC", "worst first", "best first", "seconds"]
    for (name, task, rate), part in table.groupby(["data", "task", "rate"], sort=False):
        means = part.groupby("method", sort=False)[columns].mean().dropna(axis=1, how="all")
        if task == "labels" and rate == 0.2 and name in PUBLISHED:
            means["published F1"] = means.index.map(PUBLISHED[name])
        print(f"\n{name}, noisy {task}, {rate:.0%}")
        print(means.round(3).fillna("").to_string(), flush=True)


if __name__ == "__main__":
    main()
