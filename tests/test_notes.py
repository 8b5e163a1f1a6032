"""Notes read as sentences and travel as records."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from localshapley.notes import Note, note_of

NOTE = Note("support-empty", "3 of 40 test rows have an empty support.", n_empty=3, n_tests=40)


def test_a_note_reads_as_its_text():
    assert NOTE == NOTE.text == str(NOTE) == "3 of 40 test rows have an empty support."
    assert f"{NOTE}" == NOTE.text
    assert type(NOTE.text) is type(str(NOTE)) is str


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda note: pickle.loads(pickle.dumps(note)), lambda note: note_of(note.to_dict())],
)
def test_copies_keep_code_and_data(copied):
    found = copied(NOTE)
    assert (found, found.code, found.data) == (NOTE, NOTE.code, NOTE.data)


def test_a_note_goes_through_json():
    assert note_of(json.loads(json.dumps(NOTE.to_dict()))).to_dict() == NOTE.to_dict()
