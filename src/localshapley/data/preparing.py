"""From a table with gaps and words to numbers: the preparation that the command line does automatically."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from shlex import quote

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from localshapley.arrays import AnyArray, Floats
from localshapley.data.rows import are_amounts, check_size
from localshapley.data.sentinels import find_sentinels
from localshapley.errors import LocalShapleyError
from localshapley.formatting import counted
from localshapley.io.spelling import (
    PLAIN,
    Spelling,
    few_words,
    has_commas,
    looks_like,
    number_spellings,
    read_numbers,
    spellings_of,
    spelt_alike,
)
from localshapley.io.tables import distinct
from localshapley.io.texts import MAX_DIRECTIONS, Directions, are_texts
from localshapley.notes import Note

MAX_CATEGORIES = 50
"""Maximum number of categories of a column that get a feature of their own; the rarest others share one."""
FREE_TEXT = 0.5
"""A column of other words with more different ones than this share of its rows identifies rows, and is left out."""
FEW_CATEGORIES = 10
"""With more categories than this, those that look like numbers are pointed out."""
MOSTLY_UNKNOWN = 0.5
"""If more than this share of the test cells have a category that the training rows lack, this is pointed out."""
MAX_LISTED = 20
"""Number of columns that a line names."""


@dataclass
class PreparedTable:
    """Rows as numbers.

    Attributes
    ----------
    X, X_test : arrays
        `X_test` is None where there are no test rows.
    names : list of str
        The features.
    steps : list of Note
        What was done.
    """

    X: Floats
    X_test: Floats | None
    names: list[str]
    steps: list[Note] = field(default_factory=list)


@dataclass
class _Columns:
    """What columns hold: numbers with the ways to read them, categories, texts; and what to say of the others."""

    numbers: dict[str, list[Spelling]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    steps: list[Note] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The columns that are used."""
        return [*self.numbers, *self.words, *self.texts]


def prepare(
    train: pd.DataFrame,
    test: pd.DataFrame | None = None,
    categories: Sequence[str] = (),
    test_name: str = "the test rows",
) -> PreparedTable:
    """Fill gaps, scale numbers, give each category a feature, and texts a few, all learnt from training rows.

    Parameters
    ----------
    train, test : DataFrames
        Test rows may lack columns that are left out.
    categories : column names
        Numbers that are codes and not amounts.
    test_name : str
        What messages call the test rows, such as the name of their file.
    """
    columns = _sorted_out(train, test, categories)
    lacking = [] if test is None else [name for name in columns.names if name not in test.columns]
    if lacking:
        raise LocalShapleyError(
            f"{test_name} lacks the column {lacking[0]!r} of the training rows; both need the same columns."
        )
    tables = [_typed(train, columns)] + ([] if test is None else [_typed(test, columns, test_name)])
    for name in columns.numbers:
        check_size(f"column {name!r}", tables[0][name].to_numpy())
    transformer = _transformer(columns)
    X = transformer.fit_transform(tables[0])
    X_test = transformer.transform(tables[1]) if test is not None else None
    steps = [*_done(train, tables[0], columns), *columns.steps, *_about_words(columns.words, *tables)]
    for line, code in find_sentinels(*(table[list(columns.numbers)] for table in tables)):
        text = f"{line}; if it stands for a gap, say so (on the command line, --na={code})"
        steps.append(Note("gap-code", text, number=code))
    return PreparedTable(np.asarray(X, dtype=np.float64), X_test, _features(transformer, columns), steps)


def _sorted_out(train: pd.DataFrame, test: pd.DataFrame | None, categories: Sequence[str]) -> _Columns:
    """What the columns of the training rows hold."""
    out = _Columns()
    for name in train.columns:
        column = train[name]
        ways = [] if name in categories or column.isna().all() else spellings_of(column)
        if ways and ways[0].is_yes_or_no and test is not None and name in test.columns:
            ways = [] if len(read_numbers(test[name], ways)[1]) else ways  # a third word is a category like the two
        if column.isna().all():
            out.steps.append(Note("column-left-out", f"left out {name!r}: it is empty", column=name))
        elif ways:
            out.numbers[name] = ways
            if pd.api.types.is_integer_dtype(column) and column.is_unique and len(column) > MAX_CATEGORIES:
                text = (
                    f"{name!r} is different in every row and was used as a feature; if it names rows, give it as the id"
                )
                out.steps.append(Note("column-may-name-rows", text, column=name))
        elif name in categories:
            out.words.append(name)
        else:
            _sort_words(column, out)
    if not out.names:
        raise LocalShapleyError("no column is left to learn from: " + "; ".join(out.steps) + ".")
    return out


