"""`localshapley store`: what a file holds, whether it is sound, and how to make it smaller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localshapley.formatting import printable

if TYPE_CHECKING:
    from localshapley.engine.score_store import Store

app = typer.Typer(help="Inspect and maintain a store of trained coalitions.", no_args_is_help=True)

StorePath = Annotated[Path, typer.Argument(help="The file of the store.", show_default=False)]


@app.command()
def info(path: StorePath) -> None:
    """Show what a store holds."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    with _opened(path) as store:
        held = store.info()
    table = Table("trained", "coalitions", "first", "last")
    table.columns[1].justify = "right"
    for about, n_coalitions, first, last in held.contents:
        times = (f"{moment.astimezone():%Y-%m-%d %H:%M}" for moment in (first, last))
        table.add_row(Text(printable(about), overflow="fold"), f"{n_coalitions:,}", *times)
    typer.echo(
        f"{held.path}: {held.n_coalitions:,} coalitions, {held.n_scores:,} scores, {held.bytes / 1e6:,.1f} MB on disk"
    )
    if held.contents:
        Console().print(table)


@app.command()
def vacuum(path: StorePath) -> None:
    """Rewrite a store without its gaps; needs as much free disk space as the store takes up."""
    with _opened(path) as store:
        before, after = store.vacuum()
    typer.echo(f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB after")


@app.command()
def verify(path: StorePath) -> None:
    """Read and check everything in a store; the exit status is 1 if something is wrong."""
    with _opened(path) as store:
        problems = store.verify()
    typer.echo(printable("\n".join(problems), keep="\n") or "sound")
    if problems:
        raise typer.Exit(1)


@contextmanager
def _opened(path: Path) -> Iterator[Store]:
    """Open an existing store; any error becomes one line and status 1."""
    from localshapley.engine.score_store import Store
    from localshapley.engine.store_file import StoreError

    try:
        if not path.exists():
            raise StoreError(f"{path} does not exist.")
        if path.is_file() and path.stat().st_size == 0:
            raise StoreError(f"{path} is empty, so it is not a store yet.")
        with Store(path) as store:
            yield store
    except (StoreError, OSError) as error:
        typer.echo(f"error: {printable(str(error))}", err=True)
        raise typer.Exit(1) from error
