"""KNN-Shapley: values over the whole training set in closed form, for two models that allow it.

The model is a nearest-neighbour vote whatever model the user has in mind, so these are baselines: quick, global and
exact for that vote.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.metrics import euclidean_distances, pairwise_distances
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.utils.extmath import row_norms
from threadpoolctl import threadpool_limits

from localshapley.arrays import Floats, Ints, offsets
from localshapley.distances import metric_of
from localshapley.models.compiled import plain
from localshapley.problem import Checked, check
from localshapley.progress import Progress, ProgressSetting
from localshapley.supports.base import check_positive, check_whole
from localshapley.valuation import Cost, Valuation

BLOCK = 2**22
"""Distances in memory at a time, for each thread."""


def knn_shapley(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    n_neighbors: int = 5,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
) -> Valuation:
    """Global Shapley values for a K-nearest-neighbour vote, exactly (Jia et al., 2019).

    The score of a coalition on a test row is the number of its K nearest members that have the row's label, divided
    by K even where there are fewer members. Values are sums over the test rows.

    Parameters
    ----------
    X, y, X_test, y_test
        As in `value`; labels are classes.
    n_neighbors : int, default=5
    metric, metric_params
        As in `sklearn.neighbors.KNeighborsClassifier`.
    n_jobs : int, optional
        Threads; by default one for each core.
    progress : bool or callable, optional
        As in `value`; it counts test rows.

    References
    ----------
    R. Jia et al., Efficient task-specific data valuation for nearest neighbor algorithms, PVLDB 12 (2019).

    Examples
    --------
    >>> from localshapley.baselines import knn_shapley
    >>> knn_shapley([[0.0], [1.0], [5.0]], [0, 0, 1], [[0.2]], [0], n_neighbors=1).values
    array([0.5, 0.5, 0. ])
    """
    from localshapley.kernels.knn_shapley import add_knn_values

    check_whole("knn_shapley", "n_neighbors", n_neighbors)
    model = KNeighborsClassifier(n_neighbors, metric=metric, metric_params=metric_params)
    checked = check(X, y, X_test, y_test, model=model)
    task = checked.task
    measure = _distances_to(task.X, *metric_of(model))
    codes, truths = plain(task.codes, np.int64), plain(task.y_test, np.int64)

    index = np.arange(len(codes), dtype=np.uint64)
    mask = np.uint64(2 ** int(index[-1]).bit_length() - 1)

    def work(tests: slice) -> Floats:
        values = np.zeros(len(codes))
        away = plain(measure(task.X_test[tests]))
        # Distances are not negative, so their bits sort as they do; the last bits make room for the index.
        keys = (away.view(np.uint64) & ~mask) | index
        keys.sort(axis=1)
        add_knn_values(away, keys, int(mask), codes, truths[tests], n_neighbors, values)
        return values

    return _over_blocks(work, checked, f"KNN-Shapley, K={n_neighbors}", n_jobs, progress)


def threshold_knn_shapley(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    radius: float,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    progress: ProgressSetting = None,
) -> Valuation:
    """Global Shapley values for a vote of all rows within a radius, exactly (Wang et al., 2023).

    The score of a coalition on a test row is the share of its members within the radius that have the row's label,
    and `1/classes` where there are none.

    Parameters
    ----------
    X, y, X_test, y_test
        As in `value`; labels are classes.
    radius : float
    metric, metric_params, n_jobs, progress
        As in `knn_shapley`.

    References
    ----------
    J. T. Wang et al., Threshold KNN-Shapley: a linear-time and privacy-friendly approach to data valuation,
    NeurIPS (2023).

    Examples
    --------
    >>> from localshapley.baselines import threshold_knn_shapley
    >>> threshold_knn_shapley([[0.0], [1.0], [5.0]], [0, 1, 1], [[0.2]], [0], radius=2).values
    array([ 0.5, -0.5,  0. ])
    """
    from localshapley.kernels.knn_shapley import add_threshold_values

    check_positive("threshold_knn_shapley", "radius", radius)
    model = KNeighborsClassifier(metric=metric, metric_params=metric_params)
    checked = check(X, y, X_test, y_test, model=model)
    task = checked.task
    name, params = metric_of(model)
    search = NearestNeighbors(metric=name, metric_params=params or None).fit(task.X)
    codes, truths = plain(task.codes, np.int64), plain(task.y_test, np.int64)

    def work(tests: slice) -> Floats:
        values = np.zeros(len(codes))
        found = search.radius_neighbors(task.X_test[tests], radius=radius, return_distance=False)
        indptr, rows = offsets(np.array([len(r) for r in found])), plain(np.concatenate(found), np.int64)
        add_threshold_values(indptr, rows, codes, truths[tests], 1 / (codes.max() + 1), values)
        return values

    return _over_blocks(work, checked, f"threshold KNN-Shapley, radius={radius:g}", n_jobs, progress)


def _distances_to(X: Any, metric: Any, params: dict[str, Any]) -> Callable[[Any], Floats]:
    """A function that measures rows against all of `X`, in any scale that keeps the order."""
    if metric == "euclidean":
        norms = row_norms(X, squared=True)
        return lambda rows: euclidean_distances(rows, X, Y_norm_squared=norms, squared=True)
    return lambda rows: pairwise_distances(rows, X, metric=metric, **params)


def _over_blocks(
    work: Callable[[slice], Floats], checked: Checked, model: str, n_jobs: int | None, progress: ProgressSetting
) -> Valuation:
    """Add up the values of blocks of test rows, in their order whatever the threads."""
    started = perf_counter()
    n_rows, n_tests = checked.task.X.shape[0], checked.task.X_test.shape[0]
    size = max(1, min(BLOCK // n_rows, 128))
    blocks = [slice(start, min(start + size, n_tests)) for start in range(0, n_tests, size)]
    values = np.zeros(n_rows)
    n_threads = cpu_count() if n_jobs is None else effective_n_jobs(n_jobs)
    with (
        Progress(progress, n_tests, "valuing by test rows") as bar,
        threadpool_limits(1),  # blocks are done side by side already
        ThreadPoolExecutor(n_threads) as threads,
    ):
        for start in range(0, len(blocks), n_threads):
            some = blocks[start : start + n_threads]
            for part in threads.map(work, some):
                values += part
            bar.advance(sum(block.stop - block.start for block in some))
    everyone: Ints = np.full(n_tests, n_rows)
    return Valuation(
        values=values,
        stderr=np.zeros(n_rows),
        cost=Cost(f"{model} (closed form)", 0, 0, 0, 0, 0, perf_counter() - started),
        support_sizes=everyone,
        n_tests=np.full(n_rows, n_tests),
        method="closed form",
        model=model,
        score="confidence",
        support="Everything()",
        stopped="closed form",
        notes=checked.notes,
        ids=checked.ids,
    )
