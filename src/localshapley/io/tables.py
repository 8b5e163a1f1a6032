"""Tables in files: CSV, TSV, Parquet, Feather and Arrow, read and written by their ending."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.notes import Note

if TYPE_CHECKING:
    import pandas as pd

TEXT = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
BINARY = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
SEPARATORS = ",;\t|"
WHITESPACE = r"\s+"
NAMED_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "whitespace": WHITESPACE, "\\t": "\t"}
LONGEST_HEADER = 2**20
FIRST_LINES = 20
"""Number of lines that tell how a text file is separated."""
RUNS = re.compile(r"\s*[=+\-@\t\r].", re.DOTALL)
"""How a cell begins that a spreadsheet may run as a formula."""
OF_TABLE = "_in_table"
"""What is added to the name of a user's column that would be mistaken for one of ours."""
DECIMAL = "decimal"
"""Key in the `attrs` of a table of the decimal mark of its file, where that is a comma."""
NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?%?", re.IGNORECASE)
"""A cell that a spreadsheet reads as a number."""


def read_table(path: str | Path, encoding: str = "utf-8", **how: Any) -> pd.DataFrame:
    """Read a table as `read_with_notes` does, without its notes."""
    return read_with_notes(path, encoding, **how)[0]


def read_with_notes(
    path: str | Path,
    encoding: str = "utf-8",
    *,
    sep: str | None = None,
    na: str | None = None,
    once: Iterable[str | None] = (),
    ids: str | int | None = None,
    like: pd.DataFrame | None = None,
) -> tuple[pd.DataFrame, list[Note]]:
    """Read a table, with what the user should know about its file; errors say in one line what is wrong with it.

    Parameters
    ----------
    path : path
        Text files may be compressed (`.csv.gz`), and separated by commas, semicolons, tabs, bars or whitespace.
    encoding : str
        Of text files.
    sep : str, optional
        Separator of text files: a character, or a name of `NAMED_SEPARATORS`; by default found in the first lines.
    na : str, optional
        What is read as missing in text files beside empty cells, separated by commas; by default what pandas reads as
        missing, such as NA, null and None.
    once : names
        Columns that may be there only once. Others that share a name become `a`, `a.1`, `a.2`.
    ids : str or int, optional
        Column that names the rows, or its place: of a text file it is read as text, as it is in the file (00319, 1.10).
    like : DataFrame, optional
        The table of training rows, which tells whether there are decimal commas, and which columns hold text.
    """
    path = Path(path)
    kind = kind_of(path)
    notes = list[Note]()
    if not path.is_file():
        raise LocalShapleyError(f"{path} is {'a folder' if path.is_dir() else 'not there'}; give the path of a table.")
    if path.stat().st_size == 0:
        raise LocalShapleyError(f"{path} is empty.")
    try:
        if kind in TEXT:
            table, names, how, notes = read_text(path, encoding, sep, na, ids, like)
            table.attrs |= {DECIMAL: ","} if how.get("decimal") == "," else {}
        else:
            table, names = _read_binary(path, kind)
    except InvalidArgumentError:
        raise
    except UnicodeDecodeError as error:
        raise LocalShapleyError(
            f"{path} is not {encoding} text (byte {error.object[error.start]:#04x}); save it as UTF-8, or give its "
            "encoding, such as --encoding latin-1."
        ) from None
    except LookupError:
        raise InvalidArgumentError(f"encoding {encoding!r} is not known; common ones are utf-8 and latin-1.") from None
    except (OSError, ValueError, MemoryError) as error:  # pandas' and pyarrow's own errors are among these
        reason = " ".join(str(error).split())[:200]
        raise LocalShapleyError(f"{path} cannot be read as {kind[1:]}: {reason}") from None
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise LocalShapleyError(
            f"{path} has {table.shape[0]} rows and {table.shape[1]} columns; nothing can be learnt from it."
        )
    table.columns = distinct([str(name).strip() for name in table.columns])
    return table, notes + _check_names(path, names, {name.strip() for name in once if name is not None})


def distinct(names: list[str]) -> list[str]:
    """Names that differ: the second `a` becomes `a.1`.

    >>> distinct(["a", "b", "a", "a.1"])
    ['a', 'b', 'a.2', 'a.1']
    """
    taken, seen, made = set(names), set[str](), []
    for name in names:
        new, n = name, 0
        while new in seen or (n and new in taken):
            n += 1
            new = f"{name}.{n}"
        seen.add(new)
        made.append(new)
    return made


