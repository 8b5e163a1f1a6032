"""Data-OOB of a thousand trees with OpenDataVal. `rivals.py` runs it with DATA.npz: X and y."""

import argparse
import contextlib
import sys
import time

import numpy as np
import torch
from reporting import report
from sklearn.tree import DecisionTreeClassifier

with contextlib.redirect_stdout(sys.stderr):  # a package that it imports prints on standard output
    from opendataval.dataval import DataOob
    from opendataval.model.api import ClassifierSkLearnWrapper

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    data = np.load(parser.parse_args().data)
    X, n_classes = torch.tensor(data["X"]).float(), int(data["y"].max()) + 1
    labels = torch.nn.functional.one_hot(torch.tensor(data["y"]).long(), n_classes).float()
    evaluator = DataOob(num_models=1000, random_state=0)
    evaluator.input_model(ClassifierSkLearnWrapper(DecisionTreeClassifier, n_classes))
    evaluator.input_data(X, labels, X[:1], labels[:1])
    evaluator.input_metric(lambda one, two: float((one.argmax(1) == two.argmax(1)).float().mean()))
    started = time.perf_counter()
    values = evaluator.train_data_values().evaluate_data_values()
    report(("opendataval", "torch", "scikit-learn"), time.perf_counter() - started, values, 1000)
