"""What a valuation of neighbours takes beside the matrix product that it cannot avoid, whichever way its support came.

    python benchmarks/walk.py                       # 200,000 rows × 64 features, 2,000 test rows
    python benchmarks/walk.py --rows 1000000

All ways take turns in one process; a time is the best of the repeats, and the ratio is to the product in single
precision (sgemm) of all rows and test rows, by blocks, on the same cores. On a busy machine go by the CPU seconds.
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from knn import clusters
from search import product

MOST = 1.5
"""Times as long as the product that a valuation may take."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--tests", type=int, default=2000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    data = clusters(given.rows, given.tests, given.features, dtype=np.float32)
    model = KNeighborsClassifier(5)
    ways = {
        "bare product (sgemm)": product(data[0], data[2]),
        "value, support by default": lambda: ls.value(*data, model=model, progress=False),
        "value, Nearest(10) given": lambda: ls.value(
            *data, model=model, support=ls.supports.Nearest(10), progress=False
        ),
    }
    best, cpu = dict.fromkeys(ways, np.inf), dict.fromkeys(ways, np.inf)
    for run in ways.values():
        run()  # compiled, in the cache
    for _ in range(given.repeats):
        for name, run in ways.items():
            started, used = perf_counter(), process_time()
            run()
            best[name] = min(best[name], perf_counter() - started)
            cpu[name] = min(cpu[name], process_time() - used)
    bare = "bare product (sgemm)"
    print(
        f"{given.rows:,} rows × {given.features} features, {given.tests:,} test rows, K = 5; aim: {MOST} × the product"
    )
    for name, seconds in best.items():
        ratios = f"{seconds / best[bare]:5.2f} × the product, {cpu[name] / cpu[bare]:.2f} × its CPU seconds"
        print(f"  {name:<28}{1000 * seconds:8.0f} ms   {ratios}")


if __name__ == "__main__":
    main()
