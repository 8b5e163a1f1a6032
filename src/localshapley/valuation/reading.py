"""From the Parquet table of a valuation to its fields; each is checked in type, size and range before it is used.

What is wrong is raised as `ValueError`, or as the errors of Python and of pyarrow; `file.read` explains them.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints, Singles, offsets, singles
from localshapley.coalitions.subsets import Levels
from localshapley.data.row_digests import Digests
from localshapley.engine.executor import Cost
from localshapley.engine.run_result import FinalEstimate, History
from localshapley.models.skill import Skill
from localshapley.notes import Note, note_of
from localshapley.problem.players import UNITS, Origin, Players
from localshapley.runtime.memory import check_memory
from localshapley.valuation.facts import Facts, GameCounts, Record

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMAT = "localshapley valuation 3"
SECOND_FORMAT = "localshapley valuation 2"
"""The same with notes that are sentences alone."""
FIRST_FORMAT = "localshapley valuation 1"
"""That without checksum and digests."""
UNCHECKED = Note(
    "rows-not-checked",
    "saved by an earlier version: whether a table holds the rows that were valued could not be checked.",
)
"""The note of a valuation in the first format."""
LISTS = (
    "tests",
    "test_values",
    "test_apart",
    "spread",
    "spread_tests",
    "spread_seed",
    "history_values",
    "history_stderr",
    "digest",
    "oob_score",
)
COLUMNS = ("value", "stderr", "stderr_tests", "stderr_seed", "n_tests", *LISTS)
"""Columns of the table that are not its index."""


def fields_of(source: Any) -> dict[str, Any]:
    """Read the fields of a valuation by name."""
    table = _read_table(source)
    meta = table.schema.metadata or {}
    if b"localshapley" not in meta:
        raise ValueError("no valuation header")
    found = _header(_json(meta, b"localshapley"))
    among = found["among"]
    if table.num_rows == 0:
        raise ValueError("it has no rows")
    sizes = _whole("support_sizes", _json(meta, b"localshapley.support_sizes"), most=table.num_rows)
    if len(sizes) == 0:
        raise ValueError("it has no test rows")
    ids = _index(table, found["names"]) if _text(meta, b"localshapley.has_ids") == "1" else None
    _require(among is None or _are_rows(ids, among), "among", "the number of all rows, of which there are some", among)
    return {
        "estimate": FinalEstimate(
            _floats(table, "value"),
            _floats(table, "stderr", least=0),
            per_test=_per_test(table, len(sizes)),
            spread=_singles(table, "spread"),
            spread_tests=_singles(table, "spread_tests", least=2),
            spread_seed=_singles(table, "spread_seed", least=2),
        ),
        "players": Players(
            ids,
            found["unit"],
            among,
            _digests(table, found["columns"]),
            _floats(table, "oob_score") if "oob_score" in table.column_names else None,
        ),
        "counts": GameCounts(sizes, _whole("n_tests", _column(table, "n_tests"), most=len(sizes)), found["levels"]),
        "facts": found["facts"],
        "cost": found["cost"],
        "stopped": found["stopped"],
        "notes": found["notes"],
        "history": _history(table, meta),
        "origin": _origin(table, meta, table.num_rows, len(sizes)),
        "record": found["record"],
    }


def _read_table(source: Any) -> pa.Table:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
    about = file.metadata
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    n_cells = sum(group.column(j).num_values for group in groups for j in range(group.num_columns))
    check_memory("this valuation", 8 * max(n_cells, about.num_rows), "load it on a machine with more")
    table = file.read()
    table.validate(full=True)
    if len(set(table.column_names)) != table.num_columns:
        raise ValueError("two of its columns have the same name")
    return table


def _json(meta: dict[bytes, bytes], name: bytes) -> Any:
    try:
        return json.loads(_text(meta, name))
    except RecursionError:
        raise ValueError(f"its {name.decode()} is nested too deeply") from None


def _text(meta: dict[bytes, bytes], name: bytes) -> str:
    if name not in meta:
        raise ValueError(f"no {name.decode()} in its header")
    return meta[name].decode()


def _header(found: Any) -> dict[str, Any]:
    """Facts, cost and counts, with what older versions did not write."""
    if not isinstance(found, dict) or found.get("format") not in (FORMAT, SECOND_FORMAT, FIRST_FORMAT):
        raise ValueError(f"no {FORMAT!r} header")
    texts: dict[str, Any] = {name: found.get(name) for name in ("method", "model", "score", "support")}
    texts |= {"chosen": found.get("chosen", "")}
    for name, text in texts.items():
        _require(isinstance(text, str), name, "a text", text)
    unit: Any = found.get("unit", "row")
    _require(unit in UNITS, "unit", f"one of {UNITS}", unit)
    notes: Any = found.get("notes")
    is_random = found.get("is_random", False)
    are_notes = isinstance(notes, list) and all(map(_is_note, notes))
    _require(are_notes, "notes", "a list of texts with their codes", notes)
    _require(_is_note(found.get("stopped")), "stopped", "a text with its code", found.get("stopped"))
    _require(isinstance(is_random, bool), "is_random", "true or false", is_random)
    columns, names = found.get("columns"), found.get("names")
    _require(columns is None or _are_texts(columns), "columns", "a list of texts", columns)
    _require(names is None or _are_texts([n for n in names if n is not None]), "names", "a list of texts", names)
    among = found.get("among")
    _require(among is None or (isinstance(among, int) and 0 < among < 2**31), "among", "a number of rows", among)
    older = [UNCHECKED] if found["format"] == FIRST_FORMAT else []
    return {
        "facts": Facts(**texts, is_random=is_random, skill=Skill.from_dict(found.get("skill"))),
        "unit": unit,
        "stopped": note_of(found["stopped"]),
        "notes": [*map(note_of, notes), *older],
        "cost": _cost(found.get("cost")),
        "levels": None if found.get("levels") is None else _levels(found["levels"]),
        "among": among,
        "record": _record(found.get("record")),
        "columns": columns,
        "names": names,
    }


def _record(found: Any) -> Record | None:
    """How the valuation was made; an earlier version did not write it."""
    if found is None:
        return None
    _require(isinstance(found, dict), "record", "texts by name", found)
    texts = [found.get(name) for name in ("version", "date", "call")]
    seed, limits = found.get("seed"), found.get("limits")
    _require(_are_texts(texts), "record", "texts by name", found)
    _require(seed is None or (isinstance(seed, int) and seed >= 0), "seed", "a whole number", seed)
    _require(isinstance(limits, dict) and _are_texts(list(limits.values())), "limits", "texts by name", limits)
    return Record(found["version"], found["date"], found["call"], seed, limits)


def _require(right: bool, name: str, what: str, got: Any) -> None:
    if not right:
        raise ValueError(f"its {name} must be {what}; got {str(got)[:50]!r}")


def _are_rows(ids: pd.Index | None, among: int) -> bool:
    """Whether names of rows are their numbers, ascending."""
    if ids is None or ids.dtype.kind not in "iu":
        return False
    rows = ids.to_numpy()
    return bool(rows[0] >= 0 and rows[-1] < among and (np.diff(rows) > 0).all())


def _is_note(found: Any) -> bool:
    """Whether it is a note as `Note.to_dict` describes it, or a sentence, as earlier versions wrote it."""
    if not isinstance(found, dict):
        return isinstance(found, str)
    texts = found.get("code"), found.get("text")
    return found.keys() == {"code", "text", "data"} and _are_texts(list(texts)) and isinstance(found["data"], dict)


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(text, str) for text in found)


def _cost(found: Any) -> Cost:
    _require(isinstance(found, dict), "cost", "a list of numbers by name", found)
    cost = Cost(**found)
    for field in fields(Cost):
        entry = getattr(cost, field.name)
        if field.type == "str":
            _require(isinstance(entry, str), field.name, "a text", entry)
        else:
            kinds: Any = int if field.type == "int" else int | float
            is_number = isinstance(entry, kinds) and not isinstance(entry, bool)
            _require(is_number and 0 <= entry < 2**63, field.name, "a number of at least 0", entry)
    return cost


def _levels(found: Any) -> Levels:
    _require(isinstance(found, dict), "levels", "a list of counts by name", found)
    counts: dict[str, Any] = {name: _count(entry) for name, entry in found.items() if name != "growth"}
    growth: Any = found.get("growth")
    are_pairs = isinstance(growth, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in growth)
    _require(are_pairs, "growth", "a list of pairs", growth)
    return Levels(**counts, growth=[(_count(one), _count(two)) for one, two in growth])


def _count(text: Any) -> int:
    _require(isinstance(text, str) and text.startswith("0x"), "levels", "counts such as '0x1f'", text)
    return int(text, 16)


def _column(table: pa.Table, name: str) -> AnyArray:
    """A column without gaps."""
    import pyarrow as pa

    if name not in table.column_names:
        raise ValueError(f"no column {name!r}")
    kind = table.schema.field(name).type
    if not pa.types.is_floating(kind) and not pa.types.is_integer(kind):
        raise ValueError(f"its column {name!r} must hold numbers; it holds {kind}")
    if table[name].null_count:
        raise ValueError(f"its column {name!r} is empty in {table[name].null_count} rows")
    found: AnyArray = table[name].to_numpy()
    return found


def _floats(table: pa.Table, name: str, least: float = -np.inf) -> Floats:
    numbers = _column(table, name).astype(np.float64)
    _check_range(name, numbers, least)
    return numbers


def _check_range(name: str, numbers: AnyArray, least: float = -np.inf) -> None:
    if not np.isfinite(numbers).all() or (len(numbers) and numbers.min() < least):
        raise ValueError(f"its {name} must hold finite numbers{' of at least 0' if least == 0 else ''}")


def _whole(name: str, found: Any, most: int) -> Ints:
    """Whole numbers from 0 to `most`."""
    if isinstance(found, list) and not all(type(n) is int for n in found):
        raise ValueError(f"its {name} must be whole numbers")
    numbers = np.array(found)
    _require(numbers.ndim == 1 and (len(numbers) == 0 or numbers.dtype.kind in "iu"), name, "whole numbers", found)
    if len(numbers) and (numbers.min() < 0 or numbers.max() > most):
        raise ValueError(f"its {name} must be from 0 to {most}; got {numbers.min()} to {numbers.max()}")
    return numbers.astype(np.int64)


def _lists(table: pa.Table, name: str) -> tuple[Ints, AnyArray]:
    """Lengths of the lists in a column, and their entries, one after the other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name not in table.column_names:
        raise ValueError(f"no column {name!r}")
    kind = table.schema.field(name).type
    known = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    inner = kind.value_type if any(is_kind(kind) for is_kind in known) else None
    if inner is None or not (pa.types.is_floating(inner) or pa.types.is_integer(inner)):
        raise ValueError(f"its column {name!r} must hold lists of numbers; it holds {kind}")
    entries = pc.list_flatten(table[name])
    if table[name].null_count or entries.null_count:
        raise ValueError(f"its column {name!r} has gaps")
    return pc.list_value_length(table[name]).to_numpy().astype(np.int64), entries.to_numpy()


