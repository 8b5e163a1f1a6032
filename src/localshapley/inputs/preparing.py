"""From a table with gaps and words to numbers: the preparation that the command line does automatically."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from localshapley.arrays import AnyArray, Floats
from localshapley.errors import LocalShapleyError
from localshapley.inputs.data import are_amounts
from localshapley.inputs.numbers import check_size
from localshapley.inputs.tables import distinct
from localshapley.inputs.texts import MAX_DIRECTIONS, Directions, are_texts
from localshapley.wording import counted

MAX_CATEGORIES = 50
"""Maximum number of categories of a column that get a feature of their own; the rarest others share one."""
FREE_TEXT = 0.5
"""A column of other words with more different ones than this share of its rows identifies rows, and is left out."""
MOSTLY = 0.8
"""A column of which more than this share are numbers is a column of numbers, with mistakes."""
DATE = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?"
"""Dates as ISO 8601 writes them, with or without a time. Others could be read in two ways."""
YES_OR_NO = (("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("on", "off"))
"""Pairs of words that mean 1 and 0."""
SPELLINGS = ((",", r"\."), ("[ \u00a0\u202f]", r"\."), ("['\u2019]", r"\."), (r"\.", ","))
"""Patterns of what separates thousands, and decimals: 1,234.5 and 1 234.5 and 1'234.5 and 1.234,5."""


@dataclass
class Prepared:
    """Rows as numbers.

    Attributes
    ----------
    X, X_test : arrays
        `X_test` is None where there are no test rows.
    names : list of str
        The features.
    steps : list of str
        What was done, in words.
    """

    X: Floats
    X_test: Floats | None
    names: list[str]
    steps: list[str] = field(default_factory=list)


def prepare(train: pd.DataFrame, test: pd.DataFrame | None = None, categories: Sequence[str] = ()) -> Prepared:
    """Fill gaps, scale numbers, give each category a feature, and texts a few, all learnt from training rows.

    Parameters
    ----------
    train, test : DataFrames with the same columns
    categories : column names
        Numbers that are codes and not amounts.
    """
    numbers, words, texts, steps, spelt = [], [], [], [], dict[str, list[str]]()
    for name in train.columns:
        column = train[name]
        found, how = (None, "") if name in categories or column.isna().all() else _as_numbers(column)
        if how == "yes or no" and test is not None and _as_numbers(test[name])[0] is None:
            found = None  # a third word in the test rows is a category like the two
        if column.isna().all():
            steps.append(f"left out {name!r}: it is empty")
        elif found is not None:
            numbers.append(name)
            spelt.setdefault(how, []).append(name)
            if pd.api.types.is_integer_dtype(column) and column.is_unique and len(column) > MAX_CATEGORIES:
                steps.append(
                    f"{name!r} is different in every row and was used as a feature; if it names rows, give it as the id"
                )
        elif name not in categories and _is_text(column):
            texts.append(name)
        elif name not in categories and column.nunique() > max(MAX_CATEGORIES, FREE_TEXT * len(column)):
            steps.append(f"left out {name!r}: {column.nunique():,} different texts in {len(column):,} rows")
        else:
            words.append(name)
    if not numbers and not words and not texts:
        raise LocalShapleyError("no column is left to learn from: " + "; ".join(steps) + ".")
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False)
    tables = [_typed(table, numbers, words, texts) for table in (train, test) if table is not None]
    gaps = {name: int(tables[0][name].isna().sum()) for name in tables[0].columns}
    transformer = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            ("words", make_pipeline(SimpleImputer(strategy="constant", fill_value="(missing)"), encoder), words),
            *((f"text {name}", Directions(), name) for name in texts),
        ],
        sparse_threshold=0,
        verbose_feature_names_out=False,
    )
    for name in numbers:
        check_size(f"column {name!r}", tables[0][name].to_numpy())
    X = transformer.fit_transform(tables[0])
    X_test = transformer.transform(tables[1]) if test is not None else None
    filled = [name for name in numbers if gaps[name]]
    done = [f"{_columns(numbers)} of numbers scaled to mean 0 and deviation 1"] if numbers else []
    done += [f"gaps in {_listed(filled)} filled with the median"] if filled else []
    done += [_about_categories(tables[0][words])] if words else []
    done += (
        [f"{_listed(texts)} as what the words differ in most, at most {MAX_DIRECTIONS} numbers for a column"]
        if texts
        else []
    )
    done += [f"{_listed(names)} read as numbers ({how})" for how, names in spelt.items() if how]
    features = list(numbers)
    if words:
        features += list(transformer.named_transformers_["words"][-1].get_feature_names_out(words))
    for name in texts:
        features += [
            f"{name}_{number}" for number in transformer.named_transformers_[f"text {name}"].get_feature_names_out()
        ]
    return Prepared(np.asarray(X, dtype=np.float64), X_test, distinct(features), done + steps)


def _is_text(column: pd.Series) -> bool:
    """Whether there are more different cells than categories may have, and they are texts."""
    few = isinstance(column.dtype, pd.CategoricalDtype) or column.nunique() <= MAX_CATEGORIES
    return not few and are_texts(column)


def _about_categories(table: pd.DataFrame) -> str:
    """How words became features, with the columns of which the rarest had to share one."""
    names, counts = list(table.columns), table.nunique(dropna=False)
    text = f"{_columns(names)} of categories ({_listed(names)}) as one feature for each category"
    merged = [name for name in names if counts[name] > MAX_CATEGORIES]
    return text + (
        f", at most {MAX_CATEGORIES} for a column: the rarest of {_listed(merged)} share one" if merged else ""
    )


