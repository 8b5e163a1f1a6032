"""Compiled naive Bayes against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import localshapley as ls
from localshapley.models.naive_bayes import BayesTrainer
from models.against import assert_same, scores_of_both
from playing import pose


@pytest.mark.parametrize("score", ["accuracy", "confidence", "margin", "log_loss"])
@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_scores_are_those_of_scikit_learn(name, score):
    assert_same(GaussianNB(), ls.datasets.load(name)[:4], score, tolerance=1e-7)


def test_smoothing_of_variances():
    data = ls.datasets.load("iris")[:4]
    assert_same(GaussianNB(var_smoothing=0.1), data, tolerance=1e-9)
    found, usual = (scores_of_both(GaussianNB(var_smoothing=s), data)[0] for s in (0.1, 1e-9))
    assert np.abs(found - usual).max() > 0.1


@pytest.mark.parametrize("score", ["accuracy", "confidence"])
@pytest.mark.filterwarnings("ignore")
def test_rows_without_any_variance(score):
    """Scikit-learn's probabilities are then NaN, and its label the first class that it has."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(2, size=(30, 2)).astype(float), np.arange(30) % 3
    assert_same(GaussianNB(), (X, y, X[:5], y[:5]), score, tolerance=1e-6, sizes=(2, 4), n=100)


def test_other_settings_use_scikit_learn():
    model = GaussianNB(priors=[0.2, 0.3, 0.5])
    trainer = pose(*ls.datasets.load("iris")[:4], model=model, support=ls.supports.Nearest(3)).trainer
    (note,) = trainer.training_notes
    assert note == "GaussianNB uses scikit-learn's fit instead of compiled code: priors=[0.2, 0.3, 0.5]."


def test_arrays_from_another_process_are_made_writable():
    """Kernels would be compiled again for others."""
    trainer = pose(*ls.datasets.load("iris")[:4], model=GaussianNB(), support=ls.supports.Nearest(3)).trainer
    for array in (*trainer._tables, trainer._codes):
        array.flags.writeable = False
    copy = BayesTrainer.__new__(BayesTrainer)
    copy.__setstate__(trainer.__dict__)
    assert all(array.flags.writeable for array in (*copy._tables, copy._codes))
