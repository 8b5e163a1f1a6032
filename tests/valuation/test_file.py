"""Files of valuations: their checksum, what is refused before it is used, and a disk that is full."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import localshapley as ls
from faults import damaged_valuations as faults
from localshapley.runtime import memory
from made import changed

EXACT, SAMPLED = 0, 1
CASES = [(EXACT, name) for name in (faults.CHANGES | faults.IN_EXACT)] + [(SAMPLED, name) for name in faults.IN_SAMPLED]
ALL = faults.CHANGES | faults.IN_EXACT | faults.IN_SAMPLED


@pytest.mark.parametrize("first_format", [False, True], ids=["sealed", "first format"])
@pytest.mark.parametrize(("which", "name"), CASES, ids=[name for _, name in CASES])
def test_impossible_contents_are_refused_in_one_sentence(tmp_path, which, name, first_format):
    path = tmp_path / "v.parquet"
    path.write_bytes(faults._as_table(which, ALL[name], first_format=first_format))
    with pytest.raises(ls.LocalShapleyError, match=r"is not a valuation that this version can read \(.+\)") as error:
        ls.load(path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("which", [EXACT, SAMPLED])
def test_the_same_contents_written_again_are_taken(tmp_path, which):
    path = tmp_path / "v.parquet"
    for first_format in (False, True):
        path.write_bytes(faults._as_table(which, lambda *same: same, first_format=first_format))
        found = ls.load(path)
        notes = [note for note in found.notes if "could not be checked" in note]
        assert len(notes) == first_format
        assert faults.same(replace(found, notes=faults.valuations()[which].notes), faults.valuations()[which])


def test_every_flipped_bit_is_noticed(tmp_path):
    path, content = tmp_path / "v.parquet", faults.saved(EXACT)
    for at in np.random.default_rng(0).integers(0, 8 * len(content), 200):
        flipped = bytearray(content)
        flipped[at // 8] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        with pytest.raises(ls.LocalShapleyError, match=r"damaged: its checksum|Parquet|checksum is missing"):
            ls.load(path)


def test_a_file_of_this_format_without_its_checksum_is_refused(tmp_path):
    path = tmp_path / "v.parquet"
    table = pq.read_table(pa.BufferReader(faults.saved(EXACT)))
    meta = {key: text for key, text in table.schema.metadata.items() if key != b"localshapley.checksum"}
    pq.write_table(table.replace_schema_metadata(meta), path)
    with pytest.raises(ls.LocalShapleyError, match="its checksum is missing"):
        ls.load(path)


@pytest.mark.parametrize("name", ["value", "tests", "digest", "spread", "n_tests", "history_values"])
def test_an_index_may_be_named_as_a_column(tmp_path, name):
    v = faults.valuations()[SAMPLED]
    v = changed(v, ids=v.ids.rename(name))
    v.save(tmp_path / "v.parquet")
    back = ls.load(tmp_path / "v.parquet")
    pd.testing.assert_index_equal(back.ids, v.ids)
    assert (back.spread == v.spread).all()


@pytest.mark.parametrize("path", ["a\0b.parquet", "a\ud800.parquet"])
def test_paths_that_no_file_can_have(path):
    with pytest.raises(ls.InvalidArgumentError, match="does not exist"):
        ls.load(path)
    with pytest.raises(ls.InvalidArgumentError, match="not one that a file can have"):
        faults.valuations()[EXACT].save(path)


def test_a_folder_is_not_a_file(tmp_path):
    (tmp_path / "v.parquet").mkdir()
    with pytest.raises(ls.LocalShapleyError, match=r"v\.parquet' cannot be read \(Is a directory\)"):
        ls.load(tmp_path / "v.parquet")


def test_a_full_disk_leaves_what_was_saved_before(tmp_path, monkeypatch):
    one, two = faults.valuations()
    one.save(tmp_path / "v.parquet")

    def full(path, content):
        with open(path, "wb") as file:
            file.write(content[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ls.LocalShapleyError, match=r"v\.parquet' cannot be written \(No space left on device\)"):
        two.save(tmp_path / "v.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["v.parquet"]
    assert faults.same(ls.load(tmp_path / "v.parquet"), one)


def test_more_than_there_is_memory_for_is_refused_before_it_is_read(tmp_path, monkeypatch):
    faults.valuations()[SAMPLED].save(tmp_path / "v.parquet")
    monkeypatch.setattr(memory, "memory_size", lambda: 1000)
    monkeypatch.setattr(memory, "LITTLE", 0)
    with pytest.raises(ls.TooLargeError, match=r"this valuation would take 0\.0 GB of memory"):
        ls.load(tmp_path / "v.parquet")


def test_the_header_names_the_columns_of_the_table(tmp_path):
    table = pq.read_table(pa.BufferReader(faults.saved(SAMPLED)))
    assert json.loads(table.schema.metadata[b"localshapley"])["columns"] == list("abcd")


@pytest.mark.parametrize("labels", [[1, "a", 2.5], [(1, 2), (1, 3), "b"]], ids=["kinds", "tuples"])
def test_labels_without_a_column_of_their_own_are_saved_as_text(tmp_path, labels):
    index = pd.Index(labels, tupleize_cols=False)
    v = changed(ls.shapley([[0, 1, 2]], lambda coalition, tests: np.full(len(tests), len(coalition))), ids=index)
    with pytest.warns(ls.LocalShapleyWarning, match="saved as text"):
        v.save(tmp_path / "v.parquet")
    loaded = ls.load(tmp_path / "v.parquet")
    assert loaded.ids.tolist() == [str(label) for label in labels]
    np.testing.assert_array_equal(loaded.values, v.values)


def test_sentences_of_an_earlier_version_are_notes_without_a_code(tmp_path):
    path, was = tmp_path / "v.parquet", faults.valuations()[EXACT]
    older = {"format": "localshapley valuation 2", "notes": ["one fact.", "another."], "stopped": "at the end"}
    path.write_bytes(faults._as_table(EXACT, faults.header(**older)))
    found = ls.load(path)
    assert [(note, note.code) for note in (*found.notes, found.stopped)] == [
        ("one fact.", "unknown"), ("another.", "unknown"), ("at the end", "unknown"),
    ]  # fmt: skip
    assert (found.values == was.values).all()
    found.save(path)
    assert ls.load(path).notes == ["one fact.", "another."]
