"""The command line: `localshapley --help`."""

from __future__ import annotations

import sys
from typing import Any

from localshapley.cli.commands import app
from localshapley.cli.options import FAILED, INTERRUPTED, WRONG_USE


def main() -> None:
    """Run the command line; errors are one line, with a traceback only after `--debug`."""
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


def _explain(error: Any) -> int:
    """Say what went wrong on one line, and return the status to end with."""
    from localshapley.errors import InvalidArgumentError, LocalShapleyError

    if type(error).__name__ == "Abort":
        return INTERRUPTED
    status = FAILED
    if hasattr(error, "format_message"):  # wrong use, as typer sees it
        context = getattr(error, "ctx", None)
        help_ = f" See {context.command_path} --help." if context is not None else ""
        text, status = f"{error.format_message()}{help_}", error.exit_code
    elif isinstance(error, LocalShapleyError):
        text, status = str(error), WRONG_USE if isinstance(error, InvalidArgumentError) else FAILED
    elif isinstance(error, OSError):
        text = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    else:
        text = f"{type(error).__name__}: {error} (--debug shows where)"
    print(f"error: {' '.join(text.split())}", file=sys.stderr)
    return status
