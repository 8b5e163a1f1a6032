"""Exact neighbour search against others, and against the bare matrix product that none of them can avoid.

    python benchmarks/search.py                          # 200,000 rows × 64 features, 4,000 queries
    python benchmarks/search.py --rows 1000000 --queries 10000
    python benchmarks/search.py --device cuda --values   # ours on the GPU too, and values of neighbours, end to end
    pip install faiss-cpu usearch                        # to compare with these too

All run in one process and take turns; a time is the best of the repeats, and the ratio is to the product in single
precision (sgemm) of all rows and queries, by blocks, on the same cores. On a busy machine go by the CPU seconds. Every
search's neighbours are compared with ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from localshapley.search import nearest
from localshapley.search.approximate import roughly_nearest_rows

PRODUCT, OURS = "bare product (sgemm)", "localshapley"


def table(n_rows: int, n_queries: int, n_features: int) -> tuple[Any, Any]:
    """Clusters in a space of few dimensions with noise: neither all alike nor trivially apart."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(50, n_features)).astype(np.float32)
    X = rng.standard_normal((n_rows + n_queries, n_features), dtype=np.float32)
    X += 2 * centres[rng.integers(50, size=len(X))]
    return X[:n_rows], X[n_rows:]


def product(X: Any, queries: Any) -> Callable[[], Any]:
    """The bare product, in blocks whose result stays where it is."""
    out = np.empty((len(queries), 4096), dtype=np.float32)

    def run() -> None:
        for start in range(0, len(X), 4096):
            block = X[start : start + 4096]
            np.matmul(queries, block.T, out=out[:, : len(block)])

    return run


def rivals(X: Any, queries: Any, k: int) -> dict[str, Callable[[], Any]]:
    """Other exact searches that are installed; each returns row numbers."""
    brute = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X)
    found: dict[str, Callable[[], Any]] = {
        "scikit-learn, brute force": lambda: brute.kneighbors(queries, return_distance=False)
    }
    if find_spec("faiss"):
        import faiss

        index = faiss.IndexFlatL2(X.shape[1])
        index.add(X)
        found["faiss, flat index"] = lambda: index.search(queries, k)[1]
        found["localshapley, approximate"] = lambda: np.array(roughly_nearest_rows(X, queries, k, "euclidean", None)[0])
    if find_spec("usearch"):
        from usearch.index import search

        found["usearch, exact"] = lambda: search(X, queries, k, "l2sq", exact=True).keys
    return found


def values(X: Any, queries: Any, k: int) -> Callable[[], None]:
    """The values of a neighbours model whose supports are the `k` nearest rows, end to end."""
    import localshapley as ls

    rng = np.random.default_rng(1)
    y, y_test = rng.integers(5, size=len(X)), rng.integers(5, size=len(queries))
    model = KNeighborsClassifier(max(k // 2, 1))
    ls.value(X[:5000], y[:5000], queries[:100], y_test[:100], model=model)  # compiles

    def run() -> None:
        ls.value(X, y, queries, y_test, model=model)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=4_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu", help="also search there, such as on cuda")
    parser.add_argument("--values", action="store_true", help="also time the values of a neighbours model, end to end")
    parser.add_argument("--without", nargs="*", default=[], help="first words of searches to leave out")
    arguments = parser.parse_args()
    X, queries = table(arguments.rows, arguments.queries, arguments.features)
    k = arguments.k
    runs = {PRODUCT: product(X, queries), OURS: lambda: nearest(X, queries, k, device="cpu").rows}
    if arguments.device != "cpu":
        runs[f"{OURS}, {arguments.device}"] = lambda: nearest(X, queries, k, device=arguments.device).rows
    if arguments.values:
        runs["values, end to end"] = values(X, queries, k)
    runs |= rivals(X, queries, k)
    runs = {name: run for name, run in runs.items() if not any(name.startswith(word) for word in arguments.without)}
    seconds, cpu, found = dict.fromkeys(runs, np.inf), dict.fromkeys(runs, np.inf), {}
    for _ in range(arguments.repeats):
        for name, run in runs.items():
            started, worked = perf_counter(), process_time()
            found[name] = run()
            seconds[name] = min(seconds[name], perf_counter() - started)
            cpu[name] = min(cpu[name], process_time() - worked)
    print(f"{len(X):,} rows × {X.shape[1]}, {len(queries):,} queries, k = {k}, single precision")
    print(f"  {'':<26}{'seconds':>9}{'ratio':>7}{'CPU seconds':>13}{'ratio':>7}")
    for name in runs:
        ratios = [times[name] / times.get(PRODUCT, np.nan) for times in (seconds, cpu)]
        print(f"  {name:<26}{seconds[name]:9.2f}{ratios[0]:7.2f}{cpu[name]:13.2f}{ratios[1]:7.2f}{wrong(found, name)}")


def wrong(found: dict[str, Any], name: str) -> str:
    """How many queries have other neighbours than ours."""
    if found[name] is None or OURS not in found:
        return ""
    ours = np.sort(found[OURS], axis=1)
    n = int((np.sort(np.asarray(found[name]).astype(np.int64), axis=1) != ours).any(axis=1).sum())
    return f"  {n:,} queries with other rows" if n else "  the same rows"


if __name__ == "__main__":
    main()
