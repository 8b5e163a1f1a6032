"""KNN-Shapley with dattri. `rivals.py` runs it with DATA.npz: X, y, X_test, y_test and K."""

import argparse
import time

import numpy as np
import torch
from dattri.algorithm.data_shapley import KNNShapleyAttributor
from reporting import report
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    data = np.load(parser.parse_args().data)
    train, test = (
        DataLoader(TensorDataset(torch.tensor(data[f"X{part}"]).float(), torch.tensor(data[f"y{part}"])), 4096)
        for part in ("", "_test")
    )
    started = time.perf_counter()
    found = KNNShapleyAttributor(int(data["K"])).attribute(train, test)
    seconds = time.perf_counter() - started
    report(("dattri", "torch", "numpy"), seconds, found.mean(dim=0).tolist())
