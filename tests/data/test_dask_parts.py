"""Parts on the workers of a Dask cluster stay where they are."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from localshapley.data import dask_jobs
from localshapley.data.row_sources import parts_of

distributed = pytest.importorskip("dask.distributed", reason="Dask is an extra")
N, SIZE = 4000, 400
TABLE = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 5)), columns=list("abcde")).assign(label=np.arange(N) % 3)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("kind", ["label inside", "label beside", "array"])
@pytest.mark.parametrize("idle", [True, False])
def test_each_part_is_looked_at_by_the_worker_that_has_it(client, kind, idle):
    """Also if all parts are on one worker, and the other has nothing to do."""
    lying, where = parts_on(client, sorted(client.ncores())[:1] if idle else None, kind)
    assert lying.n_rows == N
    assert len(set(where.values())) == (1 if idle else 2)
    assert dict(lying.scan(_who)) == where
    assert dict(lying.scan(_who, labels=True)) == where
    assert lying.fold(_who_in_order) == list(where.items())
    lying.gather(np.arange(0, N, 100))
    assert sum(client.run(_rows_that_came).values()) == 0


def parts_on(client, workers, kind):
    """Parts of the table on some workers, and the worker that has each, by its first row."""
    import dask.array as da
    import dask.dataframe as dd

    rows = da.from_array(TABLE[list("abcde")].to_numpy(), chunks=(SIZE, 5))
    table = client.persist(rows if kind == "array" else dd.from_pandas(TABLE, npartitions=N // SIZE), workers=workers)
    distributed.wait(table)
    found = {key[1] * SIZE: places for key, places in client.who_has(distributed.futures_of(table)).items()}
    where = {start: place for start, (place,) in sorted(found.items())}
    if kind == "label inside":
        return parts_of(table, "label"), where
    if kind == "label beside":
        return parts_of(table[list("abcde")], table["label"]), where
    return parts_of(table, TABLE["label"].to_numpy()), where


def _who(part):
    assert part.X.shape == (SIZE, 5)
    return part.start, distributed.get_worker().address


def _who_in_order(part, carried):
    return [*(carried or []), _who(part)]


def _rows_that_came(dask_worker):
    """Bytes of parts that came from other workers; what functions are called with goes to all of them."""
    return sum(
        n_bytes
        for one in dask_worker.transfer_incoming_log
        for key, n_bytes in one["keys"].items()
        if isinstance(key, tuple)
    )


def test_parts_of_a_worker_that_dies_are_looked_at_by_another(client, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_jobs, "BETWEEN_LOOKS", 0.5)
    lying, where = parts_on(client, None, "label inside")
    sums = dict(lying.scan(_sum_unless_first, tmp_path / "died", labels=True))
    assert (tmp_path / "died").exists()
    assert sorted(sums) == sorted(where)
    assert sum(sums.values()) == pytest.approx(TABLE["a"].sum())


def _sum_unless_first(part, died):
    if part.start == 0 and not died.exists():
        died.touch()
        os._exit(1)
    return part.start, part.X["a"].sum()
