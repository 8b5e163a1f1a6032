"""KNN-Shapley with shapiq, test row by test row. `rivals.py` runs it with DATA.npz: X, y, X_test, y_test and K."""

import argparse
import time

import numpy as np
from reporting import report
from shapiq import InteractionValues
from shapiq.explainer import KNNExplainer
from sklearn.neighbors import KNeighborsClassifier


def first_order(found: InteractionValues, n: int) -> np.ndarray:
    """The values of all rows."""
    values = np.zeros(n)
    for players, at in found.interaction_lookup.items():
        if len(players) == 1:
            values[players[0]] = found.values[at]
    return values


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    data = np.load(parser.parse_args().data)
    X, y, X_test, y_test = (data[name] for name in ("X", "y", "X_test", "y_test"))
    model = KNeighborsClassifier(int(data["K"])).fit(X, y)
    started = time.perf_counter()
    explainers = {label: KNNExplainer(model, class_index=at) for at, label in enumerate(model.classes_.tolist())}
    found = [explainers[label].explain(x) for x, label in zip(X_test, y_test.tolist(), strict=True)]
    values = np.mean([first_order(one, len(y)) for one in found], axis=0)
    report(("shapiq", "numpy", "scikit-learn"), time.perf_counter() - started, values)
