"""From files and options to the arguments of a valuation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from localshapley import supports
from localshapley.arrays import AnyArray, Floats
from localshapley.cli.options import Run
from localshapley.errors import InvalidArgumentError, LocalShapleyError, unknown_name
from localshapley.inputs.named import NAMES, named
from localshapley.inputs.preparing import labels_of, prepare
from localshapley.inputs.tables import read_table
from localshapley.supports.base import Support

SUPPORTS = {
    "nearest": (supports.Nearest, int),
    "radius": (supports.Radius, float),
    "kernel": (supports.Kernel, float),
    "tree": (supports.TreeNode, None),
    "leaves": (supports.Leaves, None),
    "dual": (supports.Dual, None),
    "random": (supports.Random, int),
    "everything": (supports.Everything, None),
}


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
    said : list of str
        How columns were prepared, in words.
    """

    rows: pd.DataFrame
    X: Floats
    y: AnyArray
    X_test: Floats | None
    y_test: AnyArray | None
    owner: pd.Series | None
    regression: bool
    said: list[str]


def load_data(run: Run) -> Data:
    """Read the tables and prepare them; what is learnt for that is learnt from the training rows."""
    ways = [name for name in ("test", "test_size", "cv") if getattr(run, name) is not None]
    if len(ways) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in ways)
        raise InvalidArgumentError(f"{options} exclude each other; give one of them.")
    table = named_rows(read_table(run.train, run.encoding), run.train, run.id)
    named_columns = [("--target", run.target), ("--owner", run.owner)]
    named_columns += [("--drop", name) for name in run.drop or []]
    named_columns += [("--category", name) for name in run.category or []]
    for option, name in named_columns:
        if name is not None and name not in table.columns:
            raise _no_column(option, name, table, run.train)
    test = None
    if run.test is not None:
        test = read_table(run.test, run.encoding)
        dropped = {run.id, run.owner, *(run.drop or [])}
        missing = [name for name in table.columns if name not in test.columns and name not in dropped]
        if missing:
            raise LocalShapleyError(f"{run.test} lacks the column {missing[0]!r} of {run.train}; both need the same.")
    elif run.test_size is not None:
        table, test = _split(table, run)
    y, numbers = labels_of(table[run.target])
    if run.task not in ("auto", "classification", "regression"):
        raise unknown_name("--task", run.task, ("auto", "classification", "regression"))
    regression = numbers if run.task == "auto" else run.task == "regression"
    if regression and not np.issubdtype(y.dtype, np.number):
        raise LocalShapleyError(
            f"the target {run.target!r} holds text such as {str(y[0])!r}; regression needs numbers."
        )
    if not regression and len(np.unique(y)) < 2:
        raise LocalShapleyError(f"the target {run.target!r} holds one class only ({y[0]}); two or more are needed.")
    left_out = [name for name in (run.target, run.owner, *(run.drop or [])) if name is not None]
    rows = table.drop(columns=left_out)
    if rows.shape[1] == 0:
        raise LocalShapleyError(f"{run.train} has no column left to learn from beside {', '.join(left_out)}.")
    prepared = prepare(rows, None if test is None else test[rows.columns], run.category or ())
    y_test = None
    if test is not None:
        y_test = labels_of(test[run.target])[0].astype(y.dtype if y.dtype.kind != "U" else str)
    owner = None if run.owner is None else table[run.owner]
    if owner is not None and owner.isna().any():
        where = owner.index[owner.isna()]
        raise LocalShapleyError(
            f"the owner {run.owner!r} is missing in {len(where)} rows, first in row {where[0]}; name one for them."
        )
    return Data(rows, prepared.X, y, prepared.X_test, y_test, owner, regression, prepared.said)


def named_rows(table: pd.DataFrame, path: Path, name: str | None) -> pd.DataFrame:
    """Give rows the names in a column, else their numbers from 0."""
    if name is None:
        return table.reset_index(drop=True).rename_axis("row")
    if name not in table.columns:
        raise _no_column("--id", name, table, path)
    repeated = table[name][table[name].duplicated()]
    if len(repeated):
        raise LocalShapleyError(f"--id {name}: {repeated.iloc[0]!r} names more than one row; names must differ.")
    return table.set_index(name)


def _no_column(option: str, name: str, table: pd.DataFrame, path: Path) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path} has no such column: {unknown_name(option, name, table.columns)}")


def _split(table: pd.DataFrame, run: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Set test rows aside, classes in proportion where that can be done; rows keep their order."""
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


def find_model(name: str, regression: bool) -> Any:
    """The model behind `--model`: a name, or an estimator (or its class) somewhere in a module."""
    if ":" not in name:
        if name not in NAMES:
            raise unknown_name("--model", name, [*NAMES, "module:object"])
        return named(name, regression=regression)
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")  # modules in the folder where the command runs
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        return found() if isinstance(found, type) else found
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidArgumentError(
            f"--model {name} cannot be had ({error}); give an importable module and an estimator in it, such as "
            "sklearn.naive_bayes:GaussianNB."
        ) from None
    finally:
        sys.path.pop(0)


def find_support(text: str | None) -> Support | None:
    """The support behind `--support`: a name, and its size after a colon."""
    if text is None:
        return None
    name, _, size = text.partition(":")
    if name not in SUPPORTS:
        raise unknown_name("--support", name, SUPPORTS)
    kind, number = SUPPORTS[name]
    if number is None and size:
        raise InvalidArgumentError(f"--support {name} takes no size; got {text!r}.")
    try:
        made: Support = kind(number(size)) if number is not None and size else kind()
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"--support {text} has no size that can be used; write it like nearest:20."
        ) from None
    return made


def find_shape(text: str | None) -> tuple[int, ...] | None:
    """Height and width of images, written as 28x28."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InvalidArgumentError(f"--image-shape must be like 28x28; got {text!r}.") from None
