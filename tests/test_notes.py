"""Notes read as sentences and travel as records; code goes by their codes, which a page of the reference lists."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from localshapley.notes import UNKNOWN, Note, note_of, notes_of

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "src" / "localshapley").rglob("*.py"))
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


def test_figures_are_what_json_can_hold():
    data = {
        "count": np.int64(3), "share": np.float32(0.5), "no": np.nan, "far": -np.inf, "yes": np.bool_(True),
        "none": None, "missing": pd.NA, "names": pd.Index(["a", 1]), "rows": np.arange(2),
        "when": pd.Timestamp("2026-01-02"),
        "note": NOTE, "text": "words", "code": 7,
    }  # fmt: skip
    found = Note("any", "any", **data)
    assert found.data == {
        "count": 3, "share": 0.5, "no": None, "far": None, "yes": True, "none": None,
        "missing": None, "names": ["a", 1], "rows": [0, 1], "when": "2026-01-02 00:00:00",
        "note": NOTE.to_dict(), "text": "words", "code": 7,
    }  # fmt: skip
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
    with pytest.raises(TypeError):
        found.data["count"] = 4


def test_a_sentence_without_a_code_is_a_note_of_an_unknown_one():
    assert (note_of("abc").code, note_of("abc")) == (UNKNOWN, "abc")
    assert [note.code for note in notes_of([NOTE, "abc", NOTE, "abc"])] == [NOTE.code, UNKNOWN]


def test_results_carry_codes_and_figures(tmp_path):
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    v = ls.value(X, y, X_test, y_test, model="tree", support=ls.supports.Nearest(12), budget=300)
    assert (v.stopped.code, v.stopped.data) == ("budget-spent", {"budget": 300})
    codes = [note.code for note in v.notes]
    assert codes == ["test-rows-seen", "draws-larger-error"]
    assert v.notes[0].data == {"n_seen": 1, "n_tests": 45}
    v.save(tmp_path / "v.parquet")
    back = ls.load(tmp_path / "v.parquet")
    assert [note.to_dict() for note in (*back.notes, back.stopped)] == [n.to_dict() for n in (*v.notes, v.stopped)]
    found = v.to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["notes"] == [note.to_dict() for note in v.notes]
    assert found["stopped"] == v.stopped.to_dict()
    ls.report.write_report(tmp_path / "v.html", v, json=True)
    how = json.loads((tmp_path / "v.json").read_text())["sections"]["how"]
    assert (how["notes"], how["stopped"]) == (found["notes"], found["stopped"])


# No code decides by the words of a note.

TOLD = {"note", "notes", "stopped", "ended", "training_notes", "sentence"}
"""Names of what holds notes, or why a run ended."""
SEARCHES = {
    "startswith", "endswith", "split", "rsplit", "partition", "rpartition", "find", "rfind", "index", "rindex", "count",
    "removeprefix", "removesuffix", "lower", "casefold", "match", "search", "fullmatch", "findall",
}  # fmt: skip
"""Methods of texts, and functions of `re`, that look at words."""


class Words(ast.NodeVisitor):
    """Lines on which the words of notes are compared or searched."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self._loops: set[str] = set()

    def is_told(self, node):
        """Whether an expression is a note, several, or their text."""
        if isinstance(node, ast.Name):
            return node.id in TOLD | self._loops
        if isinstance(node, ast.Attribute):
            return node.attr in TOLD or (node.attr == "text" and self.is_told(node.value))
        if isinstance(node, ast.Subscript):
            by_name = isinstance(node.slice, ast.Constant) and node.slice.value in TOLD
            return by_name or self.is_told(node.value)
        if isinstance(node, ast.Call):
            return getattr(node.func, "id", "") in ("str", "list", "tuple", "set") and any(map(self.is_told, node.args))
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        return any(isinstance(part, ast.FormattedValue) and self.is_told(part.value) for part in parts)

    def decides(self, node):
        """Whether a node compares or searches the words of notes."""
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            return not isinstance(node.ops[0], ast.Is | ast.IsNot) and any(map(self.is_told, sides))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in SEARCHES and any(map(self.is_told, [node.func.value, *node.args]))
        return isinstance(node, ast.Match) and self.is_told(node.subject)

    def visit(self, node):
        if self.decides(node):
            self.lines.append(node.lineno)
        before, loops = self._loops, [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        self._loops = before | {
            loop.target.id for loop in loops if self.is_told(loop.iter) and isinstance(loop.target, ast.Name)
        }
        self.generic_visit(node)
        self._loops = before


def lines_of(source: str) -> list[int]:
    found = Words()
    found.visit(ast.parse(source))
    return found.lines


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src" / "localshapley")))
def test_no_code_decides_by_the_words_of_a_note(module):
    assert lines_of(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        'sentences += [note for note in v.notes if note.startswith("locality gap")]',
        'about = note.startswith(("the choice of test rows is", "the draws are off by"))',
        "by_tests = [note for note in notes if note.endswith(ADVICE)]",
        "note = next((n for n in valuation.notes if NOTHING_FROM_FEATURES in n), None)",
        "lines = [line for line in copies.lines.values() if line not in notes]",
        "is_as_before = settings.budget is None and found.stopped == to_play.spent",
        'if result.stopped == "interrupted": pass',
        "is_noted = any(OUTWEIGHS in n for n in notes)",
        "notes += [] if note in notes else [note]",
        'if UNCHECKED not in fields["notes"]: pass',
        "for told in found.notes:\n    if told.text.split()[0] == 'only': pass",
        'if "budget" in str(v.stopped): pass',
        'if re.search("limit", v.stopped): pass',
        "is_first = valuation.notes[0] == UNCHECKED",
        'if "limit" in f"{v.stopped}": pass',
    ],
)
def test_the_words_of_notes_are_found(line):
    assert lines_of(line)


