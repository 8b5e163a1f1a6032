"""Rows in files of Parquet, Feather or Arrow, read some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from localshapley.data.chunked_rows import ChunkedRows, RowChunk, column_of, given_labels, rows_of_part
from localshapley.errors import InvalidArgumentError

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "ipc", ".ipc": "ipc"}


class ArrowRows(ChunkedRows):
    """A file, or a folder of files in the order of their names.

    Parameters
    ----------
    X : path or pyarrow data set
    y : str or array
    """

    def __init__(self, X: Any, y: Any) -> None:
        self._set = _opened(Path(X)) if isinstance(X, str | Path) else X
        names = list(self._set.schema.names)
        self.n_rows = int(self._set.count_rows())
        self._y = y if isinstance(y, str) else given_labels(y, self.n_rows)
        self.names = column_of(y, names) if isinstance(y, str) else names
        self.n_columns = len(self.names)
        if not self.n_rows or not self.n_columns:
            raise InvalidArgumentError(f"X is empty: it has {self.n_rows} rows and {self.n_columns} columns.")
        self.largest = rows_of_part(self.n_columns)

    def scan(
        self, function: Callable[..., Any], *shared: Any, rows: bool = True, labels: bool = False
    ) -> Iterator[Any]:
        """One part after the other."""
        assert self.names is not None
        named = isinstance(self._y, str)
        columns = [*(self.names if rows else ()), *([self._y] if labels and named else ())]
        start = 0
        for batch in self._batches(columns):
            table = batch.to_pandas()
            y: Any = None
            if labels:
                y = table.pop(self._y).to_numpy() if named else self._y[start : start + len(table)]
            yield function(RowChunk(start, table if rows else None, y), *shared)
            start += batch.num_rows

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        """Tables of about the size of a part; none but that is in memory, whatever takes how long."""
        import pyarrow as pa

        held: list[Any] = []
        for group in self._groups(columns):
            for start in range(0, group.num_rows, self.largest):
                piece = group.slice(start, self.largest)
                if held and sum(one.num_rows for one in held) + piece.num_rows > self.largest:
                    yield pa.concat_tables(held)
                    held = []
                held.append(piece)
        if held:
            yield pa.concat_tables(held)

    def _groups(self, columns: list[str]) -> Iterator[Any]:
        """What the files can be read by: groups of rows in Parquet, else whole files."""
        import pyarrow as pa

        if not columns:  # labels alone, which are in memory
            for start in range(0, self.n_rows, self.largest):
                yield pa.table({"row": np.arange(min(self.largest, self.n_rows - start))})
            return
        for file in self._set.get_fragments():
            for group in file.split_by_row_group() if hasattr(file, "split_by_row_group") else [file]:
                yield group.to_table(schema=self._set.schema, columns=columns)


def _opened(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix.lower() in FORMATS)
    kinds = {FORMATS.get(file.suffix.lower()) for file in files}
    if len(kinds) != 1 or None in kinds:
        what = "is not there" if not path.exists() else "holds no such file" if not kinds else "holds other files"
        raise InvalidArgumentError(
            f"X={str(path)!r} must be a file, or a folder of files of one kind: {', '.join(FORMATS)}; it {what}."
        )
    try:
        return ds.dataset([str(file) for file in files], format=kinds.pop())
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidArgumentError(f"X={str(path)!r} cannot be read: {' '.join(str(error).split())[:200]}") from None
