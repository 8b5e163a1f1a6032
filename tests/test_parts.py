"""Values of rows that lie in parts: the same bits as in memory, from the rows of the supports alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.data import chunked_rows
from localshapley.errors import InvalidArgumentError
from localshapley.valuation import row_coverage as how_many

N, COLUMNS = 1200, list("abcd")
S = ls.supports
SCALER = StandardScaler().fit(pd.DataFrame(np.eye(4) + 3, columns=COLUMNS))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(N + 12, 4)).round(1), columns=COLUMNS)  # with rows that are as near as others
    labels = np.where(X["a"] + rng.normal(size=N + 12) > 0, "yes", "no")
    labels[700:703] = "odd"  # in no support of most
    return X, labels, 3 * X["b"].to_numpy() + rng.normal(size=N + 12)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(chunked_rows, "PART_BYTES", 8 * 4 * 250)


def values_in_memory(rows, amounts=False, **settings):
    X, y = rows[0], rows[2 if amounts else 1]
    return ls.value(X[:N], y[:N], X[N:], y[N:], **{"progress": False, **settings})


def values_in_parts(rows, folder, amounts=False, **settings):
    X, y = rows[0], rows[2 if amounts else 1]
    for start in range(0, N, 500):
        X[:N].assign(target=y[:N]).iloc[start : start + 500].to_parquet(folder / f"{start:04}.parquet")
    return ls.value(folder, "target", X[N:], y[N:], progress=False, **settings)


def first_two(X):
    return np.asarray(X)[:, :2]


CASES = {
    "nearest": {"model": KNeighborsClassifier(3)},
    "other metric": {"model": KNeighborsClassifier(2, p=1), "per_test": True},
    "amounts": {"model": KNeighborsRegressor(3), "amounts": True},
    "kernel, capped": {"model": SVC(), "support": S.Kernel(0.6, max_size=6)},
    "standardised, sampled": {"model": LogisticRegression(), "budget": 1000},
    "radius, centred": {"model": Ridge(), "support": S.Radius(0.8), "budget": 800, "amounts": True},
    "embedding": {"model": DecisionTreeClassifier(), "support": S.Embedding(first_two, 6)},
    "given": {"model": "knn", "support": S.Given([[t, 50 + 5 * t, N - 1 - t] for t in range(12)])},
    "random, in rounds": {
        "model": KNeighborsClassifier(2),
        "support": S.Random(8),
        "method": "local-mc",
        "budget": 900,
    },
    "frozen steps": {"model": make_pipeline(FrozenEstimator(SCALER), KNeighborsClassifier(3))},
}


@pytest.mark.parametrize("case", CASES)
def test_same_bits_as_in_memory(rows, tmp_path, case):
    one, other = values_in_memory(rows, **CASES[case]), values_in_parts(rows, tmp_path, **CASES[case])
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.stderr, other.stderr)
    assert np.array_equal(one.n_tests, other.n_tests)
    assert np.array_equal(one.stderr_tests, other.stderr_tests)
    assert one.cost.trainings == other.cost.trainings
    assert one.skill.model == pytest.approx(other.skill.model)
    assert one.skill.constant == other.skill.constant
    assert one.levels == other.levels
    if one.per_test is not None:
        assert (one.per_test != other.per_test).nnz == 0


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_dask_without_a_cluster(rows, kind):
    X, y, _ = rows
    dask = pytest.importorskip("dask", reason="Dask is an extra")
    pytest.importorskip("dask.array")
    pytest.importorskip("dask.dataframe")
    table = dask.dataframe.from_pandas(X[:N].assign(target=y[:N]), npartitions=5)
    given = (table, "target") if kind == "frame" else (dask.array.from_array(X[:N].to_numpy(), chunks=(300, 3)), y[:N])
    other = ls.value(*given, X[N:], y[N:], model=KNeighborsClassifier(3), progress=False)
    assert np.array_equal(values_in_memory(rows, model=KNeighborsClassifier(3)).values, other.values)


@pytest.mark.slow
def test_on_a_cluster_parts_are_searched_where_they_lie(rows, monkeypatch):
    monkeypatch.setattr(
        "localshapley.problem.chunked_tables.MAX_REFERENCE", 50
    )  # rows that are gathered to judge the model
    distributed = pytest.importorskip("dask.distributed", reason="Dask is an extra")
    import dask.dataframe as dd

    X, y, _ = rows
    more = np.random.default_rng(0).normal(size=(len(X), 60))  # labels and what is found are small beside wide rows
    X = pd.concat([X, pd.DataFrame(more, columns=[f"more {i}" for i in range(60)])], axis=1)
    settings = {"model": SVC(), "support": S.Nearest(6), "progress": False}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(_with_small_parts)
        table = dd.from_pandas(X[:N].assign(target=y[:N]), npartitions=5).persist()
        other = ls.value(table, "target", X[N:], y[N:], **settings)
        before = client.run(_bytes_sent)
        ls.value(table, "target", X[N:], y[N:], **settings)
        sent = sum(client.run(_bytes_sent).values()) - sum(before.values())
    assert np.array_equal(values_in_memory((X, y), **settings).values, other.values)
    assert sent < 0.5 * X.to_numpy().nbytes  # only what was found came here


def _with_small_parts():
    chunked_rows.PART_BYTES = 8 * 4 * 250


def _bytes_sent(dask_worker):
    """Bytes that went to the client; what workers send each other is up to Dask."""
    return sum(one["total"] for one in dask_worker.transfer_outgoing_log if one["who"] is None)


def test_only_rows_of_supports_are_kept_of_many(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(how_many, "MANY_ROWS", 100)
    monkeypatch.setattr(how_many, "FEW", 0.5)
    whole = values_in_memory(rows, model=LogisticRegression(), budget=1500)
    few = values_in_parts(rows, tmp_path, model=LogisticRegression(), budget=1500)
    assert few.among == N
    assert len(few.values) < 0.3 * N
    assert np.array_equal(few.values, whole.values[few.ids])
    assert np.delete(whole.values, few.ids).any() == 0
    assert f"of {N:,} (no other is in a support: worth 0)" in repr(few)
    few.save(tmp_path / "few.parquet")
    again = ls.load(tmp_path / "few.parquet")
    assert again.among == N
    everyone = again.over_all_rows()
    for name in ("values", "stderr", "n_tests", "stderr_tests"):
        assert np.array_equal(getattr(everyone, name), getattr(whole, name)), name
    assert np.array_equal(everyone.history.values, whole.history.values)
    assert np.allclose(everyone.spread, whole.spread)


def test_data_of_one_part_are_like_any_other(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(chunked_rows, "PART_BYTES", 2**26)
    settings = {"model": DecisionTreeClassifier(max_depth=4), "budget": 300}  # its support reads the model
    assert np.array_equal(values_in_memory(rows, **settings).values, values_in_parts(rows, tmp_path, **settings).values)


def test_test_rows_may_be_in_a_file_too(rows, tmp_path):
    X, y, _ = rows
    X[N:].assign(target=y[N:]).to_parquet(tmp_path / "tests.parquet")
    (tmp_path / "rows").mkdir()
    expected = values_in_parts(rows, tmp_path / "rows", model="knn")
    found = ls.value(tmp_path / "rows", "target", tmp_path / "tests.parquet", "target", model="knn", progress=False)
    assert np.array_equal(expected.values, found.values)


def test_a_plan_says_how_much_memory(rows, tmp_path):
    values_in_parts(rows, tmp_path, model="knn")
    plan = ls.plan(tmp_path, "target", rows[0][N:], rows[1][N:], model="knn", progress=False)
    assert plan.n_rows == N
    assert 10 * chunked_rows.PART_BYTES < plan.memory < 30 * 8 * 4 * N
    assert "memory   at most about 0.0 GB" in repr(plan)
    assert ls.plan(rows[0], rows[1], cv=3, model="knn").memory is None


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"model": DecisionTreeClassifier()}, "TreeNode.. reads what the model has learnt from all rows.*Nearest"),
            ({"model": SVC(kernel="linear")}, "Dual.. reads what the model has learnt from all rows"),
            ({"model": "knn", "support": S.Everything()}, "Everything.. needs all rows"),
            ({"model": "knn", "method": "tmc"}, "Everything.. needs all rows"),
            ({"model": make_pipeline(StandardScaler(), SVC())}, "StandardScaler, would be fitted on all rows.*freeze"),
            ({"model": ls.models.Fixed(RandomForestClassifier())}, "models.Fixed needs all rows"),
            ({"model": "knn", "owners": np.zeros(N)}, "owners play with all of their rows.*tasks.owners"),
        ],
    )
    def test_what_needs_all_rows(self, rows, tmp_path, settings, message):
        with pytest.raises(InvalidArgumentError, match=message):
            values_in_parts(rows, tmp_path, **settings)

    def test_folds(self, rows, tmp_path):
        with pytest.raises(InvalidArgumentError, match=r"cv needs all rows in memory.*X_test and y_test"):
            ls.value(_written(rows, tmp_path), "target", model="knn", cv=5)

    def test_gaps_are_told_with_their_rows(self, rows, tmp_path):
        gaps = rows[0].copy()
        gaps.loc[900, "b"] = np.nan
        with pytest.raises(InvalidArgumentError, match=r"missing .NaN. or non-numeric values in rows 750 to 999"):
            values_in_parts((gaps, *rows[1:]), tmp_path, model=KNeighborsClassifier(3))

    def test_test_rows_of_other_columns(self, rows, tmp_path):
        with pytest.raises(InvalidArgumentError, match=r"X_test has 3 features, X has 4"):
            ls.value(_written(rows, tmp_path), "target", rows[0][N:].to_numpy()[:, :3], rows[1][N:], model="knn")


def _written(rows, folder):
    rows[0][:N].assign(target=rows[1][:N]).to_parquet(folder / "rows.parquet")
    return folder
