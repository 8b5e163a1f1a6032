"""Valuations in files: one Parquet file each, a row for each value, everything else in its header."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from localshapley.arrays import Singles
from localshapley.coalitions.exact import Levels
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.valuation.parts import Cost, History, Origin
from localshapley.valuation.skill import Skill

if TYPE_CHECKING:
    from localshapley.valuation import Valuation

FORMAT = "localshapley valuation 1"


def save(v: Valuation, path: str | Path) -> None:
    """Write a valuation; see `Valuation.save`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(v.to_frame())
    if v.per_test is not None:
        by_row = v.per_test.tocsc()
        parts = np.asarray(by_row.indptr, dtype=np.int32)
        for name, flat in (("tests", by_row.indices), ("test_values", by_row.data)):
            table = table.append_column(name, pa.ListArray.from_arrays(pa.array(parts), pa.array(flat)))
    for name, lists in _lists(v).items():
        table = table.append_column(name, pa.FixedSizeListArray.from_arrays(pa.array(lists.ravel()), lists.shape[1]))
    extra = {
        b"localshapley": json.dumps(_header(v)).encode(),
        b"localshapley.support_sizes": json.dumps(v.support_sizes.tolist()).encode(),
        b"localshapley.has_ids": b"1" if v.ids is not None else b"0",
    }
    if v.history is not None:
        extra[b"localshapley.trainings"] = json.dumps(v.history.trainings.tolist()).encode()
    if v.origin is not None:
        extra[b"localshapley.origin"] = v.origin.to_text()
    pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), **extra}), _parquet(path))


def read(path: str | Path) -> dict[str, Any]:
    """Read what `save` wrote: the fields of a valuation by name."""
    path = _parquet(path)
    if not path.exists():
        raise InvalidArgumentError(f"path {str(path)!r} does not exist.")
    try:
        return _read(path)
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise LocalShapleyError(
            f"{str(path)!r} is not a valuation that this version can read ({error}); it must come from Valuation.save."
        ) from error


def _parquet(path: str | Path) -> Path:
    if Path(path).suffix != ".parquet":
        raise InvalidArgumentError(f"path must end in .parquet; got {str(path)!r}. For other formats use to_frame().")
    return Path(path)


def _header(v: Valuation) -> dict[str, Any]:
    names = ("method", "model", "score", "support", "stopped", "notes", "unit", "is_random", "chosen")
    levels = None if v.counted is None else {k: _as_text(n) for k, n in asdict(v.counted).items()}
    parts = {"cost": asdict(v.cost), "levels": levels, "skill": None if v.skill is None else asdict(v.skill)}
    return {"format": FORMAT, **parts, **{name: getattr(v, name) for name in names}}


def _from_header(text: str) -> dict[str, Any]:
    header = json.loads(text)
    if header.pop("format", None) != FORMAT:
        raise ValueError(f"no {FORMAT!r} header")
    levels = header.pop("levels", None)
    header["counted"] = None if levels is None else Levels(**{k: _from_text(n) for k, n in levels.items()})
    return {**header, "cost": Cost(**header["cost"]), "skill": Skill.from_dict(header.get("skill"))}


def _as_text(count: Any) -> Any:
    """Counts of any size: Python does not write decimal numbers of over 4,300 digits."""
    return [_as_text(c) for c in count] if isinstance(count, list | tuple) else hex(count)


def _from_text(text: Any) -> Any:
    return [tuple(int(t, 16) for t in pair) for pair in text] if isinstance(text, list) else int(text, 16)


def _lists(v: Valuation) -> dict[str, Singles]:
    """Columns of a file that hold several numbers for each row."""
    lists = {} if v.spread is None else {"spread": v.spread}
    if v.history is not None:
        lists |= {"history_values": v.history.values.T, "history_stderr": v.history.stderr.T}
    return lists


def _read(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    meta = table.schema.metadata or {}
    if b"localshapley" not in meta:
        raise ValueError("no valuation header")
    lists = ("tests", "test_values", "spread", "history_values", "history_stderr")
    frame = table.drop_columns([c for c in lists if c in table.column_names]).to_pandas()
    sizes = np.array(json.loads(meta[b"localshapley.support_sizes"]), dtype=np.int64)
    per_test = None
    if "tests" in table.column_names:
        tests, data = table["tests"].combine_chunks(), table["test_values"].combine_chunks()
        by_row = sparse.csc_array(
            (data.flatten().to_numpy(), tests.flatten().to_numpy(), tests.offsets.to_numpy()),
            shape=(len(sizes), len(frame)),
        )
        per_test = by_row.tocsr()
    several = {
        name: table[name].combine_chunks().flatten().to_numpy().reshape(len(frame), -1)
        for name in lists[2:]
        if name in table.column_names
    }
    history = None
    if "history_values" in several:
        trainings = np.array(json.loads(meta[b"localshapley.trainings"]), dtype=np.int64)
        history = History(trainings, several["history_values"].T.copy(), several["history_stderr"].T.copy())
    return {
        **_from_header(meta[b"localshapley"].decode()),
        "values": frame["value"].to_numpy(),
        "stderr": frame["stderr"].to_numpy(),
        "n_tests": frame["n_tests"].to_numpy(),
        "support_sizes": sizes,
        "per_test": per_test,
        "ids": frame.index if meta[b"localshapley.has_ids"] == b"1" else None,
        "origin": Origin.from_text(meta[b"localshapley.origin"]) if b"localshapley.origin" in meta else None,
        "spread": several.get("spread"),
        "history": history,
    }
