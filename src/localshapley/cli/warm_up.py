"""`localshapley warm-up`: compile ahead."""

from __future__ import annotations

from typing import Annotated

import typer

import localshapley as ls
from localshapley.cli.options import WHOLE, takes_groups
from localshapley.cli.output import Output


@takes_groups
def warm_up(
    output: Output,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="knn, radius, tree, forest, fixed, svm, logistic, ridge, linear, bayes or gcn (default: all).",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Processes at a time (default: one per core).", **WHOLE)
    ] = None,
) -> None:
    """Compile ahead what valuations will call, so that the first one starts at once."""
    seconds = ls.warm_up(model, n_jobs=jobs, progress=not output.quiet)
    text = [f"{name:<10} {f'{spent:.1f} s' if spent else 'was there'}" for name, spent in seconds.items()]
    output.answer({"seconds": seconds}, "\n".join(text))
