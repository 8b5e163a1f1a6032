"""Damaged and crafted files of valuations: `load` refuses them in one sentence, or gives the numbers that were saved.

`python tests/faults/damaged_valuations.py 1000` runs so many trials and counts how they ended.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import localshapley as ls
from localshapley.valuation.file import BLANK, _sealed

sys.path.insert(0, str(Path(__file__).parents[1]))
from faults.batches import main

FOLDER = Path(tempfile.mkdtemp())


@cache
def valuations() -> list[ls.Valuation]:
    """A closed form with values for each test row, and a sampled run with a history and names."""
    X, y, X_test, y_test, _ = ls.datasets.load("iris")
    exact = ls.value(X, y, X_test, y_test, model="knn", per_test=True)
    table = pd.DataFrame(X, columns=list("abcd"), index=pd.Index([f"plant {i}" for i in range(len(X))], name="plant"))
    sampled = ls.value(
        table, y, X_test, y_test, model="tree", support=ls.supports.Nearest(12), method="sample", budget=3000
    )
    assert exact.levels is not None
    assert sampled.levels is not None
    return [exact, sampled]


@cache
def saved(which: int) -> bytes:
    path = FOLDER / "sound.parquet"
    valuations()[which].save(path)
    return path.read_bytes()


def trial(number: int) -> str:
    """Damage a file at random, by bytes or by its contents, and load it."""
    rng = np.random.default_rng(number)
    which = int(rng.integers(2))
    path = FOLDER / "v.parquet"
    if number % 3 == 0:
        name, content = crafted(rng, which)
        path.write_bytes(content)
        return _refused(path, f"crafted {name}", None)
    if number % 10 == 1:
        path.write_bytes(damaged(rng, _as_table(which, lambda table, meta: (table, meta), first_format=True)))
        return _usable(path)
    path.write_bytes(damaged(rng, saved(which)))
    return _refused(path, "bytes", valuations()[which])


def _refused(path: Path, what: str, sound: ls.Valuation | None) -> str:
    """Load a file that must be refused, or be as it was saved."""
    try:
        found = ls.load(path)
    except ls.LocalShapleyError as error:
        text = str(error)
        return "refused" if "\n" not in text and len(text) < 500 else f"WRONG: long message for {what}: {text}"
    except Exception as error:
        return f"WRONG: {what} gave {type(error).__name__}: {error}"
    return "right" if sound is not None and same(found, sound) else f"WRONG: {what} gave other numbers"


def _usable(path: Path) -> str:
    """Load a damaged file without a checksum, as earlier versions wrote it: refused, or a valuation that works."""
    try:
        found = ls.load(path)
    except ls.LocalShapleyError:
        return "refused"
    repr(found), found._repr_html_()
    if found.per_test is not None:
        found.per_test.sum(axis=0)
    return "first format, loaded"


def same(one: ls.Valuation, two: ls.Valuation) -> bool:
    """Whether all numbers and texts of two valuations are equal."""
    arrays = [(one.values, two.values), (one.stderr, two.stderr), (one.n_tests, two.n_tests)]
    arrays += [(one.support_sizes, two.support_sizes), (one.digests.rows, two.digests.rows)]
    arrays += [(one.spread, two.spread)] if two.spread is not None else []
    arrays += [(one.history.values, two.history.values)] if two.history is not None else []
    arrays += [(one.per_test.toarray(), two.per_test.toarray())] if two.per_test is not None else []
    are_equal = one.levels == two.levels and one.skill == two.skill and repr(one) == repr(two)
    return are_equal and all(np.array_equal(a, b) for a, b in arrays)


def damaged(rng: np.random.Generator, content: bytes) -> bytes:
    """Bits flipped, bytes overwritten, cut off, cut out, put in or exchanged."""
    kind, at = int(rng.integers(7)), int(rng.integers(len(content)))
    length = int(min(rng.choice([1, 8, 100, 3000]), len(content) - at))
    if kind == 0:
        flipped = bytearray(content)
        flipped[at] ^= 1 << int(rng.integers(8))
        return bytes(flipped)
    if kind == 1:
        flipped = bytearray(content)
        for place in rng.integers(0, len(content), int(rng.integers(1, 30))):
            flipped[place] = int(rng.integers(256))
        return bytes(flipped)
    if kind == 2:
        return content[:at]
    other = int(rng.integers(len(content) - length + 1))
    new = {3: rng.bytes(length), 4: bytes(length), 5: b"", 6: content[other : other + length]}[kind]
    return content[:at] + new + content[at + (length if kind != 3 or rng.random() < 0.5 else 0) :]


Contents = tuple[pa.Table, dict[bytes, bytes]]
Change = Callable[[pa.Table, dict[bytes, bytes]], Contents]


def _as_table(which: int, change: Change, *, first_format: bool = False) -> bytes:
    """The file of a valuation with changed contents, and a checksum that is right for them."""
    table = pq.read_table(pa.BufferReader(saved(which)))
    table, meta = change(table, dict(table.schema.metadata))
    meta[b"localshapley.checksum"] = BLANK
    if first_format:
        del meta[b"localshapley.checksum"]
        meta = {key: text.replace(b"valuation 3", b"valuation 1") for key, text in meta.items()}
    pq.write_table(table.replace_schema_metadata(meta), sink := pa.BufferOutputStream())
    content = sink.getvalue().to_pybytes()
    return content if first_format else _sealed(content)


def crafted(rng: np.random.Generator, which: int) -> tuple[str, bytes]:
    """A file that claims something impossible, with a right checksum or in the format without one."""
    changes = CHANGES | (IN_SAMPLED if which else IN_EXACT)
    name = list(changes)[int(rng.integers(len(changes)))]
    return name, _as_table(which, changes[name], first_format=bool(rng.integers(2)))


def column(name: str, make: Callable[[list[Any]], Any], kind: pa.DataType | None = None) -> Change:
    """Replace a column by what a function makes of its entries."""

    def change(table: pa.Table, meta: dict[bytes, bytes]) -> Contents:
        made = pa.array(make(table[name].to_pylist()), kind)
        return table.set_column(table.column_names.index(name), name, made), meta

    return change


def without(name: str) -> Change:
    return lambda table, meta: (table.drop_columns([name]), meta)


def entry(name: str, text: bytes | None) -> Change:
    """Replace an entry of the header, or leave it out."""

    def change(table: pa.Table, meta: dict[bytes, bytes]) -> Contents:
        meta = {key: value for key, value in meta.items() if key != name.encode()}
        return table, meta if text is None else {**meta, name.encode(): text}

    return change


def header(**changed: Any) -> Change:
    """Replace parts of the main header."""

    def change(table: pa.Table, meta: dict[bytes, bytes]) -> Contents:
        found = {**json.loads(meta[b"localshapley"]), **changed}
        return table, {**meta, b"localshapley": json.dumps(found).encode()}

    return change


def cost(**changed: Any) -> Change:
    def change(table: pa.Table, meta: dict[bytes, bytes]) -> Contents:
        found = json.loads(meta[b"localshapley"])
        found["cost"] |= changed
        return table, {**meta, b"localshapley": json.dumps(found).encode()}

    return change


def skill(**changed: Any) -> Change:
    def change(table: pa.Table, meta: dict[bytes, bytes]) -> Contents:
        found = json.loads(meta[b"localshapley"])
        found["skill"] |= changed
        return table, {**meta, b"localshapley": json.dumps(found).encode()}

    return change


def first(new: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda entries: [new, *entries[1:]]


def first_in_lists(new: Any) -> Callable[[list[Any]], list[Any]]:
    """Another first entry in the first list that has one."""

    def make(lists: list[Any]) -> list[Any]:
        at = next(i for i, entries in enumerate(lists) if len(entries) > 1)
        return [[new, *entries[1:]] if i == at else entries for i, entries in enumerate(lists)]

    return make


DEEP = b"[" * 200_000
LISTS = pa.list_(pa.int64())
CHANGES: dict[str, Change] = {
    "text values": column("value", lambda n: [str(x) for x in n]),
    "a null value": column("value", first(None), pa.float64()),
    "a NaN value": column("value", first(float("nan"))),
    "an infinite value": column("value", first(float("inf"))),
    "lists as values": column("value", lambda n: [[x] for x in n]),
    "bytes as values": column("value", lambda n: [b"12345678" for _ in n]),
    "no values": without("value"),
    "a negative error": column("stderr", first(-1.0)),
    "a null error": column("stderr", first(None), pa.float64()),
    "no errors": without("stderr"),
    "negative counts": column("n_tests", first(-1)),
    "large counts": column("n_tests", first(10**6)),
    "fractions as counts": column("n_tests", first(0.5), pa.float64()),
    "text counts": column("n_tests", lambda n: ["x"] * len(n)),
    "no rows": lambda table, meta: (table.slice(0, 0), meta),
    "values twice": lambda table, meta: (table.append_column("value", table["value"]), meta),
    "narrow digests": column("digest", lambda n: [b"123"] * len(n), pa.binary(3)),
    "text digests": column("digest", lambda n: ["x"] * len(n)),
    "a null digest": column("digest", first(None), pa.binary(24)),
    "another header": entry("localshapley", b"{}"),
    "a list as header": entry("localshapley", b"[1]"),
    "a broken header": entry("localshapley", b'{"format": '),
    "a deep header": entry("localshapley", DEEP),
    "no header": entry("localshapley", None),
    "a header that is no text": entry("localshapley", b"\xff\xfe"),
    "a null model": header(model=None),
    "a number as support": header(support=3),
    "notes that are text": header(notes="abc"),
    "notes of numbers": header(notes=[1, None]),
    "a note without a code": header(notes=[{"text": "abc", "data": {}}]),
    "a note of numbers": header(notes=[{"code": 1, "text": "abc", "data": {}}]),
    "a note with more": header(notes=[{"code": "a", "text": "abc", "data": {}, "more": 1}]),
    "a null reason": header(stopped=None),
    "a reason with a list of figures": header(stopped={"code": "a", "text": "abc", "data": [1]}),
    "another unit": header(unit="cell"),
    "a random model that is text": header(is_random="yes"),
    "no cost": header(cost=None),
    "cost of text": cost(trainings="many"),
    "a null cost": cost(draws=None),
    "NaN seconds": cost(seconds=float("nan")),
    "negative trainings": cost(trainings=-1),
    "huge trainings": cost(trainings=10**30),
    "unknown cost": cost(what=1),
    "levels of text": header(levels={"global_": "x"}),
    "a list as levels": header(levels=[1, 2]),
    "levels without growth": header(levels={"global_": "0x1"}),
    "a list as skill": header(skill=[1]),
    "half a skill": header(skill={"model": 0.5}),
    "unknown skill": skill(what=1),
    "skill of text": skill(model="good"),
    "NaN skill": skill(guess=float("nan")),
    "huge skill": skill(model=10**400),
    "a negative error of the skill": skill(stderr=-0.1),
    "skill on no test rows": skill(n_tests=0),
    "skill by another score": skill(score="charm"),
    "skill by a list": skill(score=[]),
    "skill beside a number": skill(constant=3),
    "columns of numbers": header(columns=[1]),
    "no sizes": entry("localshapley.support_sizes", None),
    "empty sizes": entry("localshapley.support_sizes", b"[]"),
    "text sizes": entry("localshapley.support_sizes", b'"abc"'),
    "a null size": entry("localshapley.support_sizes", b"[null]"),
    "a NaN size": entry("localshapley.support_sizes", b"[NaN]"),
    "a huge size": entry("localshapley.support_sizes", b"[" + b"9" * 30 + b"]"),
    "a negative size": entry("localshapley.support_sizes", b"[-1]"),
    "sizes beyond the rows": entry("localshapley.support_sizes", b"[100000]"),
    "nested sizes": entry("localshapley.support_sizes", b"[[1], [2]]"),
    "deep sizes": entry("localshapley.support_sizes", DEEP),
    "no word about names": entry("localshapley.has_ids", None),
}
IN_EXACT: dict[str, Change] = {
    "tests beyond the matrix": column("tests", first_in_lists(10**6), LISTS),
    "far beyond the matrix": column("tests", first_in_lists(2**62), LISTS),
    "negative tests": column("tests", first_in_lists(-(2**31)), LISTS),
    "tests that descend": column("tests", lambda lists: [entries[::-1] for entries in lists], LISTS),
    "tests twice": column("tests", lambda lists: [[0] * len(entries) for entries in lists], LISTS),
    "short lists of tests": column("tests", lambda lists: [entries[1:] for entries in lists], LISTS),
    "long lists of tests": column("tests", lambda lists: [[*entries, 44, 44] for entries in lists], LISTS),
    "a null list": column("tests", first(None), LISTS),
    "a null in a list": column("tests", first_in_lists(None), LISTS),
    "text tests": column("tests", lambda lists: [list(map(str, entries)) for entries in lists]),
    "numbers for lists": column("tests", lambda lists: [len(entries) for entries in lists]),
    "NaN for a test row": column("test_values", first_in_lists(float("nan"))),
    "no values for test rows": without("test_values"),
    "a broken origin": entry("localshapley.origin", b'["AA==", "AA==", "AA==", "AA=="]'),
    "an origin of three": entry("localshapley.origin", b'["", "", ""]'),
    "an origin of numbers": entry("localshapley.origin", b"[1, 2, 3, 4]"),
    "a deep origin": entry("localshapley.origin", DEEP),
}
IN_SAMPLED: dict[str, Change] = {
    "spread of different lengths": column("spread", lambda lists: [[1.0] * (i % 3) for i in range(len(lists))]),
    "NaN in the spread": column("spread", lambda lists: [[float("nan")] * 64 for _ in lists]),
    "text in the spread": column("spread", lambda lists: ["x" for _ in lists]),
    "a short history": entry("localshapley.trainings", b"[1]"),
    "a history of text": entry("localshapley.trainings", b'["1", "2"]'),
    "no history": entry("localshapley.trainings", None),
    "half a history": without("history_stderr"),
}

if __name__ == "__main__":
    main(__file__, trial, 1000)
