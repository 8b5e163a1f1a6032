"""Values of rows that do not fit into memory: Parquet files in a process with a limit, and on a Dask cluster.

    python benchmarks/larger_than_memory.py                           # 20 million rows x 64 (5 GB), at most 4 GB
    python benchmarks/larger_than_memory.py --rows 1000000 --limit 2  # in a minute

The rows are written to a folder in parts, which is removed at the end. A process that may have no more than the limit
(of address space: RLIMIT_AS) values them; then two Dask workers, each with half of the limit, do the same. Both say how
long it took, how much CPU time, and how much memory they had at most. `--in-memory` also reads all rows into memory and
compares the bits; `--ways dask` leaves the other way out.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

AT_ONCE = 500_000
"""Rows of a file."""


def write_rows(folder: Path, n_rows: int, n_features: int) -> None:
    """Rows of two classes as Parquet, some at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, start in enumerate(range(0, n_rows, AT_ONCE)):
        rng = np.random.default_rng(number)
        X = rng.standard_normal((min(AT_ONCE, n_rows - start), n_features), dtype=np.float32)
        y = (X[:, :4].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(np.int8)
        columns = {f"x{j}": X[:, j] for j in range(n_features)} | {"label": y}
        # Random numbers do not shrink: packing them would only take time.
        pq.write_table(
            pa.table(columns), folder / f"part-{number:04}.parquet", row_group_size=AT_ONCE // 4,
            compression="none", use_dictionary=False,
        )  # fmt: skip


def test_rows(n_tests: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the same kind."""
    rng = np.random.default_rng(2**31)
    X = rng.standard_normal((n_tests, n_features), dtype=np.float32)
    return X, (X[:, :4].sum(axis=1) + rng.normal(size=n_tests) > 0).astype(np.int8)


def run(way: str, folder: str, n_tests: int, n_features: int, limit: float) -> dict:
    """In a process of its own: value the rows, and say what it took."""
    import localshapley as ls

    X_test, y_test = test_rows(n_tests, n_features)
    from sklearn.neighbors import KNeighborsClassifier

    settings = {"model": KNeighborsClassifier(5), "progress": False}
    ls.value(X_test, y_test, X_test[:20], y_test[:20], **settings)  # what is compiled is there
    before = _peak()
    X, y = folder, "label"
    if way == "dask":
        return _on_dask(folder, X_test, y_test, settings, limit)
    if way == "memory":
        import pandas as pd

        table = pd.read_parquet(folder)
        y = table.pop("label").to_numpy()
        X = table.to_numpy()
    else:
        resource.setrlimit(resource.RLIMIT_AS, (int(limit * 2**30),) * 2)
    started, used = perf_counter(), process_time()
    v = ls.value(X, y, X_test, y_test, **settings)
    return _told(v, perf_counter() - started, process_time() - used, [_peak()], before)


def _on_dask(folder: str, X_test, y_test, settings: dict, limit: float) -> dict:
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    import localshapley as ls

    limits = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": int(limit / 2 * 2**30)}
    with LocalCluster(**limits, dashboard_address=None) as cluster, Client(cluster) as client:
        table = dd.read_parquet(folder, split_row_groups=1)
        started, used = perf_counter(), process_time() + sum(client.run(process_time).values())
        v = ls.value(table, "label", X_test, y_test, **settings)
        seconds, cpu = perf_counter() - started, process_time() + sum(client.run(process_time).values()) - used
        moved = sum(client.run(_received).values())
        return _told(v, seconds, cpu, list(client.run(_peak).values()), 0) | {"moved": moved}


def _told(v, seconds: float, cpu: float, peaks: list[int], before: int) -> dict:
    some = np.flatnonzero(v.values)
    rows = some if v.ids is None else v.ids.to_numpy()[some]
    return {
        "seconds": seconds, "cpu": cpu, "peaks": peaks, "before": before,
        "n_rows": v.among or len(v.values), "kept": len(v.values),
        "rows": rows.tolist(), "values": [value.hex() for value in v.values[some].tolist()],
    }  # fmt: skip


def _received(dask_worker) -> int:
    """Bytes that a worker got from the other."""
    return sum(one["total"] for one in dask_worker.transfer_incoming_log)


def _peak() -> int:
    """Most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=4.0, help="GiB")
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--ways", nargs="+", choices=["parts", "dask"], default=["parts", "dask"])
    parser.add_argument("--folder", type=Path, default=None, help="where to put the rows, and to leave them")
    parser.add_argument("--run", nargs=2, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run(*given.run, given.tests, given.features, given.limit)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        if not any(folder.glob("*.parquet")):
            folder.mkdir(exist_ok=True)
            write_rows(folder, given.rows, given.features)
        n_bytes = sum(file.stat().st_size for file in folder.glob("*.parquet"))
        print(
            f"{given.rows:,} rows x {given.features}, {n_bytes / 2**30:.1f} GiB as Parquet, {given.tests:,} test rows"
        )
        found = {}
        for way in [*given.ways, *(["memory"] if given.in_memory else [])]:
            command = [sys.executable, __file__, "--run", way, str(folder), "--tests", str(given.tests)]
            command += ["--features", str(given.features), "--limit", str(given.limit)]
            found[way] = one = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            where = {
                "parts": f"one process, at most {given.limit:g} GiB",
                "dask": f"two Dask workers, at most {given.limit / 2:g} GiB each",
                "memory": "all rows in memory",
            }[way]
            before = f" ({one['before'] / 2**30:.2f} before)" if one["before"] else ""
            peaks = " and ".join(f"{peak / 2**30:.2f}" for peak in one["peaks"])
            moved = f"  {one['moved'] / 2**30:.2f} GiB moved between workers" if "moved" in one else ""
            print(
                f"  {where:<42}{one['seconds']:8.1f} s  {one['cpu']:8.1f} s CPU  "
                f"{one['n_rows'] / one['seconds']:12,.0f} rows/s  peak {peaks} GiB{before}  "
                f"{one['kept']:,} values kept{moved}",
                flush=True,
            )
        first = next(iter(found.values()))
        same = all(one["rows"] == first["rows"] and one["values"] == first["values"] for one in found.values())
        print(f"  same bits in all runs: {same}")


if __name__ == "__main__":
    main()