def _per_test(table: pa.Table, n_tests: int, name: str = "test_values") -> sparse.csr_array | None:
    if "tests" not in table.column_names:
        return None
    (lengths, tests), (others, numbers) = (_lists(table, name) for name in ("tests", name))
    if (lengths != others).any():
        raise ValueError(f"its columns 'tests' and {name!r} have lists of different lengths")
    tests = _whole("tests", tests, most=n_tests - 1)
    indptr = offsets(lengths)
    starts = np.zeros(len(tests) + 1, dtype=bool)
    starts[indptr] = True
    if (~starts[1:-1] & (np.diff(tests) <= 0)).any():
        raise ValueError("its tests must ascend in each row")
    _check_range(name, numbers)
    small = len(tests) <= np.iinfo(np.int32).max
    parts = numbers.astype(np.float64), tests.astype(np.int32), indptr.astype(np.int32 if small else np.int64)
    return sparse.csc_array(parts, shape=(n_tests, table.num_rows)).tocsr()


def _singles(table: pa.Table, name: str, least: int = 1) -> Singles | None:
    """Several numbers for each row, shape (n_rows, n), at least so many."""
    if name not in table.column_names:
        return None
    lengths, numbers = _lists(table, name)
    if (lengths != lengths[0]).any() or lengths[0] < least:
        raise ValueError(f"its column {name!r} must hold lists of one length, at least {least}")
    _check_range(name, numbers)
    return singles(numbers).reshape(table.num_rows, -1)


