"""Many rows through everything that people do with values: seconds, CPU seconds and peak memory of each step.

    python benchmarks/long_inputs.py [--rows 1000000] [--by-value]

Rows have 8 columns, a twentieth of the labels is wrong, and 1,000 test rows decide. `suspects` with the rows asks a
forest and a support vector machine about each of them, which takes most of the time; `--by-value` leaves it out.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from localshapley.report import write_report


def table(n_rows: int, rng: Any) -> tuple[Any, Any]:
    """Two classes on either side of a plane."""
    X = rng.standard_normal((n_rows, 8), dtype=np.float32)
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def step(name: str, work: Callable[[], Any]) -> Any:
    """Do one step and print what it took."""
    started, worked = perf_counter(), process_time()
    found = work()
    seconds, cpu = perf_counter() - started, process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  {name:<22}{seconds:9.2f}{cpu:13.2f}{peak:16.2f}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--by-value", action="store_true")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = table(arguments.rows, rng), table(1000, rng)
    y[rng.random(len(y)) < 0.05] ^= 1
    model = KNeighborsClassifier()
    ls.value(X[:30_000], y[:30_000], X_test[:50], y_test[:50], model=model)  # compiles
    print(f"{len(y):,} rows\n  {'':<22}{'seconds':>9}{'CPU seconds':>13}{'peak GiB so far':>16}")
    v = step("value", lambda: ls.value(X, y, X_test, y_test, model=model))
    step("to_frame", v.to_frame)
    step("summary", v.summary)
    with tempfile.TemporaryDirectory() as folder:
        kept, page = Path(folder, "values.parquet"), Path(folder, "report.html")
        step("save", lambda: v.save(kept))
        step("load", lambda: ls.load(kept))
        step("report", lambda: write_report(page, v, X, y=y))
        print(f"  the file has {kept.stat().st_size / 1e6:.1f} MB, the page {page.stat().st_size / 1e6:.2f} MB")
    step("suspects, by value", lambda: ls.audit.label_errors(None, y, values=v))
    if not arguments.by_value:
        found = step("suspects, with X", lambda: ls.audit.label_errors(X, y))
        print(f"  {len(found.table):,} labels look wrong")


if __name__ == "__main__":
    main()
