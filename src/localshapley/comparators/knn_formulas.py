"""KNN-Shapley: values over the whole training set in closed form, for two models that allow it.

The model is a nearest-neighbour vote whatever model the user has in mind, so these are baselines: quick, global and
exact for that vote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.extmath import row_norms

from localshapley.arrays import Floats, Indices, Ints, Masks, offsets
from localshapley.coalitions.jackknife_blocks import JackknifeBlocks
from localshapley.data.rows import known_table
from localshapley.errors import InvalidArgumentError
from localshapley.models.compiled import plain
from localshapley.models.input_checks import CheckedInput, check
from localshapley.models.task import Task
from localshapley.notes import Note
from localshapley.problem.table_notes import METRICS, note_on_spread
from localshapley.runtime.argument_checks import check_n_jobs, check_number, check_whole
from localshapley.runtime.compiling import Stopwatch, announcing_compilation
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.runtime.threads import in_threads, threads_for, unthreaded_blas
from localshapley.search import within
from localshapley.search.distances import check_metric, distances, metric_of
from localshapley.valuation import Cost, Facts, FinalEstimate, GameCounts, Players, Valuation
from localshapley.valuation.record import recorded

DOUBT = 1e-12
"""Distances that differ by less than this share of the rows' squared lengths are computed again, exactly."""


