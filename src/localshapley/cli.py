"""The command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from localshapley.store_cli import app as store_app

app = typer.Typer(
    help="What each row of your training data is worth to your model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


app.add_typer(store_app, name="store")


def main() -> None:
    """Run the command line."""
    app()


def _version(wanted: bool) -> None:
    if wanted:
        from localshapley import __version__

        typer.echo(f"localshapley {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the values and the report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the split and of the flipped labels.")] = 0,
) -> None:
    """Value the bundled Breast Cancer data, with some labels flipped on purpose, and write a report."""
    from localshapley.demo import run_demo

    run_demo(out, seed, typer.echo)


if __name__ == "__main__":
    main()