def _history(table: pa.Table, meta: dict[bytes, bytes]) -> History | None:
    values = _singles(table, "history_values")
    if values is None:
        return None
    stderr = _singles(table, "history_stderr")
    trainings = _whole("trainings", _json(meta, b"localshapley.trainings"), most=2**62)
    if stderr is None or values.shape != stderr.shape or values.shape[1] != len(trainings):
        raise ValueError("the parts of its history differ in length")
    _check_range("history_stderr", stderr.ravel(), 0)
    return History(trainings, values.T.copy(), stderr.T.copy())


def _origin(table: pa.Table, meta: dict[bytes, bytes], n_rows: int, n_tests: int) -> Origin | None:
    if b"localshapley.origin" not in meta:
        return None
    found = _json(meta, b"localshapley.origin")
    _require(_are_texts(found) and len(found) in (4, 6), "origin", "six texts", found)
    origin = Origin.from_text(meta[b"localshapley.origin"])
    if (len(origin.rows), len(origin.tests), len(origin.nothing)) != (n_rows, n_tests, n_tests):
        raise ValueError("its origin has another number of rows")
    if len(origin.folds) not in (0, n_rows):
        raise ValueError("its origin has another number of rows")
    apart = _per_test(table, n_tests, "test_apart") if "test_apart" in table.column_names else None
    if apart is not None:
        origin = replace(origin, apart=singles(apart.data))
    _check_range("origin", np.append(origin.nothing, origin.draws))
    _whole("origin", origin.folds, most=n_rows)
    return origin


def _digests(table: pa.Table, columns: list[str] | None) -> Digests | None:
    import pyarrow as pa

    if "digest" not in table.column_names:
        return None
    if table.schema.field("digest").type != pa.binary(24) or table["digest"].null_count:
        raise ValueError("its column 'digest' must hold 24 bytes for each row")
    words = np.frombuffer(b"".join(table["digest"].to_pylist()), dtype="<u8").astype(np.uint64).reshape(-1, 3)
    return Digests(words[:, :2].copy(), words[:, 2].copy(), columns)


def _index(table: pa.Table, names: list[str | None] | None) -> pd.Index:
    frame = table.drop_columns([name for name in LISTS if name in table.column_names]).to_pandas()
    if len(frame) != table.num_rows:
        raise ValueError("its index has another number of rows")
    index: pd.Index = frame.index
    if names is not None and set(names) & set(COLUMNS):
        _require(len(names) == index.nlevels, "names", f"{index.nlevels} texts", names)
        index = index.set_names(names)
    return index
