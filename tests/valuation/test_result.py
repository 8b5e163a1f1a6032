"""The result, its files, the plan, the locality check and the public names."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from localshapley.supports import Given, Nearest
from made import changed

pytestmark = pytest.mark.quick
SUPPORTS = [[0, 3, 11], [3, 4], [11, 3, 9, 0], [], [4, 3]]
iris = load_iris()
DATA = (iris.data[::12], iris.target[::12], iris.data[[1, 57, 108, 133, 140]], iris.target[[1, 57, 108, 133, 140]])


def valued(index=None, per_test=False, **arguments):
    X, *others = DATA
    X = X if index is None else pd.DataFrame(X, index=index)
    arguments = {"model": KNeighborsClassifier(2), "support": Given(SUPPORTS), **arguments}
    return ls.value(X, *others, per_test=per_test, **arguments)


class TestTable:
    def test_the_frame_holds_what_the_arrays_hold(self):
        v = valued()
        table = v.to_frame()
        assert list(table.columns) == ["value", "stderr", "stderr_tests", "n_tests"]
        assert table.index.tolist() == list(range(13))
        assert (table["value"] == v.values).all()
        assert (table["stderr"] == 0).all()
        assert (table["stderr_tests"] == v.stderr_tests).all()
        assert table["n_tests"].tolist() == [sum(z in support for support in SUPPORTS) for z in range(13)]

    def test_the_index_of_the_users_table_is_kept(self):
        index = pd.Index([f"row {z}" for z in range(13)], name="flower")
        pd.testing.assert_index_equal(valued(index).to_frame().index, index)

    def test_top_and_bottom_are_sorted_and_keep_the_index(self):
        v = valued(pd.Index(range(100, 113)))
        order = sorted(range(13), key=lambda z: -v.values[z])
        top, bottom = v.top(3), v.bottom(4)
        assert top["value"].tolist() == [v.values[z] for z in order[:3]]
        assert top.index.tolist() == [100 + z for z in order[:3]]
        assert bottom["value"].tolist() == sorted(v.values)[:4]
        assert (v.to_frame().loc[bottom.index, "value"] == bottom["value"]).all()
        assert v.values.max() > v.values.min()

    def test_top_gives_ten_rows_and_never_more_than_there_are(self):
        v = valued()
        assert len(v.top()) == len(v.bottom()) == 10
        assert len(v.top(500)) == 13

    def test_equal_values_stay_in_the_order_of_the_rows(self):
        v = ls.shapley([[0, 1, 2]], lambda c, t: [float(len(c))], 5)
        assert v.top(5).index.tolist() == [0, 1, 2, 3, 4]
        assert v.bottom(5).index.tolist() == [3, 4, 0, 1, 2]


class TestPrinting:
    def test_the_printed_result_says_what_was_done(self):
        model = ls.models.Estimator(KNeighborsClassifier(2))
        text = repr(valued(pd.Index([f"row-{z}" for z in range(13)]), model=model))
        v = valued(model=model)
        assert "exact: no training," in repr(valued())
        for part in (
            "Valuation of 13 training rows over 5 test rows",
            "KNeighborsClassifier(n_neighbors=2)",
            "confidence",
            "0 to 4 rows",
            f"exact: {v.cost.trainings} trainings",
            f"{v.cost.reused} saved by reuse",
            f"(row row-{int(np.argmax(v.values))})",
            f"(row row-{int(np.argmin(v.values))})",
            f"{int((v.values < 0).sum())} below zero",
            "1 of 5 test rows have an empty support",
        ):
            assert part in text

    def test_one_size_is_one_number(self):
        assert "Nearest(n=3): 3 rows" in repr(valued(support=Nearest(3)))


INDEXES = {
    "none": None,
    "numbers": pd.Index(range(50, 63)),
    "named numbers": pd.Index(np.arange(13)[::-1], name="id"),
    "text": pd.Index([f"row {z}" for z in range(13)]),
    "named text": pd.Index([f"zeile {z} ü" for z in range(13)], name="flower"),
    "dates": pd.date_range("2024-01-01", periods=13, name="day"),
    "index named value": pd.Index(range(13), name="value"),
}


@pytest.mark.parametrize("per_test", [False, True])
@pytest.mark.parametrize("index", INDEXES)
def test_a_saved_valuation_comes_back_the_same(tmp_path, per_test, index):
    v = valued(INDEXES[index], per_test)
    v.save(tmp_path / "v.parquet")
    back = ls.load(tmp_path / "v.parquet")
    for name in ("values", "stderr", "n_tests", "support_sizes"):
        assert (getattr(back, name) == getattr(v, name)).all()
        assert getattr(back, name).dtype == getattr(v, name).dtype
    for name in ("method", "model", "score", "support", "stopped", "notes", "cost"):
        assert getattr(back, name) == getattr(v, name)
    assert v.notes
    if per_test:
        assert (back.per_test.toarray() == v.per_test.toarray()).all()
        assert back.per_test.shape == (5, 13)
    else:
        assert back.per_test is None
    if v.ids is None:
        assert back.ids is None
    else:
        assert back.ids.tolist() == v.ids.tolist()
        assert back.ids.name == v.ids.name
    assert repr(back) == repr(v)
    assert back.to_frame().equals(v.to_frame())


def test_rows_with_two_keys_can_be_saved(tmp_path):
    index = pd.MultiIndex.from_product([["a"], range(13)], names=["file", "line"])
    v = valued(index)
    v.save(tmp_path / "v.parquet")
    back = ls.load(tmp_path / "v.parquet")
    assert (back.values == v.values).all()
    assert len(back.ids) == 13


def test_a_saved_valuation_knows_whether_its_model_is_random(tmp_path):
    path = tmp_path / "v.parquet"
    changed(valued(), is_random=True).save(path)
    assert ls.load(path).is_random
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[b"localshapley"])
    del header["is_random"]  # as in a file of an older version
    header["format"] = "localshapley valuation 1"
    older = {**table.schema.metadata, b"localshapley": json.dumps(header).encode()}
    del older[b"localshapley.checksum"]
    pq.write_table(table.drop_columns(["digest"]).replace_schema_metadata(older), path)
    assert not ls.load(path).is_random


def test_a_saved_valuation_knows_how_good_its_model_is(tmp_path):
    path = tmp_path / "v.parquet"
    v = valued()
    assert v.skill is not None
    v.save(path)
    assert ls.load(path).skill == v.skill
    table = pq.read_table(path)
    for wrong, is_read in ((None, True), ({**vars(v.skill), "model": "good"}, False)):
        header = json.loads(table.schema.metadata[b"localshapley"])
        del header["skill"]  # as in a file of an older version
        header |= {"format": "localshapley valuation 1"} | ({} if wrong is None else {"skill": wrong})
        other = {**table.schema.metadata, b"localshapley": json.dumps(header).encode()}
        del other[b"localshapley.checksum"]
        pq.write_table(table.replace_schema_metadata(other), path)
        if is_read:
            assert ls.load(path).skill is None
        else:
            with pytest.raises(ls.LocalShapleyError, match="skill holds something else than finite numbers"):
                ls.load(path)


def test_text_paths_will_do(tmp_path):
    valued().save(str(tmp_path / "v.parquet"))
    assert (ls.load(str(tmp_path / "v.parquet")).values == valued().values).all()


def test_a_parquet_file_opens_as_a_table_anywhere(tmp_path):
    v = valued(pd.Index([f"row {z}" for z in range(13)], name="flower"), per_test=True)
    v.save(tmp_path / "v.parquet")
    table = pd.read_parquet(tmp_path / "v.parquet")
    assert table["value"].tolist() == v.values.tolist()
    assert table.index.tolist() == v.ids.tolist()


@pytest.mark.parametrize("name", ["v.csv", "v", "v.pkl", "v.npz"])
def test_another_suffix_is_refused_by_save_and_load(tmp_path, name):
    with pytest.raises(ls.InvalidArgumentError, match=r"must end in .parquet; got '.*v.*to_frame"):
        valued().save(tmp_path / name)
    assert not (tmp_path / name).exists()
    (tmp_path / name).write_text("x")
    with pytest.raises(ls.InvalidArgumentError, match=r"must end in .parquet"):
        ls.load(tmp_path / name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ls.InvalidArgumentError, match=r"nothing\.parquet' does not exist"):
        ls.load(tmp_path / "nothing.parquet")


def foreign_files():
    buffers = {}
    pd.DataFrame({"a": [1, 2]}).to_parquet(buffer := io.BytesIO())
    buffers["another table.parquet"] = buffer.getvalue()
    buffers["text.parquet"] = b"value,stderr\n1,2\n"
    buffers["nothing.parquet"] = b""
    return buffers


FOREIGN = foreign_files()


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_kind_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(FOREIGN[name])
    with pytest.raises(ls.LocalShapleyError, match=r"is not a valuation that this version can read.*Valuation.save"):
        ls.load(tmp_path / name)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
def test_a_truncated_file_is_refused(tmp_path, share):
    path = tmp_path / "v.parquet"
    valued(per_test=True).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ls.LocalShapleyError, match="is not a valuation that this version can read"):
        ls.load(path)


def test_valuations_are_told_apart_as_objects_and_not_by_their_arrays():
    v, w = (ls.shapley([[0, 1]], lambda coalition, tests: np.full(len(tests), len(coalition))) for _ in range(2))
    assert v == v
    assert v != w
    assert len({v, w}) == 2


@pytest.mark.parametrize("which", ["top", "bottom"])
def test_less_than_no_rows_are_refused(which):
    v = ls.shapley([[0, 1]], lambda coalition, tests: np.full(len(tests), len(coalition)))
    assert len(getattr(v, which)(0)) == 0
    with pytest.raises(ls.InvalidArgumentError, match="n must be a whole number of at least 0; got -1"):
        getattr(v, which)(-1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [1.0, 2.0]}, "stderr must have an entry for each of the 2 values; got 13"),
        ({"stderr": [0.0]}, "stderr must have an entry for each of the 13 values; got 1"),
        ({"values": ["good"] * 13}, "values must be a list of finite numbers"),
        ({"values": [[1.0]] * 13}, "values must be a list of finite numbers"),
        ({"values": [np.nan] * 13}, "values must be a list of finite numbers"),
        ({"stderr": [-1.0] * 13}, "stderr must be at least 0; got -1"),
        ({"n_tests": np.arange(3)}, "n_tests must have an entry for each of the 13 values; got 3"),
        ({"spread_tests": np.ones((5, 4))}, "spread_tests must have an entry for each"),
        ({"ids": pd.Index(["a"])}, "ids must have an entry for each"),
        ({"unit": "banana"}, "unit must be one of 'node', 'owner', 'row'; got 'banana'"),
        (
            {"history": ls.History(np.array([9]), np.ones((1, 3)), np.ones((1, 3)))},
            "history must have an entry for each of the 13 values; got 3",
        ),
        ({"support_sizes": np.arange(3)}, r"per_test must have shape \(3, 13\)"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    v = valued(per_test=True)
    assert len(v.values) == 13
    with pytest.raises(ls.InvalidArgumentError, match=message):
        changed(v, **change)


def test_values_may_be_lists():
    v = valued()
    assert changed(v, values=v.values.tolist(), stderr=[0] * len(v.values)).relative_error == 0
