"""Some random cases, from a fixed seed; `make fuzz` plays others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import Ridge
from sklearn.svm import SVR

import localshapley as ls
from fuzz import run
from fuzz.cases import Case
from made import changed

CASES, PARTS = 300, 10
EXACT_CASE = 17


@pytest.mark.parametrize("part", range(PARTS))
def test_random_cases_are_equal_or_refused_clearly(part):
    each = CASES // PARTS
    played = {number: run.play(number) for number in range(part * each, (part + 1) * each)}
    failed = [
        f"{number}: {outcome} {case}" for number, (case, outcome) in played.items() if outcome.kind in run.FAILURES
    ]
    assert not failed, "\n".join(failed)
    equal = sum(outcome.kind == "equal" for _, outcome in played.values())
    assert equal > 0.7 * each  # or the cases are no good


def off(valued):
    return changed(valued, values=valued.values + 1e-3)


def failing(valued):
    raise ZeroDivisionError


def loud(valued):
    warnings.warn("not for the user", RuntimeWarning, stacklevel=1)
    return valued


@pytest.mark.parametrize(("spoil", "kind"), [(off, "wrong"), (failing, "raw"), (loud, "warning")])
def test_failures_are_seen(monkeypatch, spoil, kind):
    value = ls.value
    monkeypatch.setattr(ls, "value", lambda *args, **options: spoil(value(*args, **options)))
    assert run.play(EXACT_CASE)[1].kind == kind


def compared(rows, **options):
    return run.compare(Case(0, rows, {"method": "exact", "support": ls.supports.Everything()} | options, "repeat")).kind


def test_sparse_rows_stay_sparse_for_models_that_are_not_compiled():
    X = sparse.csr_array(np.column_stack([[-193.0, -88.0, 130.0, -45.0], [-0.9, -1.9, -0.2, -0.02]]))  # hard for Ridge
    y, X_test, y_test = np.array([17.0, 5.0, -12.0, 4.0]), sparse.csr_array([[80.0, 1.0]]), np.array([-10.0])
    assert compared((X, y, X_test, y_test), model=BaggingRegressor(Ridge(), n_estimators=2)) == "equal"


def test_the_variance_of_equal_sparse_entries_is_left_to_rounding():
    X, y = sparse.csr_array([[5.0], [5.0], [5.0], [1.0]]), np.array([1.0, 2.0, 4.0, 3.0])
    rows = X, y, sparse.csr_array([[2.0]]), np.array([1.0])
    assert compared(rows, model=SVR(kernel="poly")) == "tied"
    assert compared(rows, model=SVR(kernel="poly", gamma=0.1)) == "equal"