@pytest.mark.parametrize(
    "line",
    [
        'if result.stopped.code == "interrupted": pass',
        "found = [note for note in v.notes if note.code in CODES]",
        "while stopped is None: pass",
        'if note.data["n_empty"] > 3: pass',
        'text = " and ".join(notes)',
        "lines = [line for line in lines if line in known]",
    ],
)
def test_codes_and_figures_are_no_words(line):
    assert not lines_of(line)


# The page of the reference.

SHARED = {
    "closed-form": "the classes of neighbours, the trees of a forest, the formula for neighbours",
    "column-left-out": "columns that are empty, and columns that name rows",
    "gap-code": "in Python, and with the option of the command line",
    "leaves-refilled": "a setting each",
    "numbers-scaled": "of a table, and of a folder",
    "rare-classes-left-out": "in Python, and with the name of the file",
    "scored-by-tree": "forests, and boosted trees",
    "support-empty": "rows, and nodes",
    "target-in-column": "in Python, and with the option of the command line",
    "target-reached": "of a run, and of what an update plays",
}
"""Codes that are given in several places, which say the same in the words of each."""


def given_codes():
    """Codes in the package: where each is given, and its figures."""
    places, figures = defaultdict(list), defaultdict(set)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Note":
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    places[code.value].append(f"{path.name}:{node.lineno}")
                    figures[code.value] |= {word.arg for word in node.keywords if word.arg is not None}
                else:  # a code that was given before
                    assert path.name in ("notes.py", "seed_average.py"), f"{path}:{node.lineno} has no code of its own"
    return places, figures


def listed_codes():
    """Codes on the page, with their figures."""
    page = (ROOT / "docs" / "reference" / "notes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \|(.*)\|$", page, re.MULTILINE)
    assert all(len(meaning) > 10 for _, meaning, _ in rows)
    codes = [code for code, _, _ in rows]
    assert len(set(codes)) == len(codes)
    return {code: set(re.findall(r"`(\w+)`", figures)) for code, _, figures in rows}


def test_the_reference_lists_all_codes_and_their_figures():
    _, figures = given_codes()
    assert listed_codes() == {**figures, UNKNOWN: set()}


def test_a_code_is_one_fact():
    places, _ = given_codes()
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in places)
    assert {code: where for code, where in places.items() if len(where) > 1 and code not in SHARED} == {}
