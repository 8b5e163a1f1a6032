"""Tables as plain data: columns with a kind, rows of cells that JSON can hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from math import floor, isfinite, log10
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from localshapley.formatting import probability, shortened

MAX_TEXT = 60
"""Maximum number of characters of a cell; what is longer loses its middle."""
MAX_NUMBER = 2**53
"""Beyond this, double precision may not hold the number in the user's table exactly."""

Column = tuple[dict[str, Any], list[Any]]
Table = dict[str, Any]


def text_column(name: object, cells: Iterable[Any], *, choice: bool = False) -> Column:
    """A column of texts; with `choice` the page offers its values as a filter."""
    column = {"name": text(name), "kind": "text"}
    return column | {"choice": True} if choice else column, [text(cell) for cell in cells]


def number_column(
    name: object, cells: Sequence[Any] | np.ndarray | pd.Series, *, decimals: int | None = None, sign: bool = False
) -> Column:
    """A column of numbers, rounded as they are shown; with `sign` the page offers below and above zero as a filter."""
    numbers = np.asarray(cells, dtype=np.float64)
    decimals = decimals_of(numbers) if decimals is None else decimals
    column = {"name": text(name), "kind": "number", "decimals": decimals}
    return column | {"sign": True} if sign else column, [number(x, decimals) for x in numbers]


def probability_column(name: str, cells: pd.Series) -> Column:
    """A column of estimated probabilities, none of which is shown as 0 or 1."""
    column, numbers = number_column(name, cells.clip(0.0001, 0.9999), decimals=4)
    return column | {"decimals": 2, "probability": True}, numbers


def image_column(name: str, images: Iterable[str]) -> Column:
    """A column of PNG images, each as base64."""
    return {"name": name, "kind": "image"}, list(images)


def any_column(name: object, cells: pd.Series, *, choice: bool = False) -> Column:
    """A column of the user's table: numbers stay numbers, everything else becomes text; with `choice` a filter too."""
    is_number = pd.api.types.is_any_real_numeric_dtype(cells)
    numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan) if is_number else np.array([np.inf])
    fits = np.nan_to_num(np.abs(numbers)).max(initial=0) < MAX_NUMBER
    head, found = number_column(name, numbers) if fits else text_column(name, cells)
    return head | {"choice": True} if choice else head, found


def extra(column: Column) -> Column:
    """A column that the page hides until a reader chooses it."""
    head, cells = column
    return head | {"extra": True}, cells


def as_table(columns: Iterable[Column]) -> Table:
    """Columns side by side: ``{"columns": [...], "rows": [[...], ...]}``."""
    heads, cells = zip(*columns, strict=True)
    return {"columns": list(heads), "rows": [list(row) for row in zip(*cells, strict=True)]}


def cells_of(table: Table, name: str) -> list[Any]:
    """The cells of a column, by its name."""
    place = [column["name"] for column in table["columns"]].index(name)
    return [row[place] for row in table["rows"]]


def text(cell: Any, length: int = MAX_TEXT) -> str:
    """Any object as a short text of valid characters; nothing for a missing one."""
    if cell is None or cell is pd.NaT or cell is pd.NA or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    if isinstance(cell, tuple):
        words = " / ".join(text(part, length) for part in cell)
    elif isinstance(cell, pd.Timestamp) and cell == cell.normalize():
        words = cell.date().isoformat()
    elif isinstance(cell, float | np.floating):
        words = f"{cell:.6g}"
    else:
        words = str(cell)
    words = words.encode("utf-8", "replace").decode()
    return shortened(words, length)


def each_once(cells: pd.Index | pd.Series, as_text: Callable[[Any], str]) -> np.ndarray:
    """Texts of many cells; each different one is made once, unless cells cannot be told apart quickly."""
    try:
        codes, kinds = pd.factorize(cells, use_na_sentinel=False)
    except TypeError:  # lists, for example
        return np.array([as_text(cell) for cell in cells], dtype=object)
    return np.array([as_text(kind) for kind in kinds], dtype=object)[codes]


def number(x: float, decimals: int | None = None) -> int | float | None:
    """A number to `decimals`, or to five digits where these are not given or would round it to zero.

    None where it is not finite.
    """
    if not isfinite(x):
        return None
    short = 0.0 if decimals is None else round(float(x), decimals)
    short = short or float(f"{x:.5g}")
    return int(short) if short == floor(short) and abs(short) < MAX_NUMBER else short


def with_error(x: float, stderr: float) -> str:
    """A number ± its standard error, both to two digits of the error."""
    if not stderr:
        return f"{x:.4g}"
    decimals = _two_digits(stderr)
    return f"{x:.{decimals}f} ± {stderr:.{decimals}f}"


def with_interval(low: float, x: float, high: float) -> str:
    """A number with the ends of its interval, all to two digits of half the interval."""
    if low == high:
        return f"{x:.4g}"
    decimals = _two_digits((high - low) / 2)
    return f"{x:.{decimals}f} ({low:.{decimals}f} to {high:.{decimals}f})"


def _two_digits(error: float) -> int:
    return max(1 - floor(log10(error)), 0)


def show(cell: Any, column: dict[str, Any]) -> str:
    """A cell as the page prints it; `script.js` has the same function."""
    if column["kind"] != "number":
        return str(cell)
    if cell is None:
        return ""
    if column.get("probability"):
        return probability(cell)
    decimals = column["decimals"]
    return f"{cell:.3e}" if decimals is None else f"{cell:.{decimals}f}"


def to_script(data: Any) -> Markup:
    """JSON that is safe inside a script element: nothing in it can end the element or start another."""
    words = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(words.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def decimals_of(numbers: np.ndarray) -> int | None:
    """Decimals that give a typical number four digits; None where only powers of ten can show the numbers."""
    finite = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    if not len(finite):
        return 0
    decimals = max(3 - floor(log10(float(np.median(finite)))), 0)
    if decimals > 8 or finite.max() >= MAX_NUMBER:
        return None
    return next((d for d in range(decimals) if np.allclose(finite.round(d), finite, rtol=1e-9, atol=0)), decimals)


def size_of(column: Column) -> int:
    """Bytes that a column takes in the page."""
    return len(to_script(column[1]).encode())
