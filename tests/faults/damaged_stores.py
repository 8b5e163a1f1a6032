"""Damaged and crafted stores: a run refuses them, or ends with the bits that it has without one.

`python tests/faults/damaged_stores.py 500` runs so many trials and counts how they ended.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.engine.run_store import RunStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from faults.batches import main
from faults.damaged_valuations import damaged

FOLDER = Path(tempfile.mkdtemp())
X, Y, X_TEST, Y_TEST, _ = ls.datasets.load("iris")

CHANGES = (
    "UPDATE tests SET digest = NULL WHERE id < 3",
    "UPDATE tests SET crc = 'text'",
    "UPDATE tests SET crc = NULL",
    "UPDATE tests SET id = id + 5000000000",
    "UPDATE tests SET id = -1 - id",
    "UPDATE tests SET digest = 'text' WHERE id = 0",
    "DELETE FROM tests WHERE id % 2",
    "UPDATE coalitions SET scores = NULL",
    "UPDATE coalitions SET scores = 'text' WHERE id % 3 = 0",
    "UPDATE coalitions SET scores = zeroblob(length(scores))",
    "UPDATE coalitions SET scores = zeroblob(0)",
    "UPDATE coalitions SET scores = substr(scores, 2)",
    "UPDATE coalitions SET crc = NULL",
    "UPDATE coalitions SET crc = 'text'",
    "UPDATE coalitions SET key = NULL WHERE id = 5",
    "UPDATE coalitions SET key = 'text' WHERE id = 5",
    "UPDATE coalitions SET fingerprint = 'text'",
    "UPDATE coalitions SET scores = (SELECT scores FROM coalitions WHERE id = 7)",
    "UPDATE fingerprints SET digest = NULL",
    "UPDATE fingerprints SET digest = 'text'",
    "UPDATE fingerprints SET id = 9",
    "UPDATE fingerprints SET created = 'text', updated = NULL, about = NULL",
    "DROP TABLE tests",
    "DROP TABLE coalitions",
    "DELETE FROM fingerprints",
    "CREATE VIEW v AS SELECT * FROM tests",
    "CREATE TRIGGER t AFTER INSERT ON tests BEGIN DELETE FROM coalitions; END",
)
"""Done without the constraints that the tables have."""
REBUILT = ("tests", "coalitions", "fingerprints")
"""Tables that are made again with columns of text."""


def run(store: ls.Store | None = None) -> ls.Valuation:
    model = ls.models.Estimator(DecisionTreeClassifier(random_state=0))
    return ls.value(
        X[:40], Y[:40], X_TEST[:6], Y_TEST[:6], model=model, support=ls.supports.Nearest(4), method="exact", store=store
    )


@cache
def sound() -> tuple[ls.Valuation, bytes]:
    """The result without a store, and a store that holds part of it."""
    path = FOLDER / "sound.db"
    with ls.Store(path, fastest=0) as store:
        run(store)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM coalitions WHERE id % 4 = 0")
    connection.close()
    return run(), path.read_bytes()


def trial(number: int) -> str:
    """Damage a store, before a run or in the middle of it."""
    rng = np.random.default_rng(number)
    path = FOLDER / f"{number}.db"
    expected, content = sound()
    path.write_bytes(content)
    if number % 5 == 0:
        change = CHANGES[number // 5 % len(CHANGES)]
        _change(path, change)
        return _outcome(path, expected, change)
    if number % 25 == 1:
        table = REBUILT[number // 25 % 3]
        _rebuild(path, table)
        return _outcome(path, expected, f"{table} of text")
    harmed = damaged(rng, content)
    if number % 5 == 2:
        return _outcome(path, expected, "bytes in the middle of a run", harmed)
    path.write_bytes(harmed)
    return _outcome(path, expected, "bytes")


def _outcome(path: Path, expected: ls.Valuation, what: str, later: bytes | None = None) -> str:
    try:
        with warnings.catch_warnings(record=True), ls.Store(path, fastest=0) as store, _harmed(path, later):
            found = run(store)
            for look in (store.verify, store.info):
                with suppress(ls.StoreError):
                    look()
    except ls.StoreError as error:
        return "refused" if "\n" not in str(error) and later is None else f"WRONG: {what} ended a run: {error}"
    except Exception as error:
        return f"WRONG: {what} gave {type(error).__name__}: {error}"
    if not (found.values == expected.values).all():
        return f"WRONG: {what} gave other numbers"
    without = any("continued without its store" in note for note in found.notes)
    return "the run continued without its store" if without else "right"


@contextmanager
def _harmed(path: Path, content: bytes | None) -> Iterator[None]:
    """Replace the file of an open store, if it is to be, each time a run has looked into it."""
    sound_look_up = RunStore.look_up

    def look_up(store: RunStore, coalitions: Any) -> Any:
        found = sound_look_up(store, coalitions)
        path.write_bytes(content)
        store._store._file.disconnect()
        return found

    RunStore.look_up = sound_look_up if content is None else look_up
    try:
        yield
    finally:
        RunStore.look_up = sound_look_up


def _change(path: Path, statement: str) -> None:
    """Change a store in a way that its constraints would not allow."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '         ')")
    version = connection.execute("PRAGMA schema_version").fetchone()[0]
    connection.execute(f"PRAGMA schema_version = {version + 1}")
    connection.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.execute("PRAGMA writable_schema = ON")
    for column in ("digest BLOB", "about TEXT", "created REAL", "updated REAL", "crc INTEGER", "fingerprint INTEGER",
                   "key BLOB", "scores BLOB"):  # fmt: skip
        connection.execute(f"UPDATE sqlite_master SET sql = replace(sql, '{column}         ', '{column} NOT NULL')")
    connection.close()


def _rebuild(path: Path, table: str) -> None:
    """Make a table again in which all columns are text."""
    connection = sqlite3.connect(path, isolation_level=None)
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    connection.execute(f"ALTER TABLE {table} RENAME TO old")
    connection.execute(f"CREATE TABLE {table} ({', '.join(f'{name} TEXT' for name in columns)})")
    kept = ", ".join("digest" if name == "digest" else f"CAST({name} AS TEXT)" for name in columns)
    connection.execute(f"INSERT INTO {table} SELECT {kept} FROM old")
    connection.execute("DROP TABLE old")
    connection.close()


if __name__ == "__main__":
    main(os.path.abspath(__file__), trial, 500)
