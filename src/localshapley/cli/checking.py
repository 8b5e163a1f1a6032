"""What commands find in a table besides its values: wrong labels, copies, and what it is worth to act on suspects."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import localshapley as ls
from localshapley.cli.data import InputTable
from localshapley.cli.options import RunOptions
from localshapley.cli.output import Output, as_records
from localshapley.cli.valuing import arguments, comparing_as_given
from localshapley.errors import LocalShapleyError, LocalShapleyWarning
from localshapley.notes import Note

if TYPE_CHECKING:
    from localshapley.audit import Copies, LabelErrors, Mending

UNREAD = {"encoding": "utf-8", "sep": None, "na": None}
"""How files are read by default."""
TOLD_BY = {"contradictions": "labels-contradict", "leakage": "test-rows-seen"}
"""Kinds of copies that a valuation has a note on, too, by the code of that note."""
MAX_ROWS = 5_000
"""What acting on suspects is worth is measured by default for up to so many rows, which takes seconds."""


def find_label_errors(
    data: InputTable, valuation: ls.Valuation | None, n: float | None = None, errors: str = "all"
) -> LabelErrors:
    """Wrong labels among the rows that a command reads."""
    task = "regression" if data.regression else "classification"
    return label_errors(data.numbers, data.labels, valuation, n=n, task=task, errors=errors)


def label_errors(X: Any, y: Any, valuation: ls.Valuation | None, **settings: Any) -> LabelErrors:
    """Wrong labels among rows; what would be warnings is part of the result, and printed from there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LocalShapleyWarning)
        return ls.audit.label_errors(X, y, values=valuation, **settings)


def find_copies(data: InputTable) -> Copies:
    """Copies, contradictions and outliers among the rows as they are in the file."""
    with comparing_as_given(data):
        return ls.audit.copies(data.as_given.rows, data.y, data.as_given.test_rows, data.y_test)


def lines_on_copies(copies: Copies, notes: list[Note]) -> list[str]:
    """A line about each kind that there is, except those that notes tell already."""
    told = {name for name, code in TOLD_BY.items() if any(note.code == code for note in notes)}
    return [f"{name}: {line}" for name, line in copies.lines.items() if name not in told | {"skipped"}]


def checked(
    run: RunOptions,
    data: InputTable,
    valuation: ls.Valuation | None,
    found: LabelErrors,
    output: Output,
    *,
    n: float | None,
    check: bool | None,
    saved: bool,
) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """What `suspects` says besides the list, as lines, for its document and for a report."""
    copies = find_copies(data)
    given = partial(of_run, run, data, valuation if saved else None)
    mending = worth(given, data.numbers, found, output, n=n, check=check)
    told = [] if valuation is None else valuation.notes
    lines = ([] if mending is None else [f"worth: {mending.sentence}"]) + lines_on_copies(copies, told)
    measured = None
    if mending is not None:
        measured = {**asdict(mending), "gains": mending.gains, "is_measurable": mending.is_measurable}
    tables = {"groups": copies.groups.set_index("group"), "outliers": copies.outliers.set_index("row")}
    documents = {name: as_records(table) for name, table in tables.items()}
    document = {"mending": measured, "copies": {"lines": copies.lines, **documents}}
    return lines, document, {"mending": mending, "copies": copies}


def shown_rows(run: RunOptions, data: InputTable) -> dict[str, Any]:
    """What a report shows of the rows, and how they come to be applied to."""
    return {"rows": data.rows, "y": data.y, "owner": data.owner, "table": data.table, **of_file(run)}


def of_file(run: RunOptions) -> dict[str, Any]:
    """The file of a table, and how it is to be read."""
    return {"file": run.train, "reading": given_reading({name: getattr(run, name) for name in UNREAD})}


def given_reading(options: dict[str, Any]) -> dict[str, str]:
    """The options of a file that were given."""
    return {name: text for name, text in options.items() if text != UNREAD[name]}


def of_run(run: RunOptions, data: InputTable, saved: ls.Valuation | None) -> dict[str, Any]:
    """The arguments that rows were valued with; where the values were saved, the model is theirs if it is known."""
    given = {name: entry for name, entry in arguments(run, data).items() if name != "store"}
    return given if saved is None else given | {"model": model_of(saved, data.y, given["model"])}


def worth(
    arguments_of_value: Callable[[], dict[str, Any]],
    features: Any,
    found: LabelErrors,
    output: Output,
    *,
    n: float | None = None,
    check: bool | None = None,
    option: str = "check",
) -> Mending | None:
    """What it is worth to act on suspects; None if there are none, or if a line says why it was not measured.

    By default (`check` is None) it is measured for tables that are not large.
    """
    n_rows, n_listed = found.verdict.n_rows, found.verdict.n_suspects
    if check is False or not n_listed:
        return None
    try:
        if n_listed > n_rows / 2:
            raise LocalShapleyError("more than half of the rows are suspected.")
        given = arguments_of_value()
        if check is None and n_rows > MAX_ROWS:
            raise LocalShapleyError(f"it takes long with {n_rows:,} rows; --{option} measures it.")
        output.status(f"measuring what mending the suspects would bring (--no-{option} skips it)")
        given = {name: given[name] for name in ("X", "y", "X_test", "y_test", "model", "cv", "seed") if name in given}
        return ls.audit.worth_mending(**given, n=n, features=features)
    except LocalShapleyError as error:  # such as too few rows left to train on
        output.status(f"what mending the suspects would bring is left out: {error}")
        return None


def model_of(valuation: ls.Valuation, y: Any, *given: Any) -> Any:
    """The model behind saved values: of those given, and those with a name, the one that reads like theirs."""
    from localshapley.models import Fixed
    from localshapley.models.dispatch import FIXED_FOREST, as_model, find_named
    from localshapley.models.estimator_checks import on_one_line
    from localshapley.models.named_models import NAMES

    named = [
        find_named(name, regression=regression)
        for regression, other in ((False, "ridge"), (True, "logistic"))
        for name in (*NAMES, FIXED_FOREST)
        if name != other
    ]
    for model in (*given, *named):
        found = as_model(model, y)[0]
        text = on_one_line(found.estimator)
        if valuation.model == (f"Fixed({text})" if isinstance(found, Fixed) else text):
            return model
    raise LocalShapleyError(
        f"the saved values are of {valuation.model}, which has no name here; `localshapley suspects` with this --model "
        "measures it."
    )
