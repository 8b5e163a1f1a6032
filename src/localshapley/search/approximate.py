"""Nearest rows that may miss some, through an index of cells; how many were found is measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Indices
from localshapley.errors import InvalidArgumentError
from localshapley.notes import Note
from localshapley.search.bounds import sample_of
from localshapley.search.distances import measure
from localshapley.search.nearest_rows import as_rows, is_euclidean, metric_for
from localshapley.search.product_scan import EUCLIDEAN, nearest_by_products
from localshapley.search.results import best_of

FEWEST_ROWS = 10_000
"""Of fewer rows, an exact search is as fast."""
SHARE_SEEN = 1 / 20
"""Share of the cells that are looked into for each test row."""
MEASURED = 200
"""Test rows that are searched exactly as well, to see how many of their nearest rows were found."""


def roughly_nearest_rows(
    X: Any, X_test: Any, n: int, metric: Any, metric_params: dict[str, Any] | None
) -> tuple[list[Indices], list[Note]]:
    """Most of the `n` rows nearest to each test row, nearest first, with a note that says how many were found.

    Rows are put into cells by their nearest of about `√n_rows` centres, and a test row looks into the cells whose
    centres are nearest to it. The distances of what is found are exact.
    """
    X, X_test = as_rows(X), as_rows(X_test)
    if not is_euclidean(X, *metric_for(metric, metric_params)):
        raise InvalidArgumentError(
            "Nearest(approximate=True) searches dense rows by Euclidean distance only; leave approximate out."
        )
    if X.shape[0] < FEWEST_ROWS or n > X.shape[0] * SHARE_SEEN / 4:
        text = "approximate=True was not needed: supports were searched exactly, which is as fast here."
        rows = nearest_by_products(X, X_test, min(n, len(X))).rows
        return list(rows.astype(np.int32)), [Note("searched-exactly", text)]
    found = _in_cells(X, X_test, n)
    some = sample_of(len(X_test), MEASURED)
    exact = nearest_by_products(X, X_test[some], n).rows
    hits = (found[some][:, :, None] == exact[:, None, :]).any(axis=2).mean()
    text = (
        f"supports were searched approximately: {100 * hits:.1f} % of the nearest rows were found (measured on "
        f"{len(some):,} test rows)."
    )
    return list(found.astype(np.int32)), [Note("searched-approximately", text, share_found=hits, n_tests=len(some))]


def _in_cells(X: AnyArray, X_test: AnyArray, n: int) -> AnyArray:
    """Row numbers, shape (n_tests, n); test rows whose cells hold too few rows are searched exactly."""
    try:
        import faiss
    except ImportError:
        raise InvalidArgumentError(
            "Nearest(approximate=True) needs faiss: pip install 'localshapley[approximate]'."
        ) from None
    n_cells = int(np.sqrt(len(X)))
    centre = X[sample_of(len(X), 4096)].mean(axis=0, dtype=np.float64)
    rows, tests = (np.ascontiguousarray(table - centre, dtype=np.float32) for table in (X, X_test))
    quantizer = faiss.IndexFlatL2(X.shape[1])
    index = faiss.IndexIVFFlat(quantizer, X.shape[1], n_cells)
    index.train(rows[sample_of(len(rows), 64 * n_cells)])
    index.add(rows)
    index.nprobe = max(int(n_cells * SHARE_SEEN), 4)
    taken = index.search(tests, n + 8)[1]  # some more, as distances are rounded
    enough = (taken >= 0).sum(axis=1) >= n
    out = np.empty((len(X_test), n), dtype=np.int64)
    which, place = np.nonzero((taken >= 0) & enough[:, None])
    row = taken[which, place].astype(np.int64)
    query = (np.cumsum(enough) - 1)[which]
    away = measure(X, X_test[enough], row, query, *EUCLIDEAN)
    out[enough] = best_of(int(enough.sum()), n, query, row, away).rows
    if not enough.all():
        out[~enough] = nearest_by_products(X, X_test[~enough], n).rows
    return out