def _check_names(path: Path, names: list[str], once: set[str]) -> list[Note]:
    """Refuse names that share one of `once`, which would be taken for features; note others that repeat."""
    notes = []
    repeated = {name: count for name, count in Counter(map(str.strip, names)).items() if name and count > 1}
    for name, count in repeated.items():
        if name in once:
            raise LocalShapleyError(
                f"{path} has the column {name!r} {count} times, and which one is meant is unknown; give each a name of "
                "its own, or delete the others."
            )
        text = f"{path.name} has the column {name!r} {count} times; each was used, the later ones as {name}.1, ..."
        notes.append(Note("columns-renamed", text, file=path.name, column=name, count=count))
    return notes


def index_as_columns(table: pd.DataFrame) -> pd.DataFrame:
    """A table with its index as the first columns, which get another name where there is a column of that name."""
    import pandas as pd

    names = [f"{name}{OF_TABLE}" if name in table.columns else name for name in table.index.names]
    index = pd.DataFrame(index=table.index.set_names(names)).reset_index()
    return pd.concat([index, table.reset_index(drop=True)], axis=1)  # inserting columns one by one is slow


def write_table(table: pd.DataFrame, path: str | Path, *, raw: bool = False, index: bool = True) -> int:
    """Write a table with its index, if it is wanted, as the first column; returns how many cells were guarded.

    Spreadsheets run cells that begin with ``=``, ``+``, ``-`` or ``@``: in text files these get a ``'`` in front,
    unless they are numbers or `raw` is set.
    """
    path = Path(path)
    kind = kind_of(path)
    with_index, guarded = index_as_columns(table) if index else table.reset_index(drop=True), 0
    if kind in TEXT:
        if not raw:
            with_index, guarded = _guarded(with_index)
        with_index.to_csv(path, sep=TEXT[kind], index=False)
    elif kind in (".parquet", ".pq"):
        with_index.to_parquet(path, index=False)
    else:
        with_index.to_feather(path)
    return guarded


