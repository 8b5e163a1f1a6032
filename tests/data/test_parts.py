"""Rows that lie in parts: as a whole, some of them, their labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from localshapley.data import chunked_rows, out_of_core
from localshapley.data.chunked_rows import MappedRows
from localshapley.data.out_of_core import parts_of
from localshapley.errors import InvalidArgumentError

N = 103


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc")).assign(label=rng.choice(["x", "y", "z"], N))


@pytest.fixture(params=["folder", "file", "feather", "data set", "mapped", "frame", "array"])
def lying(request, table, tmp_path, monkeypatch):
    """The table, in parts of about ten rows."""
    monkeypatch.setattr(chunked_rows, "PART_BYTES", 8 * 3 * 10)
    return in_parts(request.param, table, tmp_path)


def in_parts(kind, table, folder):
    if kind in ("folder", "data set"):
        for number, start in enumerate(range(0, N, 40)):
            table.iloc[start : start + 40].to_parquet(folder / f"part-{number}.parquet", row_group_size=7)
        if kind == "folder":
            return parts_of(folder, "label")
        import pyarrow.dataset as ds

        return parts_of(ds.dataset(folder), "label")
    if kind in ("file", "feather"):
        path = folder / ("rows.parquet" if kind == "file" else "rows.feather")
        (table.to_parquet if kind == "file" else table.to_feather)(path)
        return parts_of(str(path), "label")
    rows, labels = table[list("abc")].to_numpy(), table["label"].to_numpy()
    if kind == "mapped":
        np.save(folder / "rows.npy", rows)
        return MappedRows(np.load(folder / "rows.npy", mmap_mode="r"), labels)
    if kind == "frame":
        dd = pytest.importorskip("dask.dataframe", reason="Dask is an extra")
        return parts_of(dd.from_pandas(table, npartitions=11), "label")
    da = pytest.importorskip("dask.array", reason="Dask is an extra")
    return parts_of(da.from_array(rows, chunks=(10, 2)), da.from_array(labels, chunks=25))


def test_the_whole(lying, table):
    X, y = lying.whole()
    assert (lying.n_rows, lying.n_columns, lying.is_small) == (N, 3, False)
    assert np.array_equal(np.asarray(X), table[list("abc")])
    assert y.tolist() == table["label"].tolist()
    assert isinstance(X, pd.DataFrame) == (lying.names is not None)


def test_there_are_several_parts_and_none_is_larger_than_it_says(lying):
    sizes = list(lying.scan(lambda part: len(part.X)))
    assert len(sizes) > 2
    assert sum(sizes) == N
    assert max(sizes) <= lying.largest < N / 2


@pytest.mark.parametrize("rows", [[0], [5, 6, 39, 40, 102], list(range(103))])
def test_some_rows(lying, table, rows):
    X, y = lying.gather(np.array(rows))
    assert np.array_equal(np.asarray(X), table[list("abc")].iloc[rows])
    assert y.tolist() == table["label"].iloc[rows].tolist()


def test_labels(lying, table):
    assert lying.labels().tolist() == table["label"].tolist()
    labels, first = lying.distinct_labels()
    found = dict(zip(labels.tolist(), first.tolist(), strict=True))
    assert found == {label: int(np.flatnonzero(table["label"] == label)[0]) for label in "xyz"}


def test_one_part_after_the_other(lying):
    def step(part, carried, factor):
        return [*(carried or []), factor * part.start]

    assert lying.fold(step, 2) == sorted(2 * part.start for part in lying.scan(lambda part: part))


def test_a_table_in_memory_does_not_lie_in_parts(table, tmp_path):
    np.save(tmp_path / "rows.npy", table[list("abc")].to_numpy())
    assert parts_of(table, table["label"]) is None
    assert parts_of(np.load(tmp_path / "rows.npy", mmap_mode="r"), table["label"]) is None  # small enough


def test_a_memory_map_larger_than_a_share_of_the_memory_does(table, tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "memory_size", lambda: 1000)
    np.save(tmp_path / "rows.npy", table[list("abc")].to_numpy())
    assert isinstance(parts_of(np.load(tmp_path / "rows.npy", mmap_mode="r"), table["label"]), MappedRows)


class TestRefused:
    @pytest.mark.parametrize("name", ["nothing", "empty", "mixed"])
    def test_a_folder_without_files_of_one_kind(self, tmp_path, table, name):
        folder = tmp_path / name
        if name != "nothing":
            folder.mkdir()
        if name == "mixed":
            table.to_parquet(folder / "one.parquet")
            table.to_feather(folder / "two.feather")
        with pytest.raises(InvalidArgumentError, match=r"must be a file, or a folder of files of one kind"):
            parts_of(folder, "label")

    def test_a_file_that_is_none(self, tmp_path):
        (tmp_path / "rows.parquet").write_text("no")
        with pytest.raises(InvalidArgumentError, match=r"cannot be read"):
            parts_of(tmp_path, "label")

    def test_a_column_that_is_not_there(self, tmp_path, table):
        table.to_parquet(tmp_path / "rows.parquet")
        with pytest.raises(
            InvalidArgumentError, match=r"names the column 'target', which X does not have; it has a, b"
        ):
            parts_of(tmp_path, "target")

    def test_labels_of_another_length(self, tmp_path, table):
        table.to_parquet(tmp_path / "rows.parquet")
        with pytest.raises(InvalidArgumentError, match=r"one label for each of the 103 rows"):
            parts_of(tmp_path, np.zeros(7))

    def test_missing_labels(self, tmp_path, table):
        table.assign(label=table["label"].where(table.index != 60)).to_parquet(tmp_path / "rows.parquet")
        with pytest.raises(InvalidArgumentError, match=r"missing .NaN. in row 60"):
            parts_of(tmp_path, "label").distinct_labels()