def _sort_words(column: pd.Series, out: _Columns) -> None:
    """Say whether a column of words holds texts, categories or what identifies rows; mistyped numbers are refused."""
    wrong = few_words(column)
    if len(wrong):
        missing = ""
        if wrong.nunique() == 1 and "," not in wrong.iloc[0]:
            missing = f"if {wrong.iloc[0]!r} stands for a gap, say so (--na {quote(wrong.iloc[0])}), or, "
        raise LocalShapleyError(
            f"column {column.name!r} holds numbers except in {counted(len(wrong), 'row')}, first {wrong.iloc[0]!r} in "
            f"row {wrong.index[0]}; fix or empty these cells, or, {missing}if they are codes, give the column as a "
            f"category (on the command line, --category {quote(str(column.name))})."
        )
    n, like = column.nunique(), looks_like(column)
    if not like and _is_text(column):
        out.texts.append(str(column.name))
    elif n > max(MAX_CATEGORIES, FREE_TEXT * len(column)):
        described = f"{n:,} different texts in {len(column):,} rows" + (f", {like}" if like else "")
        out.steps.append(Note("column-left-out", f"left out {column.name!r}: {described}", column=column.name))
    else:
        out.words.append(str(column.name))
        if like and n > FEW_CATEGORIES:
            text = f"{column.name!r} used as categories, {like}"
            out.steps.append(Note("numbers-as-categories", text, column=column.name, n_categories=n))


def _transformer(columns: _Columns) -> ColumnTransformer:
    """What makes numbers of the columns."""
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False)
    missing = SimpleImputer(strategy="constant", fill_value="(missing)")
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), list(columns.numbers)),
            ("words", make_pipeline(missing, encoder), columns.words),
            *((f"text {name}", Directions(), name) for name in columns.texts),
        ],
        sparse_threshold=0,
        verbose_feature_names_out=False,
    )


def _features(transformer: ColumnTransformer, columns: _Columns) -> list[str]:
    """The names of the features."""
    features = list(columns.numbers)
    if columns.words:
        features += list(transformer.named_transformers_["words"][-1].get_feature_names_out(columns.words))
    for name in columns.texts:
        made = transformer.named_transformers_[f"text {name}"].get_feature_names_out()
        features += [f"{name}_{number}" for number in made]
    return distinct(features)


def _done(train: pd.DataFrame, typed: pd.DataFrame, columns: _Columns) -> list[Note]:
    """What was done to the columns that are used."""
    numbers, words, texts = list(columns.numbers), columns.words, columns.texts
    filled = [name for name in numbers if typed[name].isna().any()]
    done = list[Note]()
    if numbers:
        text = f"{_columns(numbers)} of numbers scaled to mean 0 and deviation 1"
        done.append(Note("numbers-scaled", text, n_columns=len(numbers)))
    if filled:
        done.append(Note("gaps-filled", f"gaps in {_listed(filled)} filled with the median", columns=filled))
    if words:
        done.append(_about_categories(typed[words]))
    if texts:
        text = f"{_listed(texts)} as what the words differ in most, at most {MAX_DIRECTIONS} numbers for a column"
        done.append(Note("texts-as-numbers", text, columns=texts))
    spelt = dict[str, list[str]]()
    for name, ways in columns.numbers.items():
        if not pd.api.types.is_numeric_dtype(train[name]):
            spelt.setdefault(ways[0].how, []).append(name)
    return done + [
        Note("read-as-numbers", f"{_listed(names)} read as numbers ({how})", columns=names, how=how)
        for how, names in spelt.items()
        if how
    ]


def _about_words(words: list[str], train: pd.DataFrame, test: pd.DataFrame | None = None) -> Iterator[Note]:
    """What to say of categories that are probably one, and of those that only test rows have."""
    for name in words:
        known = train[name].dropna().unique()
        alike = spelt_alike(known)
        if alike:
            text = f"{name!r} has {' and '.join(map(repr, alike))}, categories that differ in case or spaces only"
            yield Note("categories-alike", text, column=name, categories=alike)
        cells = pd.Series(dtype=object) if test is None else test[name].dropna()
        unknown = ~cells.isin(known)
        if unknown.sum() > MOSTLY_UNKNOWN * len(cells):
            text = (
                f"{int(unknown.sum()):,} of {len(cells):,} test rows have a category in {name!r} that no training row "
                f"has, first {cells[unknown].iloc[0]!r}"
            )
            yield Note("categories-unseen", text, column=name, n_unseen=int(unknown.sum()), n_tests=len(cells))


