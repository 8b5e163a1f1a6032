"""A table with some rows left out and some cells of one column changed; everything else stays as it is in the file."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.io.number_formats import label_text
from localshapley.io.tables import TEXT, WHITESPACE, guard, kind_of, open_text, read_text

if TYPE_CHECKING:
    import pyarrow as pa

    from localshapley.arrays import Ints

Spans = list[tuple[int, int]]
"""Where the cells of a line begin and end in a text."""


def rewrite_table(
    path: Path,
    out: Path,
    target: str,
    cells: Mapping[int, Any],
    dropped: Ints,
    *,
    encoding: str = "utf-8",
    sep: str | None = None,
    raw: bool = False,
) -> int:
    """Write a table again in the same format; returns how many cells were guarded.

    Text files keep every character of the lines and cells that do not change: quotes, spaces, numbers as they are
    written, line ends, encoding. Files of Arrow and Parquet keep the types of their columns.

    Parameters
    ----------
    path, out : paths
        The table, and the file to write, of the same kind.
    target : str
        The column that changes, which is there once.
    cells : dict
        New cells of that column, by the numbers of their rows.
    dropped : array of int
        Rows to leave out.
    encoding, sep
        Of text files, as in `read_table`.
    raw : bool
        Whether new texts that a spreadsheet would run stay as they are; else they get a mark in front.
    """
    kind = kind_of(path)
    check_kind(path, out)
    if kind not in TEXT:
        _write(_changed(_read_arrow(path, kind), target, cells, dropped), out)
        return 0
    text, guarded = _rewritten(path, target, cells, set(dropped.tolist()), encoding, sep, raw)
    _write(text, out, encoding)
    return guarded


def copy_rows(
    path: Path, out: Path, rows: Ints, target: str, *, encoding: str = "utf-8", sep: str | None = None
) -> None:
    """Write some rows of a table, in the order of their numbers in `rows`, in the same format.

    Their cells stay as they are in the file, as in `rewrite_table`; the column `target` shows that rows are understood.
    """
    kind = kind_of(path)
    check_kind(path, out)
    if kind not in TEXT:
        _write(_read_arrow(path, kind).take(rows), out)
        return
    file = _TextFile(path, target, encoding, sep)
    lines = [file.text[start : spans[-1][1]] for start, spans in file.lines]
    header = file.text[: file.header_end]
    ending = next((ending for ending in ("\r\n", "\n", "\r") if file.text.startswith(ending, file.header_end)), "\n")
    _write(file.mark + "".join(f"{line}{ending}" for line in (header, *(lines[row] for row in rows))), out, encoding)


def _write(contents: str | pa.Table, out: Path, encoding: str = "utf-8") -> None:
    """Write under another name first: an input that is overwritten is never there by half."""
    part = out.with_name(f".{os.getpid()}.{out.name}")
    try:
        if isinstance(contents, str):
            with open_text(part, "wt", encoding=encoding, newline="") as file:
                file.write(contents)
        else:
            _write_arrow(contents, part, kind_of(out))
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def check_kind(path: Path, out: Path) -> None:
    """Refuse to write another format than that of the table."""
    if kind_of(path) != kind_of(out):
        raise InvalidArgumentError(
            f"{out} must end in {kind_of(path)} like {path}; the mended table keeps the format of the table."
        )


def _rewritten(
    path: Path,
    target: str,
    cells: Mapping[int, Any],
    dropped: set[int],
    encoding: str,
    sep: str | None,
    raw: bool,
) -> tuple[str, int]:
    """The text of a file with other cells, and how many of them were guarded."""
    file = _TextFile(path, target, encoding, sep)
    text = file.text
    written = _Spelling([text[slice(*span)] for span in file.cells], file.how, raw)
    starts = [*(start for start, _ in file.lines), len(text)]
    parts = [file.mark, text[: starts[0]]]
    for row, (left, right) in enumerate(file.cells):
        start, stop = starts[row : row + 2]
        if row in cells:
            parts += [text[start:left], written(cells[row]), text[right:stop]]
        elif row not in dropped:
            parts.append(text[start:stop])
    return "".join(parts), written.guarded


class _TextFile:
    """A text file as its characters, with the places of its lines and of the cells of one column.

    Attributes
    ----------
    mark, text : str
        The mark of the encoding, if there is one, and what follows.
    header_end : int
        Where the header ends.
    lines : list of (int, Spans)
        Where each row begins, and where its cells are.
    cells : Spans
        Where the cells of the column are.
    how : dict
        Arguments of `pandas.read_csv`.
    """

    def __init__(self, path: Path, column: str, encoding: str, sep: str | None) -> None:
        table, _, self.how, _ = read_text(path, encoding, sep, None)
        with open_text(path, "rt", encoding=encoding, newline="") as file:
            text = file.read()
        self.mark = "\ufeff" if text.startswith("\ufeff") else ""
        self.text = text = text[len(self.mark) :]
        blank = " \t".replace(self.how["sep"], "")  # of lines that pandas skips
        every = _lines(text, self.how["sep"])
        header, *self.lines = [(start, spans) for start, spans in every if text[start : spans[-1][1]].strip(blank)]
        self.header_end = header[1][-1][1]
        unnamed = max(len(self.lines[0][1]) - len(header[1]), 0) if self.how.get("index_col") is None else 0
        place = [str(name).strip() for name in table.columns].index(column)
        at = place + unnamed  # cells beyond the header are names of the rows, and come first
        self.cells = [spans[at] if at < len(spans) else (0, 0) for _, spans in self.lines]
        _check_split(path, [text[slice(*span)] for span in self.cells], place, len(table), self.how)


def _lines(text: str, separator: str) -> Iterator[tuple[int, Spans]]:
    """Where each line begins, and where its cells are; a line break inside quotes ends no line."""
    between = r"[ \t]+" if separator == WHITESPACE else re.escape(separator)
    outside = r"[^ \t\r\n]" if separator == WHITESPACE else rf"[^{re.escape(separator)}\r\n]"
    cell = re.compile(rf' *"(?:[^"]|"")*"{outside}*|{outside}*')
    after = re.compile(rf"(?P<more>{between})|\r\n|\n|\r|\Z")
    place, stop = 0, len(text)
    while place < stop:
        start, spans = place, list[tuple[int, int]]()
        while separator == WHITESPACE and place < stop and text[place] in " \t":
            place += 1
        while True:
            found = cell.match(text, place)
            end = after.match(text, found.end() if found else place)
            assert found is not None and end is not None  # noqa: PT018 - for mypy: both match anywhere
            spans.append(found.span())
            place = end.end()
            if end["more"] is None:
                break
        yield start, spans


def _check_split(path: Path, cells: list[str], place: int, n_rows: int, how: dict[str, Any]) -> None:
    """Refuse a file whose lines are not those that pandas reads: another line might be changed."""
    import pandas as pd

    read = pd.read_csv(path, **how, dtype=str, keep_default_na=False, na_filter=False).iloc[:, place]
    if len(cells) != n_rows or [_plain(cell) for cell in cells] != [_plain(cell) for cell in read]:
        raise LocalShapleyError(
            f"{path} cannot be changed cell by cell, as its lines are quoted in an unusual way; save it as a plain CSV "
            "file first."
        )


def _plain(cell: str) -> str:
    """A cell without its quotes, and without spaces around it."""
    cell = cell.strip()
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return (cell[1:-1].replace('""', '"') if quoted else cell).strip()


class _Spelling:
    """How a new label is written: as others of its kind are in the file, else plainly."""

    def __init__(self, cells: list[str], how: dict[str, Any], raw: bool) -> None:
        self.known = {_plain(cell): cell for cell, _ in reversed(Counter(cells).most_common())}
        self.how, self.raw, self.guarded = how, raw, 0

    def __call__(self, cell: Any) -> str:
        words = str(cell) if isinstance(cell, str) else label_text(cell)
        for known in dict.fromkeys((str(cell).strip(), words.strip())):
            if known in self.known:
                return self.known[known]
        if not isinstance(cell, str):
            return words.replace(".", self.how.get("decimal", "."))
        safe = words if self.raw else guard(words)
        self.guarded += safe != words
        quotes = f'[\\s"]|{re.escape(self.how["sep"])}' if self.how["sep"] != WHITESPACE else r'[\s"]'
        return '"' + safe.replace('"', '""') + '"' if re.search(quotes, safe) else safe


def _read_arrow(path: Path, kind: str) -> pa.Table:
    import pyarrow as pa
    from pyarrow import feather, parquet

    if kind in (".parquet", ".pq"):
        return parquet.ParquetFile(path).read()
    try:
        return feather.read_table(path, memory_map=False)
    except pa.ArrowInvalid:
        with pa.ipc.open_stream(path) as stream:
            return stream.read_all()


def _changed(table: pa.Table, target: str, cells: Mapping[int, Any], dropped: Ints) -> pa.Table:
    """The table with new cells in one column, whose type stays the same wherever it can hold them."""
    import pyarrow as pa

    column = [str(name).strip() for name in table.column_names].index(target)
    field = table.schema.field(column)
    labels = table.column(column).to_pylist()
    for row, cell in cells.items():
        labels[row] = cell.item() if hasattr(cell, "item") else cell
    try:
        made = (
            pa.array(labels, type=field.type)
            if not pa.types.is_dictionary(field.type)
            else (pa.array(labels, type=field.type.value_type).dictionary_encode().cast(field.type))
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        made = pa.array(labels)  # such as 2.5 among whole numbers
    field = field.with_type(made.type)
    kept = np.setdiff1d(np.arange(len(labels)), dropped)
    return table.set_column(column, field, made).take(pa.array(kept)).replace_schema_metadata(table.schema.metadata)


def _write_arrow(table: pa.Table, path: Path, kind: str) -> None:
    from pyarrow import feather, parquet

    if kind in (".parquet", ".pq"):
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