def _as_numbers(column: pd.Series) -> tuple[pd.Series | None, str]:
    """The column as floats (None if it holds words), and how they were spelt if not plainly.

    Numbers with a few words among them are refused.
    """
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        return column.astype("float64"), ""
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return column.astype("int64").where(column.notna()).astype("float64"), ""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return None, ""
    given = column.dropna().astype(str)
    read = pd.to_numeric(given, errors="coerce")
    wrong = given[read.isna()]
    if len(wrong) == 0:
        return pd.to_numeric(column, errors="coerce").astype("float64"), ""
    for reader in (_yes_or_no, spelt_numbers, _dates):
        found, how = reader(given)
        if found is not None:
            numbers = pd.Series(np.nan, index=column.index)
            numbers[column.notna().to_numpy()] = found.to_numpy()
            return numbers, how
    if len(wrong) < (1 - MOSTLY) * len(given):
        raise LocalShapleyError(
            f"column {column.name!r} holds numbers except in {counted(len(wrong), 'row')}, first {wrong.iloc[0]!r} in "
            f"row {wrong.index[0]}; fix or empty these cells, or, if they are codes, give the column as a category "
            f"(on the command line, --category {column.name})."
        )
    return None, ""


def _yes_or_no(texts: pd.Series) -> tuple[pd.Series | None, str]:
    """Texts that are all one of two such words as 1 and 0."""
    words = texts.str.strip().str.casefold()
    for yes, no in YES_OR_NO:
        if words.isin((yes, no)).all():
            return (words == yes).astype("float64"), "yes or no"
    return None, ""


def _dates(texts: pd.Series) -> tuple[pd.Series | None, str]:
    """Texts that are all dates as days."""
    if not texts.str.strip().str.fullmatch(DATE).all():
        return None, ""
    read = pd.to_datetime(texts.str.strip(), format="ISO8601", utc=True, errors="coerce")
    return (None, "") if read.isna().any() else ((read - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), "dates")


def spelt_numbers(texts: pd.Series) -> tuple[pd.Series | None, str]:
    """Texts that are all numbers with per cent signs, thousands separators or decimal commas, and which of these.

    >>> found, how = spelt_numbers(pd.Series(["1,200.5", "-300"]))
    >>> found.tolist(), how
    ([1200.5, -300.0], 'thousands separators')
    """
    body = texts.str.strip()
    signs = ["per cent"] if body.str.endswith("%").all() else []
    body = body.str.removesuffix("%").str.strip() if signs else body
    for thousands, decimal in SPELLINGS:
        if body.str.fullmatch(rf"[-+]?(\d+|[1-9]\d{{0,2}}({thousands}\d{{3}})+)({decimal}\d+)?").all():
            signs += ["thousands separators"] if body.str.contains(rf"\d{thousands}\d{{3}}(?!\d)").any() else []
            signs += ["decimal commas"] if decimal == "," and body.str.contains(",").any() else []
            plain = body.str.replace(thousands, "", regex=True).str.replace(decimal, ".", regex=True)
            return plain.astype("float64"), " and ".join(signs)
    return None, ""


def _typed(table: pd.DataFrame, numbers: list[str], words: list[str], texts: list[str]) -> pd.DataFrame:
    out = {}
    for name in numbers:
        column, _ = _as_numbers(table[name])
        if column is None:
            raise LocalShapleyError(f"column {name!r} holds numbers in the training rows and words in the test rows.")
        out[name] = column.replace([np.inf, -np.inf], np.nan)
    for name in words:
        out[name] = table[name].astype(object).where(table[name].notna(), None).map(str, na_action="ignore")
    for name in texts:
        out[name] = table[name].astype(object).where(table[name].notna(), "").map(str)
    return pd.DataFrame(out, index=table.index)


def _columns(names: list[str]) -> str:
    return "1 column" if len(names) == 1 else f"{len(names)} columns"


def _listed(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def labels_of(column: pd.Series) -> tuple[AnyArray, bool]:
    """Labels or numbers to predict, and whether they are numbers."""
    missing = column.index[column.isna()]
    if len(missing):
        raise LocalShapleyError(
            f"the target {column.name!r} is missing in {counted(len(missing), 'row')}, first in row {missing[0]}; "
            "fill it in, or leave these rows out (--drop-missing-target). Cells that read NA, null or None are "
            "missing, too; if that is a class, let only empty cells be missing (--na '')."
        )
    if column.dtype.kind in "mM":
        raise LocalShapleyError(
            f"the target {column.name!r} holds dates or times; write numbers to predict, such as days since a date."
        )
    if not pd.api.types.is_numeric_dtype(column):
        texts = column.astype(str).str.strip()  # spaces do not make another class
        spelt = None if isinstance(column.dtype, pd.CategoricalDtype) else spelt_numbers(texts)[0]
        if spelt is None or pd.to_numeric(texts, errors="coerce").notna().all():
            return texts.to_numpy(dtype=str), False
        column = spelt
    numbers = column.to_numpy()
    if numbers.dtype.kind == "f" and (numbers % 1 == 0).all():
        numbers = numbers.astype(np.int64)
    return numbers, are_amounts(numbers)
