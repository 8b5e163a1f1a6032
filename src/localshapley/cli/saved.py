"""Saved values beside the table that they are about: which of its rows were valued, and in which order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import localshapley as ls
from localshapley.errors import LocalShapleyError
from localshapley.notes import Note

if TYPE_CHECKING:
    import pandas as pd

    from localshapley.arrays import Ints


def load_values(option: str, path: Path) -> ls.Valuation:
    """Read saved values."""
    if not path.is_file():
        raise LocalShapleyError(
            f"{option} {path} is {'a folder' if path.is_dir() else 'not there'}; give what `localshapley value --out "
            "values.parquet` has written."
        )
    return ls.load(path)


def valued_rows(
    valuation: ls.Valuation,
    table: pd.DataFrame,
    path: Path,
    *,
    named: bool,
    target: str | None = None,
    left_out: tuple[str, ...] = (),
) -> tuple[pd.DataFrame, ls.Valuation]:
    """The rows of a table that were valued, in its order, and their values in the same order under its names.

    Parameters
    ----------
    valuation : Valuation
    table : DataFrame
        With the names of the rows, or their numbers, as its index.
    path : Path
        Where the table comes from.
    named : bool
        Whether rows are found by their names; otherwise they are found by their contents.
    target : str, optional
        The column of labels.
    left_out : column names
        Columns that are no features, if the valuation does not know the names of its own.
    """
    import numpy as np

    from localshapley.valuation.table_matching import reordered

    if valuation.unit != "row":
        raise LocalShapleyError(f"these are values of {valuation.unit}s, and {path} has rows.")
    place = _places(valuation, table, path, named, target, left_out)
    order = np.argsort(place)
    rows = table.iloc[place[order]]
    notes = [] if target is None else _about_labels(valuation, table.iloc[place][target])
    found = reordered(valuation, order, rows.index)
    return rows, replace(found, notes=[*found.notes, *notes])


def _places(
    valuation: ls.Valuation,
    table: pd.DataFrame,
    path: Path,
    named: bool,
    target: str | None,
    left_out: tuple[str, ...],
) -> Ints:
    """Where each valued row is in the table."""
    import numpy as np

    from localshapley.data.indexes import places_of
    from localshapley.data.preparing import labels_of
    from localshapley.valuation.table_matching import find_rows

    digests, names = valuation.digests, valuation.to_frame().index
    features = table.drop(columns=[name for name in (target, *left_out) if name is not None])
    if digests is not None and digests.columns is not None:
        lacking = [name for name in digests.columns if name not in features.columns]
        if lacking:
            raise _does_not_fit(path, f"it has no column {lacking[0]!r}")
    if named or digests is None:
        place = places_of(names, table.index)
        if (place < 0).any():
            raise _does_not_fit(path, f"it has no row {names[int(np.argmin(place))]!r}")
    if digests is None:
        return place
    if named:
        changed = (digests.of_table(features.iloc[place]) != digests.rows).any(axis=1)
        if changed.any():
            which = f"{int(changed.sum())} of {len(names)} rows have changed since, first {names[changed][0]!r}"
            raise _does_not_fit(path, which)
        return place
    y = None if target is None else labels_of(table[target])[0]
    place = find_rows(valuation, digests.of_table(features), y)
    if (place < 0).any():
        raise _does_not_fit(path, f"{int((place < 0).sum())} of {len(place)} rows are not in it")
    return place


def _does_not_fit(path: Path, why: str) -> LocalShapleyError:
    return LocalShapleyError(f"{path} is not the table that was valued: {why}; give that table, or value this one.")


def _about_labels(valuation: ls.Valuation, column: pd.Series) -> list[Note]:
    from localshapley.data.preparing import labels_of
    from localshapley.valuation.table_matching import about_changed, n_changed_labels

    changed = 0 if valuation.digests is None else n_changed_labels(valuation, labels_of(column)[0])
    text = about_changed(changed, "run `localshapley value` again")
    return [Note("labels-changed", text, n_labels=changed)] if changed else []
