"""What the rows lie in: a table in memory, files, a memory map, or parts of Dask."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from localshapley.data.arrow_chunks import ArrowRows
from localshapley.data.chunked_rows import ChunkedRows, MappedRows, column_of
from localshapley.data.dask_chunks import DaskRows
from localshapley.runtime.memory import memory_size

MAPPED_SHARE = 0.25
"""A memory map larger than this share of the memory is read in parts, a smaller one like any array."""


def parts_of(X: Any, y: Any) -> ChunkedRows | None:
    """Rows that lie in parts; None for a table in memory, whatever it is.

    Parameters
    ----------
    X : path, pyarrow data set, Dask array or DataFrame, or NumPy memory map
    y : str or array
        Name of the column that holds the labels, where columns have names, or one label for each row.
    """
    if type(X).__module__.split(".")[0] in ("dask", "dask_expr"):
        return DaskRows(X, y)
    dataset = sys.modules.get("pyarrow.dataset")  # if it is one, this has been imported
    if isinstance(X, str | Path) or (dataset is not None and isinstance(X, dataset.Dataset)):
        return ArrowRows(X, y)
    if isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes > MAPPED_SHARE * (memory_size() or np.inf):
        return MappedRows(X, y)
    return None


def tests_in_memory(X_test: Any, y_test: Any, parts: ChunkedRows) -> tuple[Any, Any]:
    """Test rows and their labels in memory, whatever they lie in; columns as the training rows have them."""
    if isinstance(X_test, str | Path) or type(X_test).__module__.split(".")[0] in ("dask", "dask_expr"):
        found = parts_of(X_test, y_test)
        assert found is not None
        X_test, y_test = found.whole()
    elif hasattr(X_test, "to_pandas"):
        X_test = X_test.to_pandas()
    if isinstance(y_test, str) and isinstance(X_test, pd.DataFrame):
        column_of(y_test, [str(name) for name in X_test.columns])
        y_test, X_test = X_test[y_test].to_numpy(), X_test.drop(columns=y_test)
    if (
        parts.names is not None
        and isinstance(X_test, pd.DataFrame)
        and set(parts.names) < set(map(str, X_test.columns))
    ):
        X_test = X_test[parts.names]
    return X_test, y_test.compute() if hasattr(y_test, "compute") else y_test
