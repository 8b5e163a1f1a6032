"""The options that commands share, in groups, and how a command takes a group."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from decimal import Decimal
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
"""Exit statuses of a command, besides 0."""
DATA, VALUING, OUTPUT = "The data", "The valuation", "The output"
"""Panels of the help."""


def option(text: str, panel: str, *names: str, **more: Any) -> Any:
    """An option in a panel of the help; its default is given in the text, where it is of interest."""
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **more)


def whole(text: str | int) -> int:
    """A whole number, which may be written with an exponent.

    >>> whole("1000"), whole("1e3"), whole("-1"), whole("2.0")
    (1000, 1000, -1, 2)
    """
    try:
        number = Decimal(text)
        if not number.is_finite() or number.adjusted() > MOST_DIGITS or number != int(number):
            raise ValueError
    except (ArithmeticError, ValueError):
        raise typer.BadParameter(f"it must be a whole number, such as 1000 or 1e3; got {text!r}.") from None
    return int(number)


def rows_or_share(text: str) -> int | float:
    """A number of rows, or a share of them: 1 is one row, and 1.0 are all.

    >>> rows_or_share("20"), rows_or_share("1"), rows_or_share("0.2"), rows_or_share("1.0")
    (20, 1, 0.2, 1.0)
    """
    try:
        number = float(text)
        return number if 0 < number < 1 or (number == 1 and "." in text) else whole(text)
    except (ValueError, typer.BadParameter):
        raise typer.BadParameter(
            f"it must be a whole number of rows, such as 20, or a share of them, such as 0.2; got {text!r}."
        ) from None


MOST_DIGITS = 30
"""Of a whole number: 1e999999999 would take all memory."""
WHOLE: dict[str, Any] = {"parser": whole, "metavar": "INTEGER"}
"""How an option takes a whole number."""
ROWS: dict[str, Any] = {"parser": rows_or_share, "metavar": "ROWS"}
"""How an option takes a number of rows or a share of them."""
Encoding = Annotated[str, option("Encoding of text files (default: utf-8).", DATA)]
Sep = Annotated[
    str | None,
    option("Separator of text files: a character, tab or whitespace (default: found in the file).", DATA),
]
Na = Annotated[
    str | None,
    option(
        "What is missing in text files beside empty cells, separated by commas (default: NA, null, None, ...).",
        DATA,
    ),
]


@dataclass(kw_only=True)
class RunOptions:
    """A valuation of the rows of a table."""

    train: Annotated[
        Path,
        typer.Argument(
            help="Table: CSV, TSV, Parquet, Feather or Arrow; or a folder of Parquet or Arrow files.",
            show_default=False,
        ),
    ]
    target: Annotated[str, option("Column to predict.", DATA, "--target", "-t")]
    test: Annotated[Path | None, option("Table of test rows, with the same columns.", DATA)] = None
    test_size: Annotated[float | None, option("Share of the rows to set aside as test rows, such as 0.3.", DATA)] = None
    cv: Annotated[
        str | None,
        option(
            "Folds to cross-validate with (default: 5, if there are no test rows); with --model fixed-forest also oob: "
            "each row is judged by the trees that have not seen it.",
            DATA,
        ),
    ] = None
    id: Annotated[str | None, option("Column that names the rows.", DATA)] = None
    owner: Annotated[str | None, option("Column that names the owners of the rows.", DATA)] = None
    drop: Annotated[list[str] | None, option("Column to leave out; repeat for more.", DATA)] = None
    category: Annotated[
        list[str] | None, option("Column whose numbers are codes, not amounts; repeat for more.", DATA)
    ] = None
    drop_missing_target: Annotated[bool, option("Leave out rows without a target.", DATA, "--drop-missing-target")] = (
        False
    )
    drop_rare_classes: Annotated[
        bool, option("Leave out rows of classes that have one row.", DATA, "--drop-rare-classes")
    ] = False
    encoding: Encoding = "utf-8"
    sep: Sep = None
    na: Na = None
    no_prepare: Annotated[
        bool,
        option(
            "Hand the table to the model as it is, for a pipeline that prepares it itself (default: numbers are "
            "scaled, gaps filled, and categories become features).",
            DATA,
            "--no-prepare",
        ),
    ] = False
    model: Annotated[
        str,
        option(
            "knn (default), tree, forest, fixed-forest, svm, logistic, ridge, or module:object.",
            VALUING,
            "--model",
            "-m",
        ),
    ] = "knn"
    task: Annotated[str, option("classification or regression (default: inferred from the target).", VALUING)] = "auto"
    support: Annotated[
        str | None,
        option(
            "Which rows can matter to a test row, such as nearest:20, radius:1.5, kernel:0.5, tree or everything, "
            "or auto: grown until the values are nearly global (default: what suits the model).",
            VALUING,
        ),
    ] = None
    score: Annotated[
        str | None,
        option("How predictions are scored, such as accuracy or log_loss (default: what suits the model).", VALUING),
    ] = None
    method: Annotated[
        str, option("How values are computed: auto (default), or a method such as exact or sample.", VALUING)
    ] = "auto"
    tol: Annotated[
        float | None, option("Stop sampling at this relative error (default: 0.1, unless there is a budget).", VALUING)
    ] = None
    budget: Annotated[int | None, option("Maximum number of trainings.", VALUING, **WHOLE)] = None
    max_seconds: Annotated[float | None, option("Stop sampling after this many seconds.", VALUING)] = None
    play_owners: Annotated[
        bool, option("Value each owner as a whole instead of single rows.", VALUING, "--play-owners")
    ] = False
    seed: Annotated[int, option("Seed of splits and draws (default: 0).", VALUING, **WHOLE)] = 0
    seeds: Annotated[
        int | None,
        option("Value with this many seeds of a model that draws random numbers, and average.", VALUING, **WHOLE),
    ] = None
    jobs: Annotated[int | None, option("Number of training processes; -1 uses every core.", VALUING, **WHOLE)] = None
    store: Annotated[
        Path | None, option("File that keeps what was trained, so that the same command resumes.", VALUING)
    ] = None

    def __post_init__(self) -> None:
        """Names of columns are taken with or without the spaces around them, which tables are read without."""
        self.target, self.id, self.owner = self.target.strip(), stripped(self.id), stripped(self.owner)
        self.drop, self.category = (names and [name.strip() for name in names] for names in (self.drop, self.category))


def stripped(name: str | None) -> str | None:
    """The name of a column without the spaces around it."""
    return None if name is None else name.strip()


SavedValues = Annotated[
    Path | None, option("Values saved by `value --out values.parquet`, instead of a new run.", DATA, "--values")
]
Check = Annotated[
    bool | None,
    option(
        "Measure what dropping or relabelling the suspects does to held-out accuracy (default: for up to 5,000 rows).",
        OUTPUT,
        "--check/--no-check",
    ),
]
RawCsv = Annotated[
    bool,
    option(
        "Write cells that begin with =, +, - or @ as they are; by default they get a ' in front in .csv and .tsv, as "
        "spreadsheets would run them.",
        OUTPUT,
        "--raw-csv",
    ),
]
ListOut = Annotated[Path | None, option("Table to write: .csv, .tsv, .parquet or .feather.", OUTPUT, "--out", "-o")]


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the groups (dataclasses) among a command's parameters into the options that they are made of.

    Examples
    --------
    >>> @dataclass(kw_only=True)
    ... class Size:
    ...     width: int = 1
    ...     height: int = 1
    >>> @takes_groups
    ... def area(size: Size, unit: str = "cm²") -> None:
    ...     print(size.width * size.height, unit)
    >>> inspect.signature(area)
    <Signature (*, width: int = 1, height: int = 1, unit: str = 'cm²')>
    >>> area(width=3, height=4, unit="mm²")
    12 mm²
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    flat: list[Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        own = parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        flat += _parameters(groups[name]) if name in groups else [own]
    flat.sort(key=lambda p: p.default is not Parameter.empty)  # required options come first in the help

    @wraps(command)
    def wrapper(**given: Any) -> None:
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**made, **given)

    wrapper.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in flat}
    return wrapper


def _parameters(group: type) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            f.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if f.default is MISSING else f.default,
            annotation=hints[f.name],
        )
        for f in fields(group)
    ]
