"""`localshapley plan`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict

import localshapley as ls
from localshapley.cli.folder import arguments_of_folder
from localshapley.cli.options import RunOptions, takes_groups
from localshapley.cli.output import Output
from localshapley.cli.valuing import arguments, comparing_as_given, explaining_preparation, loaded


@takes_groups
def plan(run: RunOptions, output: Output) -> None:
    """Show what `value` with the same options would cost, before you run it."""
    if run.train.is_dir():
        given, preparation = arguments_of_folder(run, output)
        as_given: AbstractContextManager[None] = nullcontext()
    else:
        data = loaded(run, output)
        given, preparation = {**arguments(run, data), "progress": not output.quiet}, data.preparation
        as_given = comparing_as_given(data)
    with explaining_preparation(run), as_given:
        found = ls.plan(**given)
    levels = found.levels
    names = ("unit", "n_rows", "n_tests", "model", "score", "support", "method", "chosen", "trainer", "notes")
    document = {
        "this_run": {"samples": found.samples, "trainings": found.trainings, "classes": found.classes},
        "trainings": {
            "global": levels.global_,
            "local": levels.local,
            "subset-centric": levels.subset_centric,
            "lsmr": levels.lsmr,
        },
        "first_look": found.first_look,
        "until_target": None if found.target is None else asdict(found.target),
        "seconds_per_training": found.seconds_per_training,
        **{name: getattr(found, name) for name in names},
        "memory": found.memory,
        "preparation": preparation,
    }
    output.answer(document, repr(found))
