"""The command line, `localshapley --help`: one file for each command.

Files here import what is light at their top; numpy, pandas and all that values rows are imported when a command runs,
which keeps `--help` quick.
"""

from __future__ import annotations

import gc
import sys
import warnings
from importlib import import_module
from typing import Annotated, Any

import typer

from localshapley import __version__
from localshapley.cli import store
from localshapley.cli.options import FAILED, INTERRUPTED, WRONG_USE
from localshapley.errors import InvalidArgumentError, LocalShapleyError, LocalShapleyWarning
from localshapley.formatting import printable

COMMANDS = ("value", "plan", "suspects", "select", "compare", "report", "apply", "datasets", "demo", "warm-up")
"""In the order of the help; each is a function in the file of its name, with `_` for `-`."""

app = typer.Typer(
    help="What each row of your training data is worth to your model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name in COMMANDS:
    function = name.replace("-", "_")
    app.command(name)(getattr(import_module(f"localshapley.cli.{function}"), function))
app.add_typer(store.app, name="store")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"localshapley {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; warnings and errors are one line, with a traceback only after `--debug`."""
    warnings.formatwarning = _in_one_line
    gc.set_threshold(200_000)  # imports make many objects and no rubbish
    try:
        status = app(standalone_mode=False)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        status = _explain(error)
    if status == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    sys.exit(status if isinstance(status, int) else 0)


def _in_one_line(
    message: Any,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
    usual: Any = warnings.formatwarning,
) -> str:
    """Our own warnings without the line of code that they are for: nobody wrote one."""
    if issubclass(category, LocalShapleyWarning):
        return f"warning: {printable(' '.join(str(message).split()))}\n"
    return str(usual(message, category, filename, lineno, line))


def _explain(error: Any) -> int:
    """Say what went wrong on one line, and return the exit status."""
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    status = FAILED
    if hasattr(error, "format_message"):  # wrong use, as typer sees it
        context = getattr(error, "ctx", None)
        help_ = f" See {context.command_path} --help." if context is not None else ""
        said = error.format_message().strip()
        text, status = f"{said}{'' if said.endswith(('.', '?', '!')) else '.'}{help_}", error.exit_code
    elif isinstance(error, LocalShapleyError):
        text, status = str(error), WRONG_USE if isinstance(error, InvalidArgumentError) else FAILED
    elif isinstance(error, OSError):
        text = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    else:
        text = f"{type(error).__name__}: {error} (--debug shows where)"
    print(f"error: {printable(' '.join(text.split()))}", file=sys.stderr)
    return status
