"""From decisions about suspected rows, as a report saves them, to a mended table."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Ints
from localshapley.audit.mending import ScoreChange, score_change
from localshapley.data.indexes import places_of
from localshapley.data.preparing import labels_of
from localshapley.data.row_digests import digest_cells
from localshapley.data.rows import known_table
from localshapley.errors import InvalidArgumentError, LocalShapleyError, unknown_name
from localshapley.formatting import counted
from localshapley.io.number_formats import label_text
from localshapley.io.tables import unguard

COLUMNS = ("row", "decision", "old_label", "new_label", "contents")
"""Columns of a file of decisions; `bench.js` writes the same."""
KEEP, RELABEL, DROP = WORDS = ("keep", "relabel", "drop")
SHOWN = 10
"""Changes of labels, and new labels, that are printed."""


@dataclass(frozen=True, eq=False)
class RepairedTable:
    """A mended table, and what was changed in it.

    Attributes
    ----------
    table : DataFrame
        Without the rows that were dropped, and with the new labels.
    decisions : DataFrame
        Under the names of the rows that were decided on: `decision`, `old_label` and `new_label` (of rows that keep
        their label the old one; of dropped rows a missing one).
    new_labels : list
        Labels that the table did not have before.
    target : str
        The column of labels.
    labels : Series
        The labels as they were, of all rows.
    places : array of int
        Where the rows that were decided on were in the table.
    """

    table: pd.DataFrame
    decisions: pd.DataFrame
    new_labels: list[Any]
    target: str
    labels: pd.Series
    places: Ints

    @property
    def kept(self) -> pd.Index:
        """Names of the rows whose label was confirmed."""
        return self._names(KEEP)

    @property
    def dropped(self) -> pd.Index:
        """Names of the rows that were left out."""
        return self._names(DROP)

    @property
    def relabelled(self) -> pd.Series:
        """Number of rows that went from an old label to a new one, by both."""
        changed = self.decisions[self.decisions["decision"] == RELABEL]
        pairs = [changed[name].astype(object) for name in ("old_label", "new_label")]
        return changed.groupby(pairs, sort=False).size().sort_values(ascending=False, kind="stable").rename("rows")

    def check(self, X: Any, *, model: Any, cv: Any = 5, seed: int = 0) -> ScoreChange:
        """Compare the model with the table as it was and as it is now, by cross-validation.

        Both are scored on the same held-out rows: those that the decisions left as they were. So rows that got the
        label that a model suggests cannot flatter the result.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_rows, n_features)
            What the model gets of each row of the table as it was, in its order.
        model, cv, seed
            As in `value`.

        Returns
        -------
        ScoreChange
        """
        mended = self.labels.astype(object)
        mended.iloc[self.places] = self.decisions["new_label"].to_numpy()
        return score_change(X, self.labels, mended, model=model, cv=cv, seed=seed)

    def __str__(self) -> str:
        pairs = [f"    {old} → {new}: {n:,}" for old, new, n in self.relabelled.reset_index().itertuples(index=False)]
        more = [f"    and {len(pairs) - SHOWN:,} others"] if len(pairs) > SHOWN else []
        lines = [f"{counted(len(self.decisions), 'decision')} on {len(self.labels):,} rows"]
        lines += [
            f"  kept        {len(self.kept):,}",
            f"  relabelled  {self.relabelled.sum():,}",
            *pairs[:SHOWN],
            *more,
        ]
        lines.append(f"  dropped     {len(self.dropped):,}")
        if self.new_labels:
            new = ", ".join(map(str, self.new_labels[:SHOWN])) + (", ..." if len(self.new_labels) > SHOWN else "")
            lines.append(f"  labels that were not in the table: {new}")
        return "\n".join(lines)

    def _names(self, decision: str) -> pd.Index:
        return self.decisions.index[self.decisions["decision"] == decision]


def apply(
    table: Any,
    decisions: str | Path | pd.DataFrame,
    *,
    target: str,
    id: str | None = None,
    columns: Iterable[str] | None = None,
) -> RepairedTable:
    """Apply the decisions that were made in a report to the table that it is about.

    Decisions are recognised by the name of a row, its label and its contents. Decisions of another table are refused.
    The rows may be in another order, if they have names, and there may be others among them.

    Parameters
    ----------
    table : DataFrame
        The table, with the column `target`; its index names the rows, as in `value`.
    decisions : path or DataFrame
        The file ``decisions.csv`` that the report saves, or a table with its columns `row`, `decision` (``"keep"``,
        ``"relabel"`` or ``"drop"``), `old_label`, `new_label` and `contents`.
    target : str
        The column of labels.
    id : str, optional
        The column that names the rows; by default the index does.
    columns : list of str, optional
        The columns that the report was given as its rows, if these were not all besides `target` and `id`.

    Returns
    -------
    RepairedTable
        `table`, the mended table, and what was changed in it.

    Examples
    --------
    >>> import pandas as pd
    >>> from localshapley import audit
    >>> table = pd.DataFrame({"size": [1, 2, 9], "kind": ["a", "b", "b"]}, index=["x", "y", "z"])
    >>> made = pd.DataFrame(
    ...     [("y", "relabel", "b", "a"), ("z", "keep", "b", "b")],
    ...     columns=["row", "decision", "old_label", "new_label"],
    ... ).assign(contents=audit.contents(table[["size"]])[1:])
    >>> print(audit.apply(table, made, target="kind"))
    2 decisions on 3 rows
      kept        1
      relabelled  1
        b → a: 1
      dropped     0
    """
    named = _named(table, target, id)
    made = read_decisions(decisions)
    places = _places(named, made["row"].tolist())
    names, column = named.index[places], named[target]
    known = _known_labels(column)
    old = _old_labels(column.iloc[places], made["old_label"], names, known)
    _check_contents(named, target, columns, places, made["contents"].tolist())
    new, unknown = _new_labels(made, old, column, known)
    labels = _relabelled(column, places, new, (made["decision"] == RELABEL).to_numpy())
    left = np.ones(len(named), dtype=bool)
    left[places[(made["decision"] == DROP).to_numpy()]] = False
    if not left.any():
        raise LocalShapleyError("the decisions drop every row of the table; nothing would be left.")
    mended = known_table(table).copy()
    mended[target] = labels.set_axis(mended.index)
    about = pd.DataFrame({"decision": made["decision"].tolist(), "old_label": old}, index=names, dtype=object)
    about["new_label"] = pd.Series(new, index=names, dtype=object)
    return RepairedTable(mended[left], about, unknown, target, column, places)


def _named(table: Any, target: str, id: str | None) -> pd.DataFrame:
    """The table under the names of its rows, if it has the columns."""
    table = known_table(table)
    if not isinstance(table, pd.DataFrame):
        raise InvalidArgumentError(f"table must be a DataFrame with the column {target!r}; got {type(table).__name__}.")
    for argument, name in (("target", target), ("id", id)):
        if name is not None and name not in table.columns:
            raise unknown_name(argument, name, map(str, table.columns))
    return table if id is None else table.set_index(id)


def _places(named: pd.DataFrame, rows: list[str]) -> Ints:
    """Where the rows are that were decided on."""
    names = pd.Index([label_text(name) for name in named.index])
    if not names.is_unique:
        raise LocalShapleyError(
            f"the name {names[names.duplicated()][0]!r} is there more than once; decisions need names that are unique."
        )
    wanted = [row if row in names else label_text(unguard(row)) for row in map(label_text, rows)]
    places = names.get_indexer(pd.Index(wanted))
    if (places < 0).any():  # the report may have read them as texts: '00319' is 319
        places = places_of(pd.Index(wanted), named.index)
    lost = [row for row, place in zip(rows, places, strict=True) if place < 0]
    if lost:
        raise LocalShapleyError(
            f"{len(lost)} of {counted(len(rows), 'decided row')} are not in the table, first {lost[0]!r}; give the "
            "table that the report is about, and the same id as there."
        )
    return np.asarray(places, dtype=np.int64)


def _known_labels(column: pd.Series) -> dict[str, Any]:
    """The cells of the column by all that decisions may call them, the most frequent of several."""
    cells = column.value_counts().index.tolist()
    found: dict[str, Any] = {}
    for cell in cells:
        found.setdefault(label_text(cell), cell)
    if cells and column.dtype.kind not in "mM":
        known = pd.Series(cells, name=column.name)
        known.attrs |= column.attrs  # the decimal mark of the file
        for cell, label in zip(cells, labels_of(known)[0], strict=True):
            found.setdefault(label_text(label), cell)
    return found


def _old_labels(cells: pd.Series, given: pd.Series, names: pd.Index, known: dict[str, Any]) -> list[Any]:
    """The labels of decided rows, if they are those that were judged."""
    for cell, text, name in zip(cells, given, names, strict=True):
        judged = known.get(text, known.get(unguard(text)))
        if judged is None or label_text(judged) != label_text(cell):
            raise LocalShapleyError(
                f"row {label_text(name)!r} was decided on with the label {text!r}, but has {label_text(cell)!r}; give "
                "the table that the report is about, not one that is mended already."
            )
    return cells.tolist()


def _check_contents(
    named: pd.DataFrame, target: str, columns: Iterable[str] | None, places: Ints, given: list[str]
) -> None:
    """Refuse decisions about rows with other contents."""
    rows = named.drop(columns=target) if columns is None else named[list(columns)]
    found = contents_of(rows.iloc[places])
    other = [place for place, was, now in zip(places, given, found, strict=True) if was != now]
    if other:
        raise LocalShapleyError(
            f"these are decisions about another table: {len(other)} of {counted(len(given), 'decided row')} had other "
            f"contents when they were judged, first {label_text(named.index[other[0]])!r}; give the table that the "
            "report is about, with the same id, or in Python the columns that the report was given."
        )


def _new_labels(
    made: pd.DataFrame, old: list[Any], column: pd.Series, known: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    """The label of each decided row after the decision, None where it is dropped, and labels that are new."""
    labels, unknown = list[Any](), dict[Any, None]()
    for decision, text, cell in zip(made["decision"], made["new_label"].str.strip(), old, strict=True):
        if decision != RELABEL:
            labels.append(cell if decision == KEEP else None)
            continue
        plain = text if text in known else unguard(text)
        label = known[plain] if plain in known else _as_label(plain, column)
        if plain not in known:
            unknown[label] = None
        labels.append(label)
    return labels, list(unknown)


def _as_label(text: str, column: pd.Series) -> Any:
    """A text as a label that the table does not have yet."""
    if not pd.api.types.is_numeric_dtype(column):
        return text
    try:
        number = float(text)
        if pd.api.types.is_bool_dtype(column) or not np.isfinite(number):
            raise ValueError
    except ValueError:
        what = "True and False" if pd.api.types.is_bool_dtype(column) else "numbers"
        raise LocalShapleyError(f"the new label {text!r} does not fit {column.name!r}, which holds {what}.") from None
    return int(number) if number == int(number) else number


def _relabelled(column: pd.Series, places: Ints, new: list[Any], is_new: AnyArray) -> pd.Series:
    """The column with new labels, of the same type wherever it can hold them."""
    labels, cells = column.copy(), [label for label, there in zip(new, is_new, strict=True) if there]
    if isinstance(labels.dtype, pd.CategoricalDtype):
        labels = labels.cat.add_categories([c for c in dict.fromkeys(cells) if c not in labels.cat.categories])
    if pd.api.types.is_integer_dtype(labels) and any(cell != int(cell) for cell in cells):
        labels = labels.astype("float64")
    if cells:
        labels.iloc[places[is_new]] = cells
    return labels


def contents(rows: Any) -> list[str]:
    """Digests of the contents of rows, by which `apply` recognises them; the column `contents` of decisions.

    Parameters
    ----------
    rows : DataFrame, array or sparse matrix
        The columns besides the labels.

    Examples
    --------
    >>> from localshapley import audit
    >>> audit.contents([[1.0, 2.0]]) == audit.contents([[1, 2]])
    True
    """
    return contents_of(known_table(rows))


def contents_of(table: Any) -> list[str]:
    """A digest of the contents of each row."""
    return [contents_text(word) for word in digest_cells(table)[:, 0]]


def contents_text(word: np.uint64) -> str:
    """A digest as a text; it begins with a letter, so that no spreadsheet takes it for a number."""
    return f"c{word:016x}"


def read_decisions(given: Any) -> pd.DataFrame:
    """Decisions as texts, one for each row, from a file or a table with the columns `COLUMNS`."""
    if isinstance(given, pd.DataFrame):
        named, lines = "decisions", [list(given.columns), *given.astype(object).to_numpy().tolist()]
    else:
        named, lines = str(given), _lines(Path(given))
    heads = [label_text(cell) for cell in lines[0]] if lines else []
    for name in COLUMNS:
        if name not in heads:
            raise LocalShapleyError(
                f"{named} has no column {name!r}; give the decisions.csv that a report saves, with the columns "
                f"{', '.join(COLUMNS)}."
            )
    cells = [[_text(cell) for cell in line] for line in lines[1:] if any(map(_text, line))]
    uneven = next((i for i, line in enumerate(cells) if len(line) != len(heads)), None)
    if uneven is not None:
        raise LocalShapleyError(f"{named} has {len(cells[uneven])} cells in decision {uneven + 1}, not {len(heads)}.")
    if not cells:
        raise LocalShapleyError(f"{named} holds no decisions; decide on some rows in the report, and save again.")
    made = pd.DataFrame(cells, columns=heads)[list(COLUMNS)]
    _check(made, named)
    return made


def _check(made: pd.DataFrame, named: str) -> None:
    """Refuse decisions that are not known, or that are made twice."""
    unknown = made[~made["decision"].isin(WORDS)]
    if len(unknown):
        word, row = unknown[["decision", "row"]].iloc[0]
        raise LocalShapleyError(
            f"{named} has the decision {word!r} on row {row!r}; known decisions are {', '.join(WORDS)}."
        )
    twice = made["row"][made["row"].duplicated()]
    if len(twice):
        raise LocalShapleyError(f"{named} has more than one decision on row {twice.iloc[0]!r}; leave one of them.")
    empty = made["row"][(made["decision"] == RELABEL) & (made["new_label"].str.strip() == "")]
    if len(empty):
        raise LocalShapleyError(f"{named} relabels row {empty.iloc[0]!r}, but gives no new label.")


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else label_text(cell)


def _lines(path: Path) -> list[list[Any]]:
    """The cells of a text file, all of them as text; spreadsheets may have saved it with another separator."""
    if not path.is_file():
        raise LocalShapleyError(f"{path} is {'a folder' if path.is_dir() else 'not there'}; give saved decisions.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            separator = max(",;\t", key=file.readline().count)
            file.seek(0)
            return list(csv.reader(file, delimiter=separator))
    except (UnicodeDecodeError, csv.Error) as error:
        raise LocalShapleyError(f"{path} cannot be read as decisions: {error}") from None
