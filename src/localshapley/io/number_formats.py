"""How cells are written that mean numbers: with per cent signs, currencies, thousands, decimal commas, as dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats
from localshapley.io.tables import DECIMAL

MOSTLY = 0.8
"""A column of which more than this share are numbers is a column of numbers, with mistakes."""
MARKS = ((",", r"\."), ("[ \u00a0\u202f]", r"\."), ("['\u2019]", r"\."), (r"\.", ","))
"""Patterns of what separates thousands, and decimals: 1,234.5 and 1 234.5 and 1'234.5 and 1.234,5."""
CODES = "USD EUR GBP CHF JPY CNY INR CAD AUD NZD SEK NOK DKK PLN CZK HUF BRL MXN ZAR TRY RUB KRW SGD HKD kr zł Kč"
CURRENCY = rf"(?:[A-Z]{{0,2}}[$£¥\u20a0-\u20c0]|{'|'.join(CODES.split())})"
"""Signs of currencies, such as $, US$ and €, and their codes."""
WITH_CURRENCY = re.compile(rf"^[-+]?\s*({CURRENCY})|({CURRENCY})$")
FIRST_TEXTS, SOME_TEXTS = 100, 1000
"""Texts that tell which ways to write numbers are out of the question, and what most of a column looks like."""
YES_OR_NO = (("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("on", "off"))
"""Pairs of words that mean 1 and 0."""
ISO_DATE = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?"
"""Dates as ISO 8601 writes them, with or without a time."""
DATES, TIMES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"), ("", " %H:%M", " %H:%M:%S")
"""Other dates, which are read if only one of these fits all of them."""
YEAR_FIRST = ("%Y/%m/%d",)
WITH_MONTHS = ("%b %d %Y", "%b %d, %Y", "%B %d %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y")
"""Dates that cannot be taken for others: 2012/01/31, and those with the name of a month, such as Jan 31 2012."""
LOOKS = (
    ("dates", r"\d{1,4}([-./])\d{1,2}\1\d{1,4}\b.*", "write 2025-03-31"),
    ("times of day", r"\d{1,2}:\d\d(:\d\d)?", "write hours or minutes"),
    ("amounts of money", rf"\(?[-+]?{CURRENCY} ?\(?[-\d].*|[-+\d].*\d ?{CURRENCY}\)?", "write plain numbers"),
)
"""What cells may look like that are not read as numbers, how such cells are written, and what to do."""
WITH_UNIT = re.compile(r"[-+]?\d[\d.,]* ?([^\W\d_][^\d\s]{0,7})")
"""Numbers with a unit."""
MAX_UNITS = 3
"""A column with more different units holds codes."""


@dataclass(frozen=True)
class NumberFormat:
    """One way to write numbers.

    Attributes
    ----------
    how : str
        The way in words; empty for plain numbers.
    read : function
        Texts as numbers, NaN where one is written in another way.
    has_signs : bool
        Whether there are signs of currencies or of per cent, which tell numbers from codes.
    is_yes_or_no : bool
        Whether these are two words for 1 and 0.
    """

    how: str
    read: Callable[[pd.Series], Floats]
    has_signs: bool = False
    is_yes_or_no: bool = False


def spellings_of(column: pd.Series) -> list[NumberFormat]:
    """The ways in which all cells of a column can be read as numbers, the likeliest first; none for words."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return []
    if pd.api.types.is_bool_dtype(column):
        return [_yes_or_no("true", "false")]
    if _are_moments(column):
        return [NumberFormat("", _read_iso_dates)]
    if pd.api.types.is_numeric_dtype(column):
        return _like_numbers(column)
    texts = texts_of(column).drop_duplicates()
    likely = [*_ways(texts, has_commas(column)), *(_yes_or_no(*pair) for pair in YES_OR_NO), *_dates(texts)]
    return [way for way in likely if _reads(way, texts)]


def number_spellings(column: pd.Series) -> list[NumberFormat]:
    """The ways in which all texts of a column can be read as amounts: neither yes and no nor dates."""
    texts = texts_of(column).drop_duplicates()
    return [way for way in _ways(texts, has_commas(column)) if _reads(way, texts)]


def _reads(way: NumberFormat, texts: pd.Series) -> bool:
    """Whether all texts are written in a way; most that are not show it in the first of them."""
    return not any(np.isnan(way.read(part)).any() for part in (texts[:FIRST_TEXTS], texts))


def has_commas(column: pd.Series) -> bool:
    """Whether the column is of a file with decimal commas."""
    return bool(column.attrs.get(DECIMAL) == ",")


def texts_of(column: pd.Series) -> pd.Series:
    """The cells that are there, as text without spaces around it."""
    return column.dropna().astype(str).str.strip()


def read_numbers(column: pd.Series, ways: list[NumberFormat]) -> tuple[Floats, pd.Series]:
    """A column as floats, by the first way that fits all its cells, and the texts that the likeliest cannot read."""
    if pd.api.types.is_numeric_dtype(column):  # and True and False
        return np.asarray(column.astype("float64"), dtype=np.float64), pd.Series(dtype=object)
    if _are_moments(column):
        return _in_days(column), pd.Series(dtype=object)
    texts, there = texts_of(column), column.notna().to_numpy()
    read = ways[0].read(texts)
    if np.isnan(read).any():
        others = (way.read(texts) for way in ways[1:])
        read = next((found for found in others if not np.isnan(found).any()), read)
    numbers = np.full(len(column), np.nan)
    numbers[there] = read
    return numbers, texts[np.isnan(read)]


def few_words(column: pd.Series) -> pd.Series:
    """The words in a column that mostly holds numbers; none where it does not."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return pd.Series(dtype=object)
    texts = texts_of(column)
    different = texts.drop_duplicates()
    for way in _ways(texts, has_commas(column)):
        plainly = not way.how or way.has_signs  # other marks are as frequent in codes
        if plainly and np.isnan(way.read(_sample(texts))).mean() < 0.5:
            wrong = texts[texts.isin(different[np.isnan(way.read(different))])]
            if len(wrong) < (1 - MOSTLY) * len(texts):
                return wrong
    return texts[:0]


def looks_like(column: pd.Series) -> str:
    """What most cells of a column of words look like that could be numbers, and what to do; empty if like nothing.

    >>> looks_like(pd.Series(["70.1 kg", "65 kg"]))
    'which look like numbers in kg (to use them as such, write plain numbers)'
    """
    texts = _sample(texts_of(column))
    for what, pattern, remedy in LOOKS:
        if texts.str.fullmatch(pattern).mean() > MOSTLY:
            return f"which look like {what} (to use them as such, {remedy})"
    matches = [WITH_UNIT.fullmatch(text) for text in texts]
    units = sorted({match[1] for match in matches if match})
    if sum(match is not None for match in matches) > MOSTLY * len(texts) and len(units) <= MAX_UNITS:
        return f"which look like numbers in {' or '.join(units)} (to use them as such, write plain numbers)"
    return ""


def look_like_numbers(labels: AnyArray) -> bool:
    """Whether labels are numbers, or texts that all read as numbers."""
    column = pd.Series(labels)
    return column.dtype.kind in "iuf" or (column.dtype.kind != "b" and bool(number_spellings(column)))


def spelt_alike(words: AnyArray) -> list[str]:
    """Words that differ in case or in spaces around them only: the first such group.

    >>> spelt_alike(np.array(["no", "Yes", "yes "]))
    ['Yes', 'yes ']
    """
    groups: dict[str, list[str]] = {}
    for word in sorted(set(map(str, words))):
        groups.setdefault(word.strip().casefold(), []).append(word)
    return next((group for group in groups.values() if len(group) > 1), [])


def _like_numbers(column: pd.Series) -> list[NumberFormat]:
    """How texts may be written beside a column that was read as numbers: whole ones do not tell the decimal mark."""
    ways = [_marked(*marks) for marks in MARKS]
    if has_commas(column):
        return [ways[-1], PLAIN]
    numbers = column.astype("float64").dropna()
    return [PLAIN, *(ways if bool((numbers % 1 == 0).all()) else ways[:-1])]


def _ways(texts: pd.Series, commas: bool) -> Iterator[NumberFormat]:
    """The ways to write amounts: plain ones, and those with the currency and per cent signs that the texts have."""
    some = _sample(texts)
    per_cent = bool(some.str.endswith("%").mean() > MOSTLY)
    currencies = {found[1] or found[2] for found in map(WITH_CURRENCY.search, texts) if found}
    if not commas:
        yield PLAIN
    for marks in MARKS[-1:] if commas else MARKS:
        if len(currencies) < 2:  # euros beside dollars are not amounts of one kind
            way = _marked(*marks, currency="".join(currencies), per_cent=per_cent)
            if np.isnan(way.read(some)).mean() < 0.5:  # else there is no need to look at all of them
                money = bool(currencies)
                yield NumberFormat(_in_words(texts, *marks, money, per_cent, commas), way.read, money or per_cent)
    if commas:
        yield PLAIN


def _sample(texts: pd.Series) -> pd.Series:
    """Some texts from all over a long column."""
    return texts[:: max(len(texts) // SOME_TEXTS, 1)]


def _in_words(texts: pd.Series, thousands: str, decimal: str, money: bool, per_cent: bool, commas: bool) -> str:
    signs = ["per cent"] * per_cent + ["amounts of money"] * money
    if texts.str.contains(rf"\d{thousands}\d{{3}}(?!\d)").any():
        signs.append("dots as thousands separators" if commas else "thousands separators")
    signs += ["decimal commas"] if decimal == "," and not commas and texts.str.contains(",").any() else []
    return " and ".join(signs)


def _marked(thousands: str, decimal: str, currency: str = "", per_cent: bool = False) -> NumberFormat:
    """Numbers with these marks, and the currency before or behind some of them."""
    sign, end = re.escape(currency), r"\s*%" if per_cent else ""
    pattern = re.compile(
        rf"(?P<minus>[-+]?)\s*(?:{sign})?\s*(?P<inner>[-+]?)(?P<whole>\d+|[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+)"
        rf"(?:{decimal}(?P<rest>\d+))?\s*(?:{sign})?{end}"
    )
    return NumberFormat("", partial(_read_marked, pattern))


def _read_marked(pattern: re.Pattern[str], texts: pd.Series) -> Floats:
    numbers = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        found = pattern.fullmatch(text)
        if found and not (found["minus"] and found["inner"]):
            whole = re.sub(r"\D", "", found["whole"])
            numbers[i] = float(f"{found['minus'] or found['inner']}{whole}.{found['rest'] or 0}")
    return numbers


def _read_plain(texts: pd.Series) -> Floats:
    return np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)


PLAIN = NumberFormat("", _read_plain)


def _yes_or_no(yes: str, no: str) -> NumberFormat:
    def read(texts: pd.Series) -> Floats:
        words = texts.str.casefold()
        return np.where(words == yes, 1.0, np.where(words == no, 0.0, np.nan))

    return NumberFormat("yes or no", read, is_yes_or_no=True)


def _are_moments(column: pd.Series) -> bool:
    return bool(pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column))


def _in_days(column: pd.Series) -> Floats:
    """Dates as days since 1970, and durations in days; NaN where there are none."""
    since = column if pd.api.types.is_timedelta64_dtype(column) else pd.to_datetime(column, utc=True) - EPOCH
    return np.asarray(since.dt.total_seconds(), dtype=np.float64) / SECONDS


EPOCH, SECONDS = pd.Timestamp(0, tz="UTC"), 86_400.0


def _dates(texts: pd.Series) -> list[NumberFormat]:
    """How the dates among texts are written; nothing where day and month could be taken for each other."""
    if len(texts) and re.match(r"\d{1,2}[./]\d{1,2}[./]\d{4}", texts.iloc[0]):
        ways = [partial(_read_dates, day + time) for time, day in product(TIMES, DATES)]
        fitting = [read for read in ways if not np.isnan(read(texts)).any()]
        return [NumberFormat("dates", read) for read in fitting] if len(fitting) == 1 else []
    plain = YEAR_FIRST if len(texts) and re.match(r"\d{4}/", texts.iloc[0]) else WITH_MONTHS
    if len(texts) and re.match(r"\d{4}/\d|\d{1,2}[ -][^\W\d_]{3}|[^\W\d_]{3,9} \d", texts.iloc[0]):
        ways = [partial(_read_dates, day + time) for time, day in product(TIMES, plain)]
        return [NumberFormat("dates", read) for read in ways if not np.isnan(read(texts)).any()][:1]
    return [NumberFormat("dates", _read_iso_dates)]


def _read_dates(format: str, texts: pd.Series) -> Floats:
    return _in_days(pd.to_datetime(texts, format=format, errors="coerce"))


def _read_iso_dates(texts: pd.Series) -> Floats:
    given = texts.where(texts.str.fullmatch(ISO_DATE))
    return _in_days(pd.to_datetime(given, format="ISO8601", utc=True, errors="coerce"))


def label_text(cell: Any) -> str:
    """A label as decisions name it: whole numbers without decimals, words without spaces around them.

    >>> label_text(2.0), label_text(np.float64(0.1)), label_text(" yes"), label_text(True), label_text(None)
    ('2', '0.1', 'yes', 'True', '')
    """
    if isinstance(cell, bool | np.bool_):
        return str(cell)
    if isinstance(cell, float | np.floating):
        if np.isnan(cell):
            return ""
        return str(int(cell)) if np.isfinite(cell) and cell == int(cell) else str(cell)
    return "" if cell is None or cell is pd.NA or cell is pd.NaT else str(cell).strip()
