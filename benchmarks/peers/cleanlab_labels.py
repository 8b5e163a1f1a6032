"""Label quality by cleanlab, from held-out probabilities of a model. `rivals.py` runs it with DATA.npz: X and y."""

import argparse
import time

import numpy as np
from cleanlab.rank import get_label_quality_scores
from reporting import report
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    data = np.load(parser.parse_args().data)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    started = time.perf_counter()
    held_out = cross_val_predict(model, data["X"], data["y"], cv=5, method="predict_proba")
    quality = get_label_quality_scores(data["y"], held_out)
    report(("cleanlab", "numpy", "scikit-learn"), time.perf_counter() - started, quality, 5)
