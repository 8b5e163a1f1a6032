"""From the files that the options name to rows that can be valued."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from localshapley.cli.options import RunOptions
from localshapley.errors import InvalidArgumentError, LocalShapleyError, unknown_name
from localshapley.formatting import counted
from localshapley.io.tables import read_with_notes
from localshapley.notes import Note

if TYPE_CHECKING:
    import pandas as pd

    from localshapley import Valuation
    from localshapley.arrays import AnyArray, Floats
    from localshapley.data.exact_duplicates import OriginalTables

NOT_PREPARED = Note("not-prepared", "nothing: the model gets the table as it is (--no-prepare)")
TASKS = ("auto", "classification", "regression")
MANY_CLASSES = 10
"""Whole numbers that are more classes than this may be amounts, which is pointed out."""


@dataclass
class InputTable:
    """What is valued.

    Attributes
    ----------
    rows : DataFrame
        The training rows as they are in the file, without target and owner; its index names them.
    X, X_test : DataFrames
        What the model gets: prepared rows under the names of their features, or the rows as they are in the file. Test
        rows are None where folds take their place.
    y, y_test : arrays
    owner : Series or None
    regression : bool
    preparation : list of Note
        How columns were prepared, in words.
    table : DataFrame
        All rows and columns of the file, under the names of the rows, in its order.
    test_rows : DataFrame or None
        The test rows as they are in their file, with those columns of `rows` that are there.
    prepared : bool
        Whether the columns were prepared.
    file : str
        Name of the file of the training rows.
    left_out : tuple of str
        Its columns that are neither features nor compared: target, names, owner, and those that are dropped.
    """

    rows: pd.DataFrame
    X: pd.DataFrame
    y: AnyArray
    X_test: pd.DataFrame | None
    y_test: AnyArray | None
    owner: pd.Series | None
    regression: bool
    preparation: list[Note]
    table: pd.DataFrame
    test_rows: pd.DataFrame | None
    prepared: bool = True
    file: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def labels(self) -> pd.Series:
        """The labels under a name, as a feature that equals them may be another column."""
        import pandas as pd

        return pd.Series(self.y, index=self.X.index, name="target")

    @cached_property
    def as_given(self) -> OriginalTables:
        """Training and test rows as in their files, with the columns that both have: copies are looked for in these."""
        from localshapley.data.exact_duplicates import OriginalTables  # heavy

        rows = self.rows if self.test_rows is None else self.rows[self.test_rows.columns]
        left_out = [*(name for name in self.rows.columns if name not in rows.columns), *self.left_out]
        return OriginalTables(rows, self.test_rows, f" of {self.file} besides {', '.join(map(repr, left_out))}")

    @cached_property
    def numbers(self) -> Floats:
        """The training rows as numbers, between which distances can be measured."""
        from localshapley.data.preparing import prepare

        return self.X.to_numpy() if self.prepared else prepare(self.rows).X


def load_data(run: RunOptions) -> InputTable:
    """Read the tables and prepare them; the preparation is learnt from the training rows."""
    table, of_file = _read_train(run)
    valued, of_rows = _valued(run, table)
    train, test, of_tests = _parted(run, valued)
    return _prepared(run, table, train, test, [*of_file, *of_rows, *of_tests])


def load_valued(run: RunOptions, valuation: Valuation) -> tuple[InputTable, Valuation]:
    """Read the rows that were valued, wherever they are in the table, and give their values in the same order."""
    from localshapley.cli.saved import valued_rows

    table, of_file = _read_train(run)
    train, of_rows = _valued(run, table)
    left_out = tuple(name for name in (run.owner, *(run.drop or [])) if name is not None)
    rows, valuation = valued_rows(
        valuation, train, run.train, named=run.id is not None, target=run.target, left_out=left_out
    )
    if len(rows) < len(train) and run.test_size is None:
        raise LocalShapleyError(
            f"{run.train} has {len(train) - len(rows)} rows that were not valued; value this table, or give the option "
            "--test-size if they were set aside."
        )
    return _prepared(run, table, rows, None, [*of_file, *of_rows]), valuation


def _prepared(
    run: RunOptions, table: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame | None, notes: list[Note]
) -> InputTable:
    """Prepare the rows for the model; `notes` say what was made of the files."""
    import pandas as pd

    from localshapley.data.preparing import prepare

    if run.no_prepare and run.category:
        raise InvalidArgumentError("--category is part of the preparation, which --no-prepare leaves out; drop one.")
    y, regression = _target(train, run)
    owner = _owner(train, run)
    left_out = [name for name in (run.target, run.owner, *(run.drop or [])) if name is not None]
    rows = train.drop(columns=left_out)
    if rows.shape[1] == 0:
        raise LocalShapleyError(f"{run.train} has no columns left to learn from besides {', '.join(left_out)}.")
    y_test = None if test is None else _test_labels(test, train, y, run)
    test_rows = None if test is None else test[rows.columns.intersection(test.columns)]
    if run.no_prepare and test_rows is not None:
        _check_columns(run, rows.columns, test_rows)
        test_rows = test_rows.reset_index(drop=True)
    X, X_test, steps = rows, test_rows, [NOT_PREPARED]
    if not run.no_prepare:
        notes = notes + _answers(rows, y)
        prepared = prepare(rows, test_rows, run.category or (), *_test_name(run))
        X = pd.DataFrame(prepared.X, index=rows.index, columns=prepared.names)
        X_test = None if prepared.X_test is None else pd.DataFrame(prepared.X_test, columns=prepared.names)
        steps = prepared.steps
    notes = [*steps, *notes, *_about_target(train[run.target], y, regression, run)]
    in_file = None if test_rows is None else test_rows.reset_index(drop=True)
    roles = tuple(name for name in (run.target, run.id, run.owner, *(run.drop or [])) if name is not None)
    return InputTable(
        rows, X, y, X_test, y_test, owner, regression, notes, table, in_file,
        prepared=not run.no_prepare, file=run.train.name, left_out=roles,
    )  # fmt: skip


def _about_target(column: pd.Series, y: AnyArray, regression: bool, run: RunOptions) -> list[Note]:
    """What to say of how the target was read, and of what it was taken for."""
    import numpy as np
    import pandas as pd

    from localshapley.io.number_formats import spelt_alike

    notes, name = list[Note](), f"the target {run.target!r}"
    if y.dtype.kind != "U" and not pd.api.types.is_numeric_dtype(column):
        text = f"{name} read as numbers, such as {y.tolist()[0]} for {column.iloc[0]!r}"
        notes.append(Note("target-read-as-numbers", text, target=run.target))
    if run.task == "auto" and y.dtype.kind in "iu":
        n = len(np.unique(y))
        if regression:
            text = f"{name} treated as amounts; if they are classes: --task classification"
            notes.append(Note("target-amounts", text, target=run.target, n_values=n))
        elif n > MANY_CLASSES:
            text = f"{name} treated as {n} classes; if they are amounts: --task regression"
            notes.append(Note("target-classes", text, target=run.target, n_classes=n))
    alike = spelt_alike(y) if y.dtype.kind == "U" else []
    if alike:
        text = f"{name} has {' and '.join(map(repr, alike))}, classes that differ in case only"
        notes.append(Note("classes-alike", text, target=run.target, classes=alike))
    return notes


def _test_name(run: RunOptions) -> list[str]:
    """What messages call the test rows where they have a file of their own."""
    return [] if run.test is None else [str(run.test)]


def _test_labels(test: pd.DataFrame, train: pd.DataFrame, y: AnyArray, run: RunOptions) -> AnyArray:
    """The labels of the test rows, read as those of the training rows are."""
    from localshapley.data.preparing import labels_of

    found = labels_of(test[run.target], train[run.target], *_test_name(run))[0]
    return found.astype(str) if y.dtype.kind == "U" else found.astype(bool) if y.dtype.kind == "b" else found


def _check_columns(run: RunOptions, needed: pd.Index, test: pd.DataFrame) -> None:
    missing = needed.difference(test.columns, sort=False)
    if len(missing):
        raise LocalShapleyError(
            f"{run.test} lacks the column {missing[0]!r} of {run.train}; both need the same columns."
        )


def _answers(rows: pd.DataFrame, y: AnyArray) -> list[Note]:
    """What to say of columns that equal the target, which nobody sees any more once they are scaled."""
    from localshapley.data.target_leaks import find_answers

    found, how = find_answers(rows, y)
    if not found:
        return []
    name = rows.columns[found[0]]
    text = f"{name!r} equals the target{how}: models are given the answer; leave it out (--drop {quote(str(name))})"
    return [Note("target-in-column", text, column=name)]


def _parted(run: RunOptions, train: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame | None, list[Note]]:
    """Training rows, and test rows where they are given or set aside, with notes on their file."""
    ways = [name for name in ("test", "test_size", "cv") if getattr(run, name) is not None]
    if len(ways) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in ways)
        raise InvalidArgumentError(f"{options} cannot be combined; give only one of them.")
    if run.test is not None:
        test, notes = read_with_notes(run.test, run.encoding, **_how(run), like=train)
        _check_columns(run, train.columns.intersection([run.target]), test)
        if run.id in test.columns:
            test = test.set_index(run.id)  # for messages
        test, without = _with_target(test, run.test, run)
        return train, test, notes + without
    return (train, None, []) if run.test_size is None else (*_split(train, run), [])


def _read_train(run: RunOptions) -> tuple[pd.DataFrame, list[Note]]:
    """The table of training rows, with their names and notes; it must have all columns that the options name."""
    _check_roles(run)
    table, notes = read_with_notes(run.train, run.encoding, **_how(run))
    train = named_rows(table, run.train, run.id)
    named = [("--target", run.target), ("--owner", run.owner), *(("--drop", name) for name in run.drop or [])]
    for option, name in [*named, *(("--category", name) for name in run.category or [])]:
        if name is not None and name not in train.columns:
            raise no_column(option, name, train, run.train)
    return train, notes


def _check_roles(run: RunOptions) -> None:
    """Refuse a column that is to be two things."""
    others = [("--target", run.target), ("--owner", run.owner), *(("--drop", name) for name in run.drop or [])]
    for option, name in [*others, *(("--category", name) for name in run.category or [])]:
        if name is not None and name == run.id:
            raise InvalidArgumentError(f"--id {name} is also the {option}; give --id a column that names the rows.")
    if run.target in (run.drop or []):
        raise InvalidArgumentError(f"--drop {run.target} is the --target, which is needed; drop another column.")


def _valued(run: RunOptions, table: pd.DataFrame) -> tuple[pd.DataFrame, list[Note]]:
    """The rows to value, with notes on those that are left out."""
    table, without_target = _with_target(table, run.train, run)
    table, without_rare = _without_rare(table, run)
    return table, without_target + without_rare


def _without_rare(table: pd.DataFrame, run: RunOptions) -> tuple[pd.DataFrame, list[Note]]:
    """The rows without those whose class no other row has, if these are to be left out."""
    import numpy as np

    from localshapley.data.folds import classes_to_drop, named

    if not run.drop_rare_classes:
        return table, []
    y, regression = _target(table, run)
    rare = [] if regression else classes_to_drop(y)
    if not rare:
        return table, []
    text = (
        f"left out {counted(len(rare), 'row')} of {run.train.name} whose {run.target} no other row has: {named(rare)}"
    )
    return table[~np.isin(y, rare)], [Note("rare-classes-left-out", text, n_rows=len(rare), classes=rare[:5])]


def _how(run: RunOptions) -> dict[str, Any]:
    """How tables are read."""
    return {"sep": run.sep, "na": run.na, "once": (run.target, run.id, run.owner), "ids": run.id}


def _with_target(table: pd.DataFrame, path: Path, run: RunOptions) -> tuple[pd.DataFrame, list[Note]]:
    """The rows that have a target, if others are to be left out."""
    there = table[run.target].notna()
    if not run.drop_missing_target or there.all():
        return table, []
    if not there.any():
        raise LocalShapleyError(f"{path} has no row with a target {run.target!r}.")
    missing = int((~there).sum())
    text = f"left out {counted(missing, 'row')} of {path.name} without a target {run.target!r}"
    return table[there], [Note("missing-targets-left-out", text, file=path.name, n_rows=missing)]


def named_rows(table: pd.DataFrame, path: Path, name: str | None) -> pd.DataFrame:
    """Give rows the names in a column, else their numbers from 0."""
    import numpy as np

    if name is None:
        return table.reset_index(drop=True).rename_axis("row")
    if name not in table.columns:
        raise no_column("--id", name, table, path)
    ids = table[name]
    empty = np.flatnonzero(ids.isna() | (ids.astype(str).str.strip() == ""))
    if len(empty):
        raise LocalShapleyError(
            f"--id {name} is empty in {counted(len(empty), 'row')}, first in row {empty[0]} (counted from 0); name "
            "each row there, or leave --id out."
        )
    repeated = ids[ids.duplicated()].astype(str)
    if len(repeated):
        raise LocalShapleyError(f"--id {name}: {repeated.iloc[0]!r} names more than one row; names must be unique.")
    return table.set_index(name)


def no_column(option: str, name: str, table: pd.DataFrame, path: Path) -> InvalidArgumentError:
    """Make the error for a column that a table does not have."""
    return InvalidArgumentError(f"{path} has no such column: {unknown_name(option, name, table.columns)}")


def _split(table: pd.DataFrame, run: RunOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Set test rows aside, classes in proportion where possible; rows keep their order."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    from localshapley.data.preparing import labels_of

    size = run.test_size
    if size is None or not 0 < size < 1:
        raise InvalidArgumentError(f"--test-size must be a share between 0 and 1, such as 0.3; got {size}.")
    if not 0 <= run.seed < 2**32:
        raise InvalidArgumentError(f"--seed must be from 0 to {2**32 - 1} with --test-size; got {run.seed}.")
    y, numbers = labels_of(table[run.target])
    classes = None if numbers or np.unique(y, return_counts=True)[1].min() < 2 else y
    try:
        train, test = train_test_split(np.arange(len(y)), test_size=size, random_state=run.seed, stratify=classes)
    except ValueError as error:
        raise LocalShapleyError(f"{run.train} has too few rows for --test-size {size}: {error}") from None
    return table.iloc[np.sort(train)], table.iloc[np.sort(test)]


def _target(table: pd.DataFrame, run: RunOptions) -> tuple[AnyArray, bool]:
    """What is predicted, and whether by regression."""
    import numpy as np

    from localshapley.data.preparing import labels_of

    y, numbers = labels_of(table[run.target])
    if run.task not in TASKS:
        raise unknown_name("--task", run.task, TASKS)
    regression = numbers if run.task == "auto" else run.task == "regression"
    if regression and not np.issubdtype(y.dtype, np.number):
        raise LocalShapleyError(
            f"the target {run.target!r} holds text such as {str(y[0])!r}; regression needs numbers."
        )
    if not regression and len(np.unique(y)) < 2:
        raise LocalShapleyError(f"the target {run.target!r} has only one class ({y[0]}); at least two are needed.")
    return y, regression


def _owner(table: pd.DataFrame, run: RunOptions) -> pd.Series | None:
    if run.owner is None:
        return None
    owner = table[run.owner]
    where = owner.index[owner.isna()]
    if len(where):
        rows = "1 row" if len(where) == 1 else f"{len(where)} rows"
        raise LocalShapleyError(
            f"the owner column {run.owner!r} is empty in {rows}, first in row {where[0]}; name the owner there."
        )
    return owner