@recorded
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
    max_distances: int = 2**22,
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
    max_distances : int
        Distances in memory at a time, for each thread.

    References
    ----------
    R. Jia et al., Efficient task-specific data valuation for nearest neighbor algorithms, PVLDB 12 (2019).

    Examples
    --------
    >>> from localshapley.comparators import knn_shapley
    >>> knn_shapley([[0.0], [1.0], [5.0]], [0, 0, 1], [[0.2]], [0], n_neighbors=1).values
    array([0.5, 0.5, 0. ])
    """
    from localshapley.kernels.knn_shapley import add_knn_values

    check_whole("n_neighbors", n_neighbors)
    checked, (name, params) = _check(X, y, X_test, y_test, metric, metric_params, n_jobs)
    task, n_neighbors = checked.task, int(n_neighbors)
    codes, truths = plain(task.codes, np.int64), plain(task.y_test, np.int64)
    index = np.arange(len(codes), dtype=np.uint64)
    mask = np.uint64(2 ** int(index[-1]).bit_length() - 1)
    # Products of centred rows give distances fast; those too close to call are computed again from the rows.
    by_products = name == "euclidean" and not sparse.issparse(task.X)
    rows, test_rows = _plain_rows(task) if by_products else (np.empty((len(codes), 0)), np.empty((len(truths), 0)))
    centre = rows.mean(axis=0)
    centred = rows - centre
    norms = row_norms(centred, squared=True)
    share = 1 / np.maximum(np.arange(1, len(codes) + 1), n_neighbors)

    def work(tests: slice, bundle: Ints, sums: Floats) -> None:
        some, doubt = test_rows[tests], 0.0
        if by_products:
            away = euclidean_distances(some - centre, centred, Y_norm_squared=norms, squared=True)
            doubt = DOUBT * (norms.max() + row_norms(some - centre, squared=True).max())
        else:
            away = plain(distances(task.X_test[tests], task.X, name, params))
        # The leading bits of a distance and, in the last ones, the index make a key that sorts fast.
        keys = (_ordered_bits(away) & ~mask) | index
        keys.sort(axis=1)
        exact = np.empty(len(codes))
        labels = codes, truths[tests]
        add_knn_values(away, keys, int(mask), doubt, (rows, some), labels, share, exact, bundle, sums)

    return _over_blocks(work, checked, f"KNN-Shapley, K={n_neighbors}", n_jobs, progress, max_distances)


@recorded
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
    max_distances: int = 2**22,
) -> Valuation:
    """Global Shapley values for a vote of all rows within a radius, exactly (Wang et al., 2023).

    The score of a coalition on a test row is the share of its members within the radius that have the row's label,
    and `1/classes` where there are none.

    Parameters
    ----------
    X, y, X_test, y_test
        As in `value`; labels are classes.
    radius : float
    metric, metric_params, n_jobs, progress, max_distances
        As in `knn_shapley`.

    References
    ----------
    J. T. Wang et al., Threshold KNN-Shapley: a linear-time and privacy-friendly approach to data valuation,
    NeurIPS (2023).

    Examples
    --------
    >>> from localshapley.comparators import threshold_knn_shapley
    >>> threshold_knn_shapley([[0.0], [1.0], [5.0]], [0, 1, 1], [[0.2]], [0], radius=2).values
    array([ 0.5, -0.5,  0. ])
    """
    from localshapley.kernels.knn_shapley import add_threshold_values

    check_number("radius", radius, above=0)
    checked, (name, params) = _check(X, y, X_test, y_test, metric, metric_params, n_jobs)
    task = checked.task
    codes, truths = plain(task.codes, np.int64), plain(task.y_test, np.int64)

    def work(tests: slice, bundle: Ints, sums: Floats) -> None:
        found = within(task.X, task.X_test[tests], radius, metric=name, metric_params=params)
        indptr, near = offsets(np.array([len(r) for r in found])), np.concatenate(found)
        add_threshold_values(indptr, near, codes, truths[tests], 1 / (codes.max() + 1), bundle, sums)

    return _over_blocks(work, checked, f"threshold KNN-Shapley, radius={radius:g}", n_jobs, progress, max_distances)


def _check(
    X: Any, y: Any, X_test: Any, y_test: Any, metric: Any, metric_params: dict[str, Any] | None, n_jobs: int | None
) -> tuple[CheckedInput, tuple[Any, dict[str, Any]]]:
    """Check the arguments; returns them with the metric."""
    check_n_jobs(n_jobs)
    if isinstance(metric, str) and metric == "precomputed":
        raise InvalidArgumentError(
            "metric='precomputed' is not supported by this function; give feature rows and a metric."
        )
    if metric_params is not None and not isinstance(metric_params, dict):
        raise InvalidArgumentError(f"metric_params must be a dict or None; got {metric_params!r}.")
    labels = np.asarray(y)
    if labels.dtype.kind == "f" and (labels[np.isfinite(labels)] % 1 != 0).any():
        raise InvalidArgumentError("y holds fractions; this function values rows by classes. Use value() for numbers.")
    model = KNeighborsClassifier(metric=metric, metric_params=metric_params)
    checked = check(X, y, X_test, y_test, model=model, least_classes=1)
    if isinstance(checked.task.X, pd.DataFrame):
        raise InvalidArgumentError("X has columns that are not numbers; encode them, or drop them.")
    found = metric_of(model)
    check_metric(checked.task.X, *found)

    def remarks() -> list[Note]:
        scale = note_on_spread(checked.task.X, known_table(X), "KNN-Shapley", "StandardScaler()")
        return [*checked.remarks(), *([scale] if scale and found[0] in METRICS else [])]

    return replace(checked, remarks=remarks), found


def _plain_rows(task: Task) -> tuple[Floats, Floats]:
    return plain(task.X), plain(task.X_test)


def _ordered_bits(away: Floats) -> Masks:
    """Bits that sort as the numbers do; those of non-negative numbers already do."""
    bits = away.view(np.uint64)
    if away.min(initial=0.0) < 0:
        negative = away < 0
        bits = np.where(negative, ~bits, bits | np.uint64(2**63))
    return bits


def _over_blocks(
    work: Callable[[slice, Ints, Floats], None],
    checked: CheckedInput,
    model: str,
    n_jobs: int | None,
    progress: ProgressSetting,
    max_distances: int,
) -> Valuation:
    """Add up the values of blocks of test rows, in order, however many threads there are."""
    watch = Stopwatch()
    n_rows, n_tests = checked.task.X.shape[0], checked.task.X_test.shape[0]
    size = max(1, min(max_distances // n_rows, 128))
    blocks = [slice(start, min(start + size, n_tests)) for start in range(0, n_tests, size)]
    bundles = JackknifeBlocks(np.arange(n_tests), n_rows)
    values, squares, by_bundle = np.zeros(n_rows), np.zeros(n_rows), np.zeros((bundles.n, n_rows))
    n_threads = threads_for(n_jobs)

    def added_up(tests: slice) -> tuple[Indices, Floats]:
        """The bundles that test rows are in, and the sums that kernels write: no more rows than there are distances."""
        met, bundle = np.unique(bundles.of_test[tests], return_inverse=True)
        sums = np.zeros((2 + len(met), n_rows))
        work(tests, bundle, sums)
        return met, sums

    with (
        announcing_compilation(progress),
        Progress(progress, n_tests, "valuing by test rows") as bar,
        unthreaded_blas(),  # blocks already run in parallel
    ):
        for start in range(0, len(blocks), n_threads):
            some = blocks[start : start + n_threads]
            for met, sums in in_threads(added_up, some, n_threads):
                values += sums[0]
                squares += sums[1]
                by_bundle[met] += sums[2:]
            bar.advance(sum(block.stop - block.start for block in some))
    everyone: Ints = np.full(n_tests, n_rows)
    return Valuation(
        estimate=FinalEstimate(values, np.zeros(n_rows), spread_tests=bundles.spread(by_bundle[None], squares)),
        players=Players(checked.ids, digests=checked.digests()),
        counts=GameCounts(everyone, np.full(n_rows, n_tests)),
        facts=Facts(model=model, score="confidence", support="Everything()", method="closed form"),
        cost=Cost(f"{model} (closed form)", 0, 0, 0, 0, 0, watch.seconds, compile_seconds=watch.compile_seconds),
        stopped=Note("closed-form", "closed form"),
        notes=checked.notes,
    )
