"""The commands. What they import is imported when they run, which keeps `--help` quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from localshapley.cli.options import DATA, OUTPUT, Files, Output, Run, option, takes
from localshapley.cli.store import app as store_app

app = typer.Typer(
    help="What each row of your training data is worth to your model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(store_app, name="store")

Values = Annotated[
    Path | None, option("Values that `value --out values.parquet` kept, in place of a run.", DATA, "--values")
]
Listed = Annotated[Path | None, option("Table to write: .csv, .tsv, .parquet, .feather.", OUTPUT, "--out", "-o")]


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


@app.command("value")
@takes(Run, Files)
def value_command(run: Run, files: Files) -> None:
    """Value every row of a table by what it does for a model's predictions."""
    from localshapley.cli.work import value

    value(run, files)


@app.command("plan")
@takes(Run)
def plan_command(run: Run) -> None:
    """Tell what `value` with the same options would cost."""
    from localshapley.cli.work import plan

    plan(run)


@app.command("suspects")
@takes(Run)
def suspects_command(
    run: Run,
    n: Annotated[
        float | None,
        typer.Option("-n", "--n", help="Rows to list, or a share such as 0.1 (those that do harm and are outvoted)."),
    ] = None,
    values: Values = None,
    out: Listed = None,
) -> None:
    """List the rows that are likely mislabelled, with the neighbours that speak against them."""
    from localshapley.cli.work import suspects

    suspects(run, n, values, out)


@app.command("select")
@takes(Run)
def select_command(
    run: Run,
    n: Annotated[float, typer.Option("-n", "--n", help="Rows to choose, or a share such as 0.2.", show_default=False)],
    balance: Annotated[
        str | None, typer.Option(help="Classes as in the data (classes) or equally many (equal).")
    ] = None,
    values: Values = None,
    out: Listed = None,
) -> None:
    """Choose the best rows for a budget."""
    from localshapley.cli.work import select

    select(run, n, balance, values, out)


@app.command("compare")
@takes(Output)
def compare_command(
    output: Output,
    one: Annotated[Path, typer.Argument(help="Values: a table with the columns value and row or id.")],
    two: Annotated[Path, typer.Argument(help="Values of the same rows.")],
    top: Annotated[int, typer.Option(help="Best and worst rows to compare.")] = 50,
    picture: Annotated[Path | None, typer.Option(help="Scatter to write: .png, .svg, .pdf (needs matplotlib).")] = None,
) -> None:
    """Compare two results: rank correlation, overlap of the best and worst rows, scatter."""
    from localshapley.cli.results import compare

    compare(output, one, two, top, picture)


@app.command("report")
@takes(Output)
def report_command(
    output: Output,
    values: Annotated[Path, typer.Argument(help="Values that `value --out values.parquet` kept.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write.")] = Path("report.html"),
    train: Annotated[Path | None, typer.Option(help="The table that was valued, to show its rows.")] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column that was predicted.")] = None,
    owner: Annotated[str | None, typer.Option(help="Column that names the owners.")] = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Data valuation",
    image_shape: Annotated[str | None, typer.Option(help="Show rows as images, such as 28x28.")] = None,
    data: Annotated[bool, typer.Option("--data", help="Also write what the page says as JSON beside it.")] = False,
) -> None:
    """Write a page about values that were kept."""
    from localshapley.cli.results import report

    report(output, values, out, train, target, owner, title, image_shape, data)


@app.command("datasets")
@takes(Output)
def datasets_command(
    output: Output,
    name: Annotated[str | None, typer.Argument(help="Data set to write as a table.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Table to write (NAME.csv).")] = None,
) -> None:
    """List the data sets that come with the package, or write one as a table to try things on."""
    from localshapley.cli.results import datasets

    datasets(output, name, out)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the values and the report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the split and of the flipped labels.")] = 0,
) -> None:
    """Value the bundled Breast Cancer data, with some labels flipped on purpose, and write a report."""
    from localshapley.demo import run_demo

    run_demo(out, seed, typer.echo)