def _guarded(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The table with a mark before each text that a spreadsheet would run, and the number of these."""
    out, n = table.copy(), 0
    for i, dtype in enumerate(table.dtypes):
        if dtype.kind in "biufcmM":
            continue
        cells = table.iloc[:, i].tolist()
        marked = [guard(cell) for cell in cells]
        changed = sum(a is not b for a, b in zip(cells, marked, strict=True))
        if changed:
            out.isetitem(i, marked)
            n += changed
    out.columns = [guard(name) for name in table.columns]
    return out, n


def guard(cell: Any) -> Any:
    """A text that a spreadsheet would run, with a mark in front; anything else as it is.

    >>> guard("=1+1"), guard("-3.5"), guard("-rm"), guard(-3)
    ("'=1+1", '-3.5', "'-rm", -3)
    """
    runs = isinstance(cell, str) and RUNS.match(cell) and not NUMBER.fullmatch(cell.strip())
    return f"'{cell}" if runs else cell


def unguard(cell: Any) -> Any:
    """A text as it was before `guard`."""
    return cell[1:] if isinstance(cell, str) and cell[:1] == "'" and guard(cell[1:]) == cell else cell


def kind_of(path: str | Path) -> str:
    """The ending that gives the format of a table, without that of its compression."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    kind = endings[-2] if len(endings) > 1 and endings[-1] in PACKED else (endings or [""])[-1]
    if kind not in TEXT and kind not in BINARY:
        known = ", ".join([*TEXT, *BINARY])
        raise InvalidArgumentError(f"{path} must end in one of {known}; the ending gives the format.")
    return kind


def read_text(
    path: Path,
    encoding: str,
    sep: str | None,
    na: str | None,
    ids: str | int | None = None,
    like: pd.DataFrame | None = None,
) -> tuple[pd.DataFrame, list[str], dict[str, Any], list[Note]]:
    """The table, the names in its header as they are, the arguments of `pandas.read_csv` for it, and notes."""
    import pandas as pd

    notes = []

    encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    if path.suffix.lower() not in PACKED:
        with path.open("rb") as file:
            if b"\0" in file.read(4096) and not encoding.lower().startswith("utf-16"):
                raise ValueError("it does not hold text")
    with open_text(path, "rt", encoding=encoding) as lines:
        first = [lines.readline(LONGEST_HEADER) for _ in range(FIRST_LINES)]
    header = first[0]
    if not header.replace("\t", "").strip().isprintable() or len(header) == LONGEST_HEADER:
        raise ValueError("it does not start with the names of columns")
    separator = _separator(first) if sep is None else _named_separator(sep)
    how: dict[str, Any] = {
        "sep": separator,
        "encoding": encoding,
        "skipinitialspace": separator != " ",
        "low_memory": False,
    }
    if na is not None:
        how |= {"keep_default_na": False, "na_values": ["", *(text.strip() for text in na.split(","))]}
    as_text = _converters(_cells(first[:1], separator), ids)
    how |= {} if like is None else _as_in(like.drop(columns=list(as_text), errors="ignore"), separator)
    how["converters"] = as_text
    table: pd.DataFrame = pd.read_csv(path, **how)
    cells = [len(row) for row in _cells(first[:2], separator)]
    if len(cells) > 1 and cells[1] > cells[0]:  # pandas takes cells beyond the header for names of the rows
        if table.iloc[:, -1].isna().all():
            how["index_col"] = False
            table = pd.read_csv(path, **how)
        else:
            text = f"lines of {path.name} have more cells than its header; the first were left out as row names"
            notes.append(Note("row-names-left-out", text, file=path.name))
    if separator != "," and "decimal" not in how and _has_decimal_commas(table):
        how["decimal"] = ","
        table = pd.read_csv(path, **how)
        notes.append(Note("decimal-commas", f"{path.name} read with decimal commas", file=path.name))
    names = pd.read_csv(path, **how | {"header": None, "nrows": 1, "dtype": str}).iloc[0].fillna("").tolist()
    del how["converters"]
    for name in as_text:
        if name in table.columns:
            table[name] = table[name].str[1:]
    return table, names, how, notes


def _converters(header: list[list[str]], ids: str | int | None) -> dict[str, Callable[[str], str]]:
    """How pandas leaves the cells of a column as they are: marked, as it would take NA and empty cells for missing."""
    names = header[0] if header else []
    wanted = names[ids : ids + 1] if isinstance(ids, int) else [n for n in names if ids and n.strip() == ids.strip()]
    return dict.fromkeys(wanted, "={}".format)


def _as_in(like: pd.DataFrame, separator: str) -> dict[str, Any]:
    """How to read a table like another one: the cells of its columns of text may all look like numbers here."""
    how: dict[str, Any] = {"decimal": ","} if like.attrs.get(DECIMAL) == "," and separator != "," else {}
    return how | {"dtype": {name: str for name, kind in like.dtypes.items() if kind.kind not in "biufcmM"}}


def open_text(path: Path, mode: str, **how: Any) -> Any:
    """Open a text file, compressed or not, as its ending says."""
    packed = PACKED.get(path.suffix.lower())
    return path.open(mode, **how) if packed is None else import_module(packed).open(path, mode, **how)


def _separator(lines: list[str]) -> str:
    """The separator that is most frequent in the header; whitespace if there is none and words fall into columns."""
    found = max(SEPARATORS, key=lines[0].count)
    if found in lines[0]:
        return found
    return next((blank for blank in (WHITESPACE, " ") if _in_columns(_cells(lines, blank))), found)


def _in_columns(rows: list[list[str]]) -> bool:
    """Whether lines have several cells, as many as the header or, where rows have names, one more."""
    return len(rows) > 1 and len(rows[0]) > 1 and all(len(row) - len(rows[0]) in (0, 1) for row in rows)


def _cells(lines: list[str], separator: str) -> list[list[str]]:
    """Cells of lines; none where one is too long to be split here."""
    skip, lines = separator != " ", [line.rstrip("\r\n") for line in lines]
    if separator == WHITESPACE:
        lines, separator = [line.strip() for line in lines], " "
    try:
        return list(csv.reader((line for line in lines if line), delimiter=separator, skipinitialspace=skip))
    except csv.Error:
        return []


def _named_separator(sep: str) -> str:
    found = NAMED_SEPARATORS.get(sep, sep)
    if len(found) != 1 and found != WHITESPACE:
        raise InvalidArgumentError(
            f"the separator must be one character or one of {', '.join(list(NAMED_SEPARATORS)[:-1])}; got {sep!r}."
        )
    return found


def _has_decimal_commas(table: pd.DataFrame) -> bool:
    """Whether a column of text holds nothing but numbers with commas, and not all of them separate thousands."""
    words = (table[name].dropna().astype(str) for name in table.columns if table[name].dtype.kind not in "biufMm")
    for column in words:
        column = column.str.replace(r"^\s*[$€£]\s*|\s*[%$€£]\s*$", "", regex=True)
        if column.str.fullmatch(r"[-+]?(\d*,?\d+|\d{1,3}(\.\d{3})+(,\d+)?)(e[-+]?\d+)?").all():
            with_comma = column[column.str.contains(",")]
            if not with_comma.str.fullmatch(r"[-+]?[1-9]\d{0,2},\d{3}").all():
                return True
    return False


def _read_binary(path: Path, kind: str) -> tuple[pd.DataFrame, list[str]]:
    """The table, and the names of its columns."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    table: pd.DataFrame
    try:
        table = (pd.read_parquet if kind in (".parquet", ".pq") else pd.read_feather)(path)
    except pa.ArrowInvalid:
        if kind in (".parquet", ".pq"):  # which pandas refuses if names repeat
            table = ParquetFile(path).read().to_pandas()
        else:  # the streaming form of the same
            with pa.ipc.open_stream(path) as stream:
                table = stream.read_pandas()
    return table, [str(name) for name in table.columns]
