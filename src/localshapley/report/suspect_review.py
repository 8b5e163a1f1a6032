"""What a reader needs to decide on suspects: each row as it is in the table, beside its nearest rows of both labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats, Ints, Masks
from localshapley.audit.apply_decisions import COLUMNS, contents_text
from localshapley.data.preparing import prepare
from localshapley.data.row_digests import digest_cells
from localshapley.errors import LocalShapleyError
from localshapley.io.number_formats import label_text
from localshapley.report.html_tables import MAX_NUMBER, MAX_TEXT, each_once, number, size_of, text
from localshapley.report.row_details import MAX_BYTES, MAX_FEATURES, Rows

N_NEAREST = (5, 2, 0)
"""Nearest rows of each label beside a suspect; fewer where their images would make the page too large."""
MAX_IMAGE_BYTES = 3_000_000
LONG_TEXT = 400
"""Maximum number of characters of a cell beside a suspect, if the column fits into the page."""
MAX_LABELS = 1000
"""Maximum number of labels that are offered."""
MAX_CELLS = 50_000_000
"""Of a larger table, the neighbours that were found with the suspects are shown, and no others are looked for."""
AT_ONCE = 2**22
"""Distances that are in memory at a time."""


def make_bench(rows: Rows, suspects: pd.DataFrame, *, numbers: bool) -> dict[str, Any] | None:
    """Collect it as plain data; None where rows cannot be told apart by their names."""
    places = rows.ids.get_indexer(suspects.index) if rows.ids.is_unique else np.array([-1])
    names = _texts(rows.ids)
    if (places < 0).any() or not suspects.index.is_unique or not pd.Index(names).is_unique:
        return None
    contents = digest_cells(rows.whole)[:, 0]
    judged = zip(suspects["label"], suspects["suggested"], strict=True)
    found, near, images = _with_images(rows, suspects, places, numbers)
    columns, cells = _columns(rows.originals, near)
    return {
        "key": _key(rows, names, contents),
        "heads": list(COLUMNS),
        "target": text(rows.label),
        "numbers": numbers,
        "allowed": _allowed(suspects["label"]),
        "labels": _labels(rows, suspects, numbers),
        "suspects": [
            [str(names[z]), _valid(old), _suggested(new, numbers), contents_text(contents[z]), *beside]
            for z, (old, new), beside in zip(places, judged, found, strict=True)
        ],
        "columns": columns,
        "n_columns": rows.originals.shape[1],
        "names": [rows.name_of(z) for z in near],
        "own": [] if rows.y is None else [_valid(rows.y.iloc[z]) for z in near],
        "cells": cells,
        "images": images,
    }


def _texts(cells: pd.Index | pd.Series) -> AnyArray:
    """Names or labels as decisions have them, each different one once."""
    if pd.api.types.is_integer_dtype(cells):
        return np.asarray(cells.astype(str), dtype=object)
    return each_once(cells, _valid)


def _key(rows: Rows, names: AnyArray, contents: Masks) -> str:
    """What the choices of a reader are kept under: the same for the same table, whatever the order of its rows."""
    labels = "" if rows.y is None else _texts(rows.y)
    whole = pd.DataFrame({"name": names, "contents": contents, "label": labels})
    words = pd.util.hash_pandas_object(whole, index=False).to_numpy(dtype=np.uint64)
    return f"localshapley decisions {int(words.sum(dtype=np.uint64)):016x}"


def _labels(rows: Rows, suspects: pd.DataFrame, numbers: bool) -> list[str]:
    """Labels to choose from, the most frequent first; none where they are amounts."""
    if numbers:
        return []
    every = suspects["label"] if rows.y is None else rows.y
    return [_valid(label) for label in every.dropna().astype(object).value_counts().index[:MAX_LABELS]]


def _allowed(labels: pd.Series) -> str:
    """Which labels fit into the column: any, numbers, or only those that are known."""
    if pd.api.types.is_bool_dtype(labels):
        return "known"
    return "numbers" if pd.api.types.is_numeric_dtype(labels) else "any"


def _suggested(label: Any, numbers: bool) -> str:
    return label_text(float(f"{label:.6g}")) if numbers and pd.notna(label) else _valid(label)


def _valid(cell: Any) -> str:
    """A name or label as decisions have it, of valid characters."""
    return label_text(cell).encode("utf-8", "replace").decode()


def _with_images(
    rows: Rows, suspects: pd.DataFrame, places: Ints, numbers: bool
) -> tuple[list[list[Any]], Ints, list[str]]:
    """Rows to show, their images, and for each suspect where it and its nearest rows are among them, and how far."""
    table = _as_numbers(rows)
    for n in N_NEAREST:
        beside = list(_nearest(rows, table, suspects, places, numbers, n))
        near = np.unique(np.concatenate([places, *(part for pair in beside for part in pair)]).astype(np.int64))
        images = [image for _, cells in rows.images(near) for image in cells]
        if sum(map(len, images)) <= MAX_IMAGE_BYTES:
            break
    else:
        images = []
    found = [
        [
            int(np.searchsorted(near, z)),
            *(np.searchsorted(near, part).tolist() for part in pair),
            [_distance(table, z, part) for part in pair],
        ]
        for z, pair in zip(places, beside, strict=True)
    ]
    return found, near, images


def _nearest(
    rows: Rows, table: Floats | None, suspects: pd.DataFrame, places: Ints, numbers: bool, n: int
) -> Iterator[tuple[Ints, Ints]]:
    """The nearest rows of each suspect with another label, and with its own; all nearest rows where labels are amounts.

    Without rows that distances can be measured between, the neighbours that were found with the suspects.
    """
    labels = rows.known_labels
    if table is None or labels is None:
        for neighbours in suspects["neighbours"]:
            found = rows.ids.get_indexer_for(neighbours[:n])
            yield found[found >= 0], places[:0]
        return
    codes = np.arange(len(labels)) if numbers else pd.factorize(labels)[0]
    step = max(1, AT_ONCE // len(table))
    for start in range(0, len(places), step):
        part = places[start : start + step]
        for z, away in zip(part, _distances(table[part], table), strict=True):
            away[z] = np.inf
            is_own = codes == codes[z]
            yield (
                _first(np.where(is_own, np.inf, away), 2 * n if numbers else n),
                _first(np.where(is_own, away, np.inf), n),
            )


def _first(away: Floats, n: int) -> Ints:
    """The `n` nearest rows that are not infinitely far."""
    nearest = np.argpartition(away, min(n, len(away) - 1))[:n]
    nearest = nearest[np.lexsort((nearest, away[nearest]))]
    return nearest[np.isfinite(away[nearest])]


def _distance(table: Floats | None, z: int, part: Ints) -> float | int | None:
    """Mean distance of a row to some others, in standard deviations."""
    return (
        number(float(np.linalg.norm(table[part] - table[z], axis=1).mean()))
        if table is not None and len(part)
        else None
    )


def _distances(some: Floats, table: Floats) -> Floats:
    """Squared Euclidean distances of some rows to all, without what is the same for all rows."""
    found: Floats = (table**2).sum(axis=1) - 2 * some @ table.T
    return found


def _as_numbers(rows: Rows) -> Floats | None:
    """The rows as standardised numbers, as suspects are found with; None where there are none."""
    from sklearn.preprocessing import StandardScaler

    given = rows.given
    if not 0 < given.size <= MAX_CELLS:
        return None
    try:
        scaled: Floats = StandardScaler().fit_transform(prepare(given).X)
    except (LocalShapleyError, TypeError, ValueError):  # columns that hold something else than numbers or words
        return None
    return scaled


def _columns(table: pd.DataFrame, places: Ints) -> tuple[list[list[Any]], list[list[Any]]]:
    """Names of the columns that fit into the page, with the standard deviations of those of numbers; their cells."""
    heads, columns, room = list[list[Any]](), list[list[Any]](), MAX_BYTES
    for i in range(min(MAX_FEATURES, table.shape[1])):
        column = table.iloc[:, i]
        scale, kinds = _cells(column, places)
        cells = next((cells for cells in kinds if size_of(({}, cells)) <= room), None)
        if cells is not None:
            heads.append([text(table.columns[i]), scale])
            columns.append(cells)
            room -= size_of(({}, cells))
    return heads, [list(row) for row in zip(*columns, strict=True)]


def _cells(column: pd.Series, places: Ints) -> tuple[float | int | None, list[list[Any]]]:
    """The standard deviation of a column of numbers, and its cells, exactly; cells of other columns in two lengths."""
    some = column.iloc[places]
    if pd.api.types.is_any_real_numeric_dtype(column):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        finite = numbers[np.isfinite(numbers)]
        if np.abs(finite).max(initial=0) < MAX_NUMBER and np.isinf(numbers).sum() == 0:
            with np.errstate(over="ignore"):
                return number(float(finite.std())) if len(finite) else None, [
                    [_exact(cell) for cell in some.to_numpy()]
                ]
    return None, [[text(cell, length) for cell in some] for length in (LONG_TEXT, MAX_TEXT)]


def _exact(cell: Any) -> int | float | None:
    """A number with the digits that it has in the user's table, without those that arithmetic adds."""
    if pd.isna(cell):
        return None
    exact = float(f"{float(str(cell)):.12g}")  # a number of single precision has fewer digits
    return int(exact) if exact == int(exact) else exact
