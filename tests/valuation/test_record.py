"""How a valuation was made: the same call can be made again from what it keeps."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.svm import SVC

import localshapley as ls
from localshapley.report import summarise
from localshapley.valuation import Provenance

X, y, X_test, y_test, _ = ls.datasets.load("iris")


def total(coalition, tests):
    return [float(len(coalition))] * len(tests)


CALLS = {
    "value(X, y, X_test, y_test, model='knn', method='auto', tol=0.1, seed=0)": lambda: ls.value(
        X, y, X_test, y_test, model="knn"
    ),
    "value(X, y, model=SVC(C=2.0), cv=KFold(n_splits=3, random_state=None, shuffle=False), "
    "support=Nearest(n=4), method='exact', seed=7, owners=owners)": lambda: ls.value(
        X, y, model=SVC(C=2.0), cv=KFold(3), support=ls.supports.Nearest(4), method="exact", seed=7,
        owners=np.arange(len(y)) % 3, n_jobs=None, progress=False,
    ),
    "shapley(supports, total, 4, method='sample', budget=9, stop=RankStable(top=1, agreement=0.9), seed=3)": (
        lambda: ls.shapley(
            [[0, 1, 2, 3]], total, 4, method="sample", budget=9, stop=ls.stopping.RankStable(top=1), seed=np.int64(3)
        )
    ),
    "shapley(supports, total, method='exact', seed=0, name='votes')": lambda: ls.shapley([[0, 1]], total, name="votes"),
    "knn_shapley(X, y, X_test, y_test, n_neighbors=3)": lambda: ls.comparators.knn_shapley(
        X, y, X_test, y_test, n_neighbors=3
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_the_call_is_written_as_it_was_made(call):
    before = datetime.now(UTC).replace(microsecond=0)
    record = CALLS[call]().record
    assert record.call == call
    assert record.version == ls.__version__
    assert before <= datetime.fromisoformat(record.date) <= datetime.now(UTC)
    assert record.date.endswith("+00:00")


def test_limits_and_seed_are_told_on_their_own():
    kept = {name: make().record for name, make in CALLS.items()}
    assert [record.seed for record in kept.values()] == [0, 7, 3, 0, None]
    assert [record.limits for record in kept.values()] == [
        {"tol": "0.1"},
        {},
        {"budget": "9", "stop": "RankStable(top=1, agreement=0.9)"},
        {},
        {},
    ]


def test_what_is_updated_and_averaged_has_its_own_call():
    data, settings = (X, y, X_test, y_test), {"model": "knn", "support": ls.supports.Nearest(3), "method": "exact"}
    v = ls.value(*data, per_test=True, **settings)
    assert ls.update(v, *data, **settings).record.call.startswith("update(valuation, X, y, X_test, y_test, model='knn'")
    forest = ls.value(X[::5], y[::5], X_test[:3], y_test[:3], model="fixed-forest", seeds=2)
    assert forest.record.call.endswith("seed=0, seeds=2)")


def test_it_is_in_the_file_and_in_the_report_and_saving_again_gives_the_same_bytes(tmp_path):
    v = ls.value(X, y, X_test, y_test, model="knn", seed=5)
    for name in ("one.parquet", "two.parquet"):
        v.save(tmp_path / name)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    again = ls.load(tmp_path / "one.parquet")
    assert again.record == v.record
    facts = summarise(again)["sections"]["how"]["facts"]
    made = {"Limits": "tol=0.1", "Seed": "5", "Made by": f"localshapley {ls.__version__}"}
    assert facts.items() >= (made | {"Made on": v.record.date, "Call": v.record.call}).items()


def test_the_day_changes_no_value(monkeypatch):
    one, two = (ls.value(X, y, X_test, y_test, model="tree", method="sample", budget=200, seed=1) for _ in range(2))
    assert one.values.tobytes() == two.values.tobytes()
    assert replace(one.record, date="") == replace(two.record, date="")


@pytest.mark.parametrize(
    "change", [{"call": 3}, {"seed": -1}, {"seed": "x"}, {"limits": ["tol"]}, {"limits": {"tol": 1}}, {"date": None}]
)
def test_files_with_another_one_are_refused(change, tmp_path):
    v = ls.shapley([[0, 1]], total)
    replace(v, record=Provenance(**(asdict(v.record) | change))).save(tmp_path / "v.parquet")
    with pytest.raises(ls.LocalShapleyError, match="is not a valuation that this version can read"):
        ls.load(tmp_path / "v.parquet")


def test_valuations_of_ones_own_and_of_earlier_versions_have_none(tmp_path):
    v = replace(ls.shapley([[0, 1]], total), record=None)
    v.save(tmp_path / "v.parquet")
    assert ls.load(tmp_path / "v.parquet").record is None
    assert "Call" not in summarise(v)["sections"]["how"]["facts"]
    json.dumps(summarise(v))
