"""Valuations in files: one Parquet file each, a row for each value, everything else in its header.

A checksum of the whole file is in its header, so that damage is noticed before anything is read. It says nothing about
a file that was made to mislead: `reading` checks everything all the same.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localshapley.arrays import Singles
from localshapley.errors import InvalidArgumentError, LocalShapleyError, warn
from localshapley.valuation.parquet_fields import COLUMNS, FORMAT, fields_of

if TYPE_CHECKING:
    import pyarrow as pa

    from localshapley.valuation import Valuation

BLANK = b"0" * 32
"""What stands in the place of the checksum while it is computed."""
MARK = b"localshapley.checksum\x18\x20"
"""What comes before the checksum in the header of a Parquet file: its name, and that 32 bytes of text follow."""


def save(v: Valuation, path: str | Path) -> None:
    """Write a valuation; see `Valuation.save`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, sink = _parquet(path), pa.BufferOutputStream()
    pq.write_table(_table(v), sink)
    _write(path, _sealed(sink.getvalue().to_pybytes()))


def read(path: str | Path) -> dict[str, Any]:
    """Read what `save` wrote: the fields of a valuation by name."""
    import pyarrow as pa

    path = _parquet(path)
    try:
        content = path.read_bytes()
    except (FileNotFoundError, ValueError):  # the latter for a path that no file can have
        raise InvalidArgumentError(f"path {str(path)!r} does not exist.") from None
    except OSError as error:
        raise LocalShapleyError(f"{str(path)!r} cannot be read ({error.strerror}).") from error
    try:
        is_sealed = _is_sealed(content)
        fields = fields_of(pa.BufferReader(content))
        if not is_sealed and all(note.code != "rows-not-checked" for note in fields["notes"]):
            raise ValueError("its checksum is missing")
        return fields
    except LocalShapleyError:
        raise
    except Exception as error:  # whatever pyarrow, pandas or NumPy say of a file that is not as it should be
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise LocalShapleyError(
            f"{str(path)!r} is not a valuation that this version can read ({reason}); it must come from Valuation.save."
        ) from error


def _parquet(path: str | Path) -> Path:
    if Path(path).suffix != ".parquet":
        raise InvalidArgumentError(f"path must end in .parquet; got {str(path)!r}. For other formats use to_frame().")
    return Path(path)


def _table(v: Valuation) -> pa.Table:
    """A row for each value, and in the header what is left."""
    import pyarrow as pa

    frame = v.to_frame()
    names = list(frame.index.names)
    if set(names) & set(COLUMNS):  # the index would look like another column
        frame.index = frame.index.set_names([None] * len(names))
    try:
        table = pa.Table.from_pandas(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        warn("the index holds labels that Parquet has no column for (of several kinds, say); they are saved as text.")
        table = pa.Table.from_pandas(frame.set_axis(frame.index.map(str), axis=0))
    if v.oob_scores is not None:
        table = table.append_column("oob_score", pa.array(v.oob_scores))
    for name, lists in _lists(v).items():
        table = table.append_column(name, lists)
    extra = {
        b"localshapley": json.dumps(_header(v, names)).encode(),
        b"localshapley.support_sizes": json.dumps(v.support_sizes.tolist()).encode(),
        b"localshapley.has_ids": b"1" if v.ids is not None else b"0",
    }
    if v.history is not None:
        extra[b"localshapley.trainings"] = json.dumps(v.history.trainings.tolist()).encode()
    if v.origin is not None:
        extra[b"localshapley.origin"] = v.origin.to_text()
    extra[b"localshapley.checksum"] = BLANK
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **extra})


def _header(v: Valuation, names: list[Any]) -> dict[str, Any]:
    texts = ("method", "model", "score", "support", "unit", "is_random", "chosen")
    return {
        "format": FORMAT,
        "stopped": v.stopped.to_dict(),
        "notes": [note.to_dict() for note in v.notes],
        "cost": asdict(v.cost),
        "levels": None if v.counts.levels is None else {k: _as_text(n) for k, n in asdict(v.counts.levels).items()},
        "skill": None if v.skill is None else asdict(v.skill),
        "among": v.among,
        "record": None if v.record is None else asdict(v.record),
        "columns": None if v.digests is None else v.digests.columns,
        "names": [None if name is None else str(name) for name in names],
        **{name: getattr(v, name) for name in texts},
    }


def _as_text(count: Any) -> Any:
    """Counts of any size: Python does not write decimal numbers of over 4,300 digits."""
    return [_as_text(c) for c in count] if isinstance(count, list | tuple) else hex(count)


def _lists(v: Valuation) -> dict[str, pa.Array]:
    """Columns of a file that hold several numbers for each row."""
    import pyarrow as pa

    found: dict[str, pa.Array] = {}
    if v.per_test is not None:
        by_row = v.per_test.tocsc()
        kind = pa.LargeListArray if by_row.nnz > np.iinfo(np.int32).max else pa.ListArray
        parts = by_row.indptr.astype(np.int64 if kind is pa.LargeListArray else np.int32)
        columns = {"tests": by_row.indices, "test_values": by_row.data}
        if v.origin is not None and len(v.origin.apart):
            matrix = v.per_test
            columns["test_apart"] = (
                type(matrix)((v.origin.apart, matrix.indices, matrix.indptr), matrix.shape).tocsc().data
            )
        for name, flat in columns.items():
            found[name] = kind.from_arrays(pa.array(parts), pa.array(flat))
    spreads = {"spread": v.spread, "spread_tests": v.spread_tests, "spread_seed": v.spread_seed}
    several: dict[str, Singles] = {name: rows for name, rows in spreads.items() if rows is not None}
    if v.history is not None:
        several |= {"history_values": v.history.values.T, "history_stderr": v.history.stderr.T}
    for name, rows in several.items():
        found[name] = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    if v.digests is not None:
        words = np.column_stack([v.digests.rows, v.digests.labels]).astype("<u8")
        found["digest"] = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(24), len(words), [None, pa.py_buffer(words.tobytes())]
        )
    return found


def _write(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it, so that a full disk leaves what was there before."""
    try:
        place = Path(os.path.realpath(path))
    except ValueError:
        raise InvalidArgumentError(f"path {str(path)!r} is not one that a file can have.") from None
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, place)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise LocalShapleyError(
            f"{str(path)!r} cannot be written ({error.strerror}); free space or choose another path, and save again."
        ) from error


def _sealed(content: bytes) -> bytes:
    """The file with its checksum in place."""
    at = content.rindex(MARK) + len(MARK)
    assert content[at : at + len(BLANK)] == BLANK
    return content[:at] + _checksum(content) + content[at + len(BLANK) :]


def _is_sealed(content: bytes) -> bool:
    """Whether the file has a checksum, which must be right."""
    at = content.rfind(MARK)
    if at < 0:
        return False
    at += len(MARK)
    blank = content[:at] + BLANK + content[at + len(BLANK) :]
    if _checksum(blank) != content[at : at + len(BLANK)]:
        raise ValueError("it was damaged: its checksum is wrong")
    return True


def _checksum(content: bytes) -> bytes:
    return blake2b(content, digest_size=len(BLANK) // 2).hexdigest().encode()
