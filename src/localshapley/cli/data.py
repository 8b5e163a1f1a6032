"""From the files that the options name to rows that can be valued."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localshapley.cli.options import Run
from localshapley.errors import InvalidArgumentError, LocalShapleyError, unknown_name
from localshapley.inputs.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

    from localshapley import Valuation
    from localshapley.arrays import AnyArray, Floats

TASKS = ("auto", "classification", "regression")


@dataclass
class Data:
    """What is valued.

    Attributes
    ----------
    rows : DataFrame
        The training rows as they are in the file, without target and owner; its index names them.
    X, y, X_test, y_test : arrays
        Prepared for a model; test rows are None where folds take their place.
    owner : Series or None
    regression : bool
    preparation : list of str
        How columns were prepared, in words.
    """

    rows: pd.DataFrame
    X: Floats
    y: AnyArray
    X_test: Floats | None
    y_test: AnyArray | None
    owner: pd.Series | None
    regression: bool
    preparation: list[str]


def load_data(run: Run) -> Data:
    """Read the tables and prepare them; the preparation is learnt from the training rows."""
    return _prepared(run, *_read(run))


def load_valued(run: Run, valuation: Valuation) -> tuple[Data, Valuation]:
    """Read the rows that were valued, wherever they are in the table, and give their values in the same order."""
    from localshapley.cli.saved import valued_rows

    table = _read_train(run)
    left_out = tuple(name for name in (run.owner, *(run.drop or [])) if name is not None)
    rows, valuation = valued_rows(
        valuation, table, run.train, named=run.id is not None, target=run.target, left_out=left_out
    )
    if len(rows) < len(table) and run.test_size is None:
        raise LocalShapleyError(
            f"{run.train} has {len(table) - len(rows)} rows that were not valued; value this table, or give the option "
            "--test-size if they were set aside."
        )
    return _prepared(run, rows, None), valuation


def _prepared(run: Run, train: pd.DataFrame, test: pd.DataFrame | None) -> Data:
    from localshapley.inputs.preparing import labels_of, prepare

    y, regression = _target(train, run)
    owner = _owner(train, run)
    left_out = [name for name in (run.target, run.owner, *(run.drop or [])) if name is not None]
    rows = train.drop(columns=left_out)
    if rows.shape[1] == 0:
        raise LocalShapleyError(f"{run.train} has no columns left to learn from besides {', '.join(left_out)}.")
    prepared = prepare(rows, None if test is None else test[rows.columns], run.category or ())
    y_test = None
    if test is not None:
        y_test = labels_of(test[run.target])[0].astype(y.dtype if y.dtype.kind != "U" else str)
    steps = prepared.steps
    if regression and run.task == "auto" and y.dtype.kind in "iu":
        steps = [*steps, f"the target {run.target!r} treated as amounts; if they are classes: --task classification"]
    return Data(rows, prepared.X, y, prepared.X_test, y_test, owner, regression, steps)


def _read(run: Run) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Training rows with their names, and test rows where they are given or set aside."""
    ways = [name for name in ("test", "test_size", "cv") if getattr(run, name) is not None]
    if len(ways) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in ways)
        raise InvalidArgumentError(f"{options} cannot be combined; give only one of them.")
    train = _read_train(run)
    if run.test is not None:
        test = read_table(run.test, run.encoding)
        needed = train.columns.difference([run.owner, *(run.drop or [])], sort=False)
        missing = needed.difference(test.columns, sort=False)
        if len(missing):
            raise LocalShapleyError(
                f"{run.test} lacks the column {missing[0]!r} of {run.train}; both need the same columns."
            )
        return train, test
    return (train, None) if run.test_size is None else _split(train, run)


def _read_train(run: Run) -> pd.DataFrame:
    """The table of training rows, with their names; it must have all columns that the options name."""
    train = named_rows(read_table(run.train, run.encoding), run.train, run.id)
    named = [("--target", run.target), ("--owner", run.owner), *(("--drop", name) for name in run.drop or [])]
    for option, name in [*named, *(("--category", name) for name in run.category or [])]:
        if name is not None and name not in train.columns:
            raise _no_column(option, name, train, run.train)
    return train


def named_rows(table: pd.DataFrame, path: Path, name: str | None) -> pd.DataFrame:
    """Give rows the names in a column, else their numbers from 0."""
    if name is None:
        return table.reset_index(drop=True).rename_axis("row")
    if name not in table.columns:
        raise _no_column("--id", name, table, path)
    repeated = table[name][table[name].duplicated()]
    if len(repeated):
        raise LocalShapleyError(f"--id {name}: {repeated.iloc[0]!r} names more than one row; names must be unique.")
    return table.set_index(name)


def _no_column(option: str, name: str, table: pd.DataFrame, path: Path) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path} has no such column: {unknown_name(option, name, table.columns)}")


def _split(table: pd.DataFrame, run: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Set test rows aside, classes in proportion where possible; rows keep their order."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    from localshapley.inputs.preparing import labels_of

    size = run.test_size
    if size is None or not 0 < size < 1:
        raise InvalidArgumentError(f"--test-size must be a share between 0 and 1, such as 0.3; got {size}.")
    y, numbers = labels_of(table[run.target])
    classes = None if numbers or np.unique(y, return_counts=True)[1].min() < 2 else y
    try:
        train, test = train_test_split(np.arange(len(y)), test_size=size, random_state=run.seed, stratify=classes)
    except ValueError as error:
        raise LocalShapleyError(f"{run.train} has too few rows for --test-size {size}: {error}") from None
    return table.iloc[np.sort(train)], table.iloc[np.sort(test)]


def _target(table: pd.DataFrame, run: Run) -> tuple[AnyArray, bool]:
    """What is predicted, and whether by regression."""
    import numpy as np

    from localshapley.inputs.preparing import labels_of

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


def _owner(table: pd.DataFrame, run: Run) -> pd.Series | None:
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