def _is_text(column: pd.Series) -> bool:
    """Whether there are more different cells than categories may have, and they are texts."""
    few = isinstance(column.dtype, pd.CategoricalDtype) or column.nunique() <= MAX_CATEGORIES
    return not few and are_texts(column)


def _about_categories(table: pd.DataFrame) -> Note:
    """How words became features, with the columns of which the rarest had to share one."""
    names, counts = list(table.columns), table.nunique(dropna=False)
    text = f"{_columns(names)} of categories ({_listed(names)}) as one feature for each category"
    merged = [name for name in names if counts[name] > MAX_CATEGORIES]
    if merged:
        text += f", at most {MAX_CATEGORIES} for a column: the rarest of {_listed(merged)} share one"
    return Note("categories-as-features", text, columns=names, merged=merged)


def _typed(table: pd.DataFrame, columns: _Columns, test_name: str | None = None) -> pd.DataFrame:
    """The columns that are used, as floats and as texts."""
    out = {}
    for name, ways in columns.numbers.items():
        numbers, wrong = read_numbers(table[name], ways)
        if len(wrong):
            raise LocalShapleyError(_misread(f"column {name!r}", wrong, test_name or "the table", name))
        out[name] = np.where(np.isinf(numbers), np.nan, numbers)
    for name in columns.words:
        cells = _without_fractions(table[name])
        out[name] = cells.astype(object).where(cells.notna(), None).map(str, na_action="ignore").to_numpy(object)
    for name in columns.texts:
        out[name] = table[name].astype(object).where(table[name].notna(), "").map(str).to_numpy(object)
    return pd.DataFrame(out, index=table.index)


def _misread(what: str, wrong: pd.Series, where: str, category: str | None = None) -> str:
    """What to say of cells that are not written as in the training rows."""
    remedy = (
        f", or give the column as a category (on the command line, --category {quote(str(category))})"
        if category
        else ""
    )
    return (
        f"{what} holds numbers in the training rows, but {where} has {counted(len(wrong), 'other cell')}, first "
        f"{wrong.iloc[0]!r} in row {wrong.index[0]}; write them as in the training rows, or empty them{remedy}."
    )


def _without_fractions(column: pd.Series) -> pd.Series:
    """Codes that a gap turned into floats as whole numbers again, so that 7.0 is the category 7."""
    if not pd.api.types.is_float_dtype(column):
        return column
    numbers = column.astype("float64")
    is_whole = bool((numbers.dropna() % 1 == 0).all()) and bool((numbers.abs().dropna() < 2**53).all())
    return numbers.astype("Int64") if is_whole else column


def _columns(names: list[str]) -> str:
    return "1 column" if len(names) == 1 else f"{len(names)} columns"


def _listed(names: list[str], most: int = MAX_LISTED) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def labels_of(column: pd.Series, like: pd.Series | None = None, where: str = "") -> tuple[AnyArray, bool]:
    """Labels or numbers to predict, and whether they are numbers.

    Parameters
    ----------
    column : Series
    like : Series, optional
        The labels of the training rows, which tell how numbers are written.
    where : str, optional
        The file that the column is from, where messages should name it.
    """
    what = f"the target {column.name!r}" + (f" of {where}" if where else "")
    missing = column.index[column.isna()]
    if len(missing):
        raise LocalShapleyError(
            f"{what} is missing in {counted(len(missing), 'row')}, first in row {missing[0]}; "
            "fill it in, or leave these rows out (--drop-missing-target). Cells that read NA, null or None are "
            "missing, too; if that is a class, let only empty cells be missing (--na '')."
        )
    if column.dtype.kind in "mM":
        raise LocalShapleyError(f"{what} holds dates or times; write numbers to predict, such as days since a date.")
    ways = _ways_of_target(column if like is None else like)
    if ways is None:  # spaces do not make another class
        return _without_fractions(column).astype(str).str.strip().to_numpy(dtype=str), False
    numbers, wrong = read_numbers(column, ways)
    if len(wrong):
        raise LocalShapleyError(_misread(f"the target {column.name!r}", wrong, where or "the table"))
    if pd.api.types.is_numeric_dtype(column):
        numbers = column.to_numpy()
    if numbers.dtype.kind == "f" and (numbers % 1 == 0).all():
        numbers = numbers.astype(np.int64)
    return numbers, are_amounts(numbers)


def _ways_of_target(column: pd.Series) -> list[Spelling] | None:
    """How the numbers of a target are written; None for words, and for numbers that are kept as text."""
    if pd.api.types.is_numeric_dtype(column):
        return spellings_of(column)
    ways = [] if isinstance(column.dtype, pd.CategoricalDtype) else number_spellings(column)
    kept = not ways or (ways[0] is PLAIN and not has_commas(column))
    return None if kept else ways
