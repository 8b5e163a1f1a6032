"""From options to a valuation: what the commands that value rows share."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import MISSING, Field, asdict, fields, replace
from importlib import import_module
from inspect import isabstract, isroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import localshapley as ls
from localshapley.cli.data import InputTable, load_data, load_valued
from localshapley.cli.options import INTERRUPTED, RunOptions, whole
from localshapley.cli.output import Output
from localshapley.cli.saved import load_values
from localshapley.errors import InvalidArgumentError, RefusedByModelError, unknown_name
from localshapley.notes import Note

if TYPE_CHECKING:
    from localshapley.supports import Support

ALIASES = {"tree": "tree-node"}
"""Short names of supports."""
NEED_A_GRAPH = ("Hops",)
"""Supports that a table cannot use, though a number is all that they take."""
NUMBERS: dict[Any, Any] = {"int": int, "float": float, int: int, float: float}
"""How the size of a support is read, by its annotation, which most modules keep as text."""


def problem(run: RunOptions, data: InputTable) -> dict[str, Any]:
    """What is played: the arguments that say which rows, model, support and score."""
    if run.play_owners and data.owner is None:
        raise InvalidArgumentError("--play-owners needs the column that names the owners: --owner COLUMN.")
    return {
        "X": data.X,
        "y": data.labels,
        "X_test": data.X_test,
        "y_test": data.y_test,
        "model": find_model(run.model, data.regression),
        "cv": None if data.X_test is not None else _folds(run.cv),
        "support": find_support(run.support),
        "score": run.score,
        "seed": run.seed,
        "n_jobs": run.jobs,
        "owners": data.owner if run.play_owners else None,
    }


def _folds(text: str | None) -> int | str:
    """The folds behind `--cv`: a number, or out of bag."""
    if text is None or text == "oob":
        return text or 5
    try:
        return whole(text)
    except typer.BadParameter:
        raise InvalidArgumentError(f"--cv must be a number of folds, or oob; got {text!r}.") from None


def arguments(run: RunOptions, data: InputTable) -> dict[str, Any]:
    """Everything that decides what a valuation costs: the problem, how it is solved, and what is known already."""
    return {**problem(run, data), **solution(run)}


def solution(run: RunOptions) -> dict[str, Any]:
    """How the games are solved, and where what was trained is kept."""
    names = ("method", "tol", "budget", "max_seconds", "seeds", "store")
    return {name: getattr(run, name) for name in names}


def valued(
    run: RunOptions, output: Output, check: Callable[[InputTable], Any] = lambda data: None
) -> tuple[InputTable, ls.Valuation]:
    """Read the data, check it and value its rows; an interruption leaves what is known so far."""
    from localshapley.valuation import Digests

    data = loaded(run, output)
    check(data)
    with telling_what_is_kept(run, output), explaining_preparation(run), comparing_as_given(data):
        valuation = ls.value(**arguments(run, data), progress=not output.quiet, on_interrupt="return")
    valuation = by_command(valuation)
    # Of the rows as they are in the file, as how they are prepared depends on all of them. These rows are at hand.
    digests = Digests.of(data.rows, data.y, is_joined=True) if valuation.unit == "row" else None
    return data, replace(valuation, players=replace(valuation.players, digests=digests))


def by_command(valuation: ls.Valuation) -> ls.Valuation:
    """The valuation with the command line as its call."""
    assert valuation.record is not None
    return replace(valuation, record=replace(valuation.record, call=shlex.join(["localshapley", *sys.argv[1:]])))


@contextmanager
def telling_what_is_kept(run: RunOptions, output: Output) -> Iterator[None]:
    """Say what a store is for, and what is left of a run that is interrupted before it has a result."""
    if run.store is not None:
        output.status(
            f"{run.store} keeps trainings that take longer than reading them back; those of most compiled models are "
            "quicker, and are done again"
        )
    try:
        yield
    except KeyboardInterrupt:
        kept = f"; {run.store} keeps what was trained, and the same command resumes from it" if run.store else ""
        output.status(f"stopped before the first estimate{kept}")
        raise


@contextmanager
def explaining_preparation(run: RunOptions) -> Iterator[None]:
    """Say in the error of a model that refuses the table what it was given."""
    try:
        yield
    except RefusedByModelError as error:
        given = (
            "The model was given the table as it is (--no-prepare), so it must encode words and fill gaps itself."
            if run.no_prepare
            else "The model was given the table prepared: numbers scaled, gaps filled, and a feature such as color_red "
            "for each category; a pipeline that prepares the table itself needs --no-prepare."
        )
        raise RefusedByModelError(f"{error} {given}") from error


def comparing_as_given(data: InputTable) -> AbstractContextManager[None]:
    """Look for copies among the rows as they are in the file: names that the model does not get count, too."""
    from localshapley.data.exact_duplicates import comparing  # heavy

    return comparing(data.as_given)


def saved_or_valued(
    run: RunOptions, values: Path | None, output: Output, n: float | None = None
) -> tuple[InputTable, ls.Valuation]:
    """Read the data, and the values of its rows, `n` of which are asked for, where they were saved."""
    from localshapley.data.side_columns import count_of  # heavy

    refuse_owners(run)
    if values is None:
        return valued(run, output, lambda data: n is None or count_of(n, len(data.y)))
    data, valuation = load_valued(run, load_values("--values", values))
    _say_prepared(run, data, output)
    return data, valuation


def refuse_owners(run: RunOptions) -> None:
    """Refuse owners as players, where a command is about rows."""
    if run.play_owners:
        raise InvalidArgumentError("--play-owners values owners, but this command is about rows; leave it out.")


def loaded(run: RunOptions, output: Output) -> InputTable:
    """Read the data, and say what was made of it."""
    data = load_data(run)
    _say_prepared(run, data, output)
    return data


def _say_prepared(run: RunOptions, data: InputTable, output: Output) -> None:
    output.status(f"{len(data.y):,} rows of {run.train}: " + "; ".join(data.preparation))


def about(valuation: ls.Valuation, preparation: list[Note]) -> dict[str, Any]:
    """The description of a valuation, for a document."""
    names = ("model", "score", "support", "method", "stopped", "notes", "relative_error", "unit")
    cost = valuation.cost
    return {
        **{name: getattr(valuation, name) for name in names},
        "n_rows": len(valuation.values),
        "n_tests": len(valuation.support_sizes),
        "trainings": cost.trainings,
        "reused": cost.reused,
        "stored": cost.stored,
        "seconds": cost.seconds,
        "preparation": preparation,
        "skill": None if valuation.skill is None else asdict(valuation.skill),
        "record": None if valuation.record is None else asdict(valuation.record),
    }


def guarded_in_words(cells: int) -> str:
    """What was done to cells that a spreadsheet would run."""
    marked = "1 cell that begins" if cells == 1 else f"{cells:,} cells that begin"
    return f" ({marked} with =, +, - or @ got a ' in front; --raw-csv leaves it out)" if cells else ""


def end(result: ls.Valuation | ls.Selection) -> None:
    """End a command after its answer; the exit status says if the run was cut short."""
    if result.stopped.code == "interrupted":
        raise typer.Exit(INTERRUPTED)


def find_model(name: str, regression: bool) -> Any:
    """The model behind `--model`: a name, or an estimator (or a class or function that makes it) in a module."""
    from localshapley.models.dispatch import FIXED_FOREST, find_named
    from localshapley.models.named_models import NAMES

    if ":" not in name:
        if name not in (*NAMES, FIXED_FOREST):
            raise unknown_name("--model", name, [*NAMES, FIXED_FOREST, "module:object"])
        return find_named(name, regression=regression)
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")  # modules in the folder where the command runs
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        return found() if isinstance(found, type) or isroutine(found) else found
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidArgumentError(
            f"--model {name} could not be imported ({error}); give a module that can be imported and an estimator in "
            "it, such as sklearn.naive_bayes:GaussianNB."
        ) from None
    finally:
        sys.path.pop(0)


def find_support(text: str | None) -> Support | str | None:
    """The support behind `--support`: a name, and its size after a colon."""
    from localshapley.question import AUTO  # heavy

    if text is None or text == AUTO:
        return text
    name, _, size = text.partition(":")
    offered = offered_supports()
    kind: Any = offered.get(ALIASES.get(name, name))
    if kind is None:
        raise unknown_name("--support", name, [AUTO, *offered, *ALIASES])
    first = _size_of(kind)
    if size and first is None:
        raise InvalidArgumentError(f"--support {name} takes no size; got {text!r}.")
    try:
        made: Support = kind(NUMBERS[first.type](size)) if size and first else kind()
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"--support {text} has no valid size; write it like nearest:20.") from None
    return made


def offered_supports() -> dict[str, type[Support]]:
    """Supports for which a name and a size are enough, by name in lower case: `CompactKernel` is compact-kernel."""
    found = {}
    for name in ls.supports.__all__:
        kind = getattr(ls.supports, name)
        if not isinstance(kind, type) or not issubclass(kind, ls.supports.Support) or isabstract(kind):
            continue
        required = [f for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
        first = next((f for f in fields(kind) if not f.kw_only), None)
        if name not in NEED_A_GRAPH and all(f is _size_of(kind) for f in required) and first is _size_of(kind):
            found[re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()] = kind
    return found


def _size_of(kind: type[Support]) -> Field[Any] | None:
    """The first argument of a support, if it is a number."""
    first = next((f for f in fields(kind) if not f.kw_only), None)
    return first if first is not None and first.type in NUMBERS else None
