"""Stores whose tables hold what no store ever wrote."""

from __future__ import annotations

import pytest

from faults import damaged_stores
from localshapley.engine.score_store import Store
from localshapley.engine.store_file import StoreError
from tests.engine.test_store import ONE, attempt, batch, filled, never_wrong, rows_of


@pytest.mark.parametrize("table", ["tests", "coalitions", "fingerprints"])
def test_tables_of_another_make_are_refused(tmp_path, table):
    path = filled(tmp_path / "s")
    damaged_stores._rebuild(path, table)
    with pytest.raises(StoreError, match=rf"is damaged \('{table}' is not as a store has it\)"):
        Store(path)


@pytest.mark.parametrize("change", damaged_stores.CHANGES)
def test_nothing_but_a_store_error_whatever_the_tables_hold(tmp_path, change):
    path = filled(tmp_path / "s")
    damaged_stores._change(path, change)
    store = attempt(Store, path)
    if isinstance(store, Store):
        for seed in range(4):
            assert never_wrong(attempt(store.lookup, ONE, *batch(seed)[:3]), batch(seed)[3])
            attempt(store.add, ONE, "a model", *batch(seed))
        attempt(store.info)
        store.verify()
        store.close()


def test_test_rows_beyond_what_can_be_numbered(tmp_path):
    path = filled(tmp_path / "s")
    rows_of(path, "DELETE FROM tests WHERE id < 100")
    rows_of(path, f"INSERT INTO tests VALUES ({2**31 - 2}, x'00', 0)")
    with Store(path) as store, pytest.raises(StoreError, match="a number is out of range"):
        store.add(ONE, "a model", *batch(0))
