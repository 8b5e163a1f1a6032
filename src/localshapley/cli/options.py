"""The options that commands share: what is valued, and how."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
"""Statuses that a command ends with, besides 0."""
DATA, VALUING, OUTPUT = "The data", "The valuation", "The output"


def option(text: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **more)


@dataclass(kw_only=True)
class Output:
    """How to speak."""

    json: Annotated[bool, option("Print one JSON document, and all else on standard error.", OUTPUT, "--json")] = False
    quiet: Annotated[bool, option("No progress, and nothing but what was asked for.", OUTPUT, "--quiet", "-q")] = False
    debug: Annotated[bool, option("Show the traceback of an error.", OUTPUT, "--debug")] = False


@dataclass(kw_only=True)
class Run(Output):
    """A valuation of the rows of a table."""

    train: Annotated[Path, typer.Argument(help="Table: CSV, TSV, Parquet, Feather or Arrow.", show_default=False)]
    target: Annotated[str, option("Column to predict.", DATA, "--target", "-t")]
    test: Annotated[Path | None, option("Table of test rows with the same columns.", DATA)] = None
    test_size: Annotated[float | None, option("Share of the rows set aside as test rows, such as 0.3.", DATA)] = None
    cv: Annotated[int | None, option("Folds; every row tests the others (5 if no test rows are given).", DATA)] = None
    id: Annotated[str | None, option("Column that names the rows.", DATA)] = None
    owner: Annotated[str | None, option("Column that names the owners of the rows.", DATA)] = None
    drop: Annotated[list[str] | None, option("Column to leave out (again for more).", DATA)] = None
    category: Annotated[
        list[str] | None, option("Column of numbers that are codes and not amounts (again for more).", DATA)
    ] = None
    encoding: Annotated[str, option("Encoding of text files (utf-8).", DATA)] = "utf-8"
    model: Annotated[
        str, option("knn (default), tree, forest, svm, logistic, ridge, or module:object.", VALUING, "--model", "-m")
    ] = "knn"
    task: Annotated[str, option("classification or regression; by default told from the target.", VALUING)] = "auto"
    support: Annotated[
        str | None,
        option(
            "Which rows can matter to a test row: nearest:20, radius:1.5, kernel:0.5, tree, leaves, dual, random:20, "
            "everything; by default what belongs to the model.",
            VALUING,
        ),
    ] = None
    score: Annotated[str | None, option("confidence, accuracy, margin, log_loss; squared_error, ...", VALUING)] = None
    method: Annotated[str, option("auto (default), exact or sample.", VALUING)] = "auto"
    tol: Annotated[float | None, option("Relative error to reach (0.1).", VALUING)] = None
    budget: Annotated[int | None, option("Most trainings.", VALUING)] = None
    max_seconds: Annotated[float | None, option("Stop sampling after this time.", VALUING)] = None
    play_owners: Annotated[bool, option("Value owners as a whole instead of rows.", VALUING, "--play-owners")] = False
    seed: Annotated[int, option("Seed of splits and draws (0).", VALUING)] = 0
    jobs: Annotated[int | None, option("Processes that train; -1 is one for each core.", VALUING)] = None
    store: Annotated[Path | None, option("File that keeps what is trained; the same command resumes.", VALUING)] = None


@dataclass(kw_only=True)
class Files(Output):
    """Where a valuation goes."""

    out: Annotated[
        Path | None, option("Values: .parquet (keeps everything), .csv, .tsv, .feather.", OUTPUT, "--out", "-o")
    ] = None
    report: Annotated[Path | None, option("Page for people, .html.", OUTPUT)] = None
    title: Annotated[str | None, option("Title of the report.", OUTPUT)] = None
    image_shape: Annotated[str | None, option("Show rows as images in the report, such as 28x28.", OUTPUT)] = None
    curves: Annotated[
        bool | None, option("Selection curves in the report; by default if quick.", OUTPUT, "--curves/--no-curves")
    ] = None
    check_locality: Annotated[
        bool, option("Locality check in the report; takes up to 20,000 trainings.", OUTPUT, "--check-locality")
    ] = False


def takes(*groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of these dataclasses; it is called with an instance of each, and its own options."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        shared: dict[str, inspect.Parameter] = {}
        for group in groups:
            hints = get_type_hints(group, include_extras=True)
            for f in fields(group):
                default = inspect.Parameter.empty if f.default is MISSING else f.default
                kind = inspect.Parameter.KEYWORD_ONLY
                shared[f.name] = inspect.Parameter(f.name, kind, default=default, annotation=hints[f.name])
        hints = get_type_hints(command, include_extras=True)
        own = {
            name: p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
            for name, p in list(inspect.signature(command).parameters.items())[len(groups) :]
        }
        # Arguments and what has no default come first.
        merged = sorted({**shared, **own}.values(), key=lambda p: p.default is not inspect.Parameter.empty)

        @wraps(command)
        def wrapper(**given: Any) -> None:
            made = [group(**{f.name: given[f.name] for f in fields(group)}) for group in groups]
            command(*made, **{name: given[name] for name in own})

        wrapper.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in merged}
        return wrapper

    return decorate
