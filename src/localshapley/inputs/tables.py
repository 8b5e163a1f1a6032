"""Tables in files: CSV, TSV, Parquet, Feather and Arrow, read and written by their ending."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localshapley.errors import InvalidArgumentError, LocalShapleyError

if TYPE_CHECKING:
    import pandas as pd

TEXT = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
BINARY = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
SEPARATORS = ",;\t|"
LONGEST_HEADER = 2**20


def read_table(path: str | Path, encoding: str = "utf-8") -> pd.DataFrame:
    """Read a table; errors say in one line what is wrong with a file.

    Text files may be compressed (`.csv.gz`), and separated by commas, semicolons, tabs or bars.
    """
    path = Path(path)
    kind = kind_of(path)
    if not path.is_file():
        raise LocalShapleyError(f"{path} is {'a folder' if path.is_dir() else 'not there'}; give the path of a table.")
    if path.stat().st_size == 0:
        raise LocalShapleyError(f"{path} is empty.")
    try:
        table = _read_text(path, encoding) if kind in TEXT else _read_binary(path, kind)
    except UnicodeDecodeError as error:
        raise LocalShapleyError(
            f"{path} is not {encoding} text (byte {error.object[error.start]:#04x}); save it as UTF-8, or name its "
            "encoding, such as latin-1."
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
    table.columns = table.columns.map(str)
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise LocalShapleyError(f"{path} has the column {repeated[0]!r} twice; give each a name of its own.")
    return table


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a table with its index as the first column."""
    path = Path(path)
    kind = kind_of(path)
    with_index = table.reset_index()
    if kind in TEXT:
        with_index.to_csv(path, sep=TEXT[kind], index=False)
    elif kind in (".parquet", ".pq"):
        with_index.to_parquet(path, index=False)
    else:
        with_index.to_feather(path)


def kind_of(path: str | Path) -> str:
    """The ending that gives the format of a table, without that of its compression."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    kind = endings[-2] if len(endings) > 1 and endings[-1] in PACKED else (endings or [""])[-1]
    if kind not in TEXT and kind not in BINARY:
        known = ", ".join([*TEXT, *BINARY])
        raise InvalidArgumentError(f"{path} must end in one of {known}; the ending gives the format.")
    return kind


def _read_text(path: Path, encoding: str) -> pd.DataFrame:
    import pandas as pd

    encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    if path.suffix.lower() not in PACKED:
        with path.open("rb") as file:
            if b"\0" in file.read(4096) and not encoding.lower().startswith("utf-16"):
                raise ValueError("it does not hold text")
    module: Any = import_module(PACKED[path.suffix.lower()]) if path.suffix.lower() in PACKED else None
    with path.open(encoding=encoding) if module is None else module.open(path, "rt", encoding=encoding) as lines:
        header = lines.readline(LONGEST_HEADER)
    if not header.replace("\t", "").strip().isprintable() or len(header) == LONGEST_HEADER:
        raise ValueError("it does not start with the names of columns")
    separator = max(SEPARATORS, key=header.count)
    how: dict[str, Any] = {"sep": separator, "encoding": encoding, "skipinitialspace": True, "low_memory": False}
    table: pd.DataFrame = pd.read_csv(path, **how)
    if separator != "," and _has_decimal_commas(table):
        table = pd.read_csv(path, **how, decimal=",")
    return table


def _has_decimal_commas(table: pd.DataFrame) -> bool:
    """Whether a column of text holds nothing but numbers with commas."""
    words = (table[name].dropna().astype(str) for name in table.columns if table[name].dtype.kind not in "biufMm")
    return any(len(column) and column.str.fullmatch(r"[-+]?\d*,?\d+(e[-+]?\d+)?").all() for column in words)


def _read_binary(path: Path, kind: str) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    if kind in (".parquet", ".pq"):
        return pd.read_parquet(path)
    try:
        return pd.read_feather(path)
    except pa.ArrowInvalid:  # the streaming form of the same
        with pa.ipc.open_stream(path) as stream:
            table: pd.DataFrame = stream.read_pandas()
        return table
