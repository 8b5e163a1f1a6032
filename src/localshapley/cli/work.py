"""The commands that value rows: value, plan, suspects, select."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from localshapley import tasks
from localshapley.api import value as value_rows
from localshapley.cli.data import Data, find_model, find_shape, find_support, load_data
from localshapley.cli.options import INTERRUPTED, Files, Run
from localshapley.cli.output import Speaker, as_records, table_text
from localshapley.coalitions.exact import count_levels
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.inputs.tables import kind_of, write_table
from localshapley.locality import locality_gap
from localshapley.planning import plan as plan_run
from localshapley.problem import pose
from localshapley.valuation import Valuation, load

CURVE_SECONDS = 3.0
"""Selection curves are drawn by themselves if they take no longer."""


def value(run: Run, files: Files) -> None:
    """Value rows, write the files that were asked for, and print what came of it."""
    say = Speaker(run)
    _check_files(run, files)
    data, valuation = _valued(run, say)
    written = {}
    if files.out is not None:
        _write_values(valuation, data, files.out)
        written["values"] = str(files.out)
    owners = None if data.owner is None or run.play_owners else tasks.owners(valuation, data.owner)
    if files.report is not None:
        _write_report(run, files, data, valuation, owners, say)
        written["report"] = str(files.report)
    document = {**about(valuation), "preparation": data.said, "files": written}
    document["rows"] = as_records(_with_labels(valuation, data))
    if owners is not None:
        document["owners"] = as_records(owners)
    text = [repr(valuation), "", *(f"  prepared {line}" for line in data.said)]
    text += ["", "Best", table_text(_with_labels(valuation, data), valuation.top(5).index)]
    text += ["", "Worst", table_text(_with_labels(valuation, data), valuation.bottom(5).index)]
    if owners is not None:
        text += ["", "Owners", table_text(owners)]
    text += ["", *(f"Wrote {path}" for path in written.values())]
    say.answer(document, "\n".join(text).rstrip())
    _end(valuation)


def plan(run: Run) -> None:
    """Say what a run would cost."""
    say = Speaker(run)
    data = load_data(run)
    found = plan_run(*_rows(data), **_settings(run, data), owners=_players(run, data))
    levels = found.levels
    document = {
        "trainings": {
            "global": levels.global_,
            "local": levels.local,
            "subset-centric": levels.subset_centric,
            "lsmr": levels.lsmr,
        },
        "first_look": found.first_look,
        "seconds_per_training": found.seconds_per_training,
        **{
            name: getattr(found, name)
            for name in ("n_rows", "n_tests", "model", "score", "support", "trainer", "notes")
        },
        "preparation": data.said,
    }
    say.answer(document, repr(found))


def suspects(run: Run, n: float | None, values: Path | None, out: Path | None) -> None:
    """List rows that are likely mislabelled."""
    say = Speaker(run)
    _check_folder(out)
    data, valuation = _kept_or_valued(run, values, say)
    found = tasks.suspects(valuation, data.y, X=data.X, n=None if n is None else _count(n))
    rows = found.join(data.rows)
    if out is not None:
        write_table(rows.assign(neighbours=[", ".join(map(str, near)) for near in rows["neighbours"]]), out)
    document = {**about(valuation), "preparation": data.said, "suspects": as_records(found)}
    text = [f"{len(found)} of {len(data.y)} rows are suspected of a wrong {run.target}" + (":" if len(found) else ".")]
    if len(found):
        text.append(table_text(found))
    if len(found) == 0 and n is None:
        text.append("No row does harm and is outvoted by its neighbours; -n 20 lists the 20 most suspicious.")
    text += [f"note: {note}" for note in valuation.notes] + ([f"Wrote {out}"] if out is not None else [])
    say.answer(document, "\n".join(text))
    _end(valuation)


def select(run: Run, n: float, balance: str | None, values: Path | None, out: Path | None) -> None:
    """Choose the best rows."""
    say = Speaker(run)
    _check_folder(out)
    data, valuation = _kept_or_valued(run, values, say)
    chosen = tasks.select(valuation, _count(n), y=None if data.regression else data.y, balance=balance)
    if out is not None:
        target = pd.Series(data.y, index=data.rows.index, name=run.target)
        write_table(data.rows.join(target).loc[chosen.index], out)
    document = {**about(valuation), "preparation": data.said, "selected": as_records(chosen)}
    text = [f"The {len(chosen)} best of {len(data.y)} rows:", table_text(chosen)]
    say.answer(document, "\n".join(text + ([f"Wrote {out}: these rows"] if out is not None else [])))
    _end(valuation)


def _count(n: float) -> float:
    """Whole numbers of rows as such, shares as they are."""
    if n > 1 and n % 1:
        raise InvalidArgumentError(f"-n must be a whole number of rows, or a share below 1; got {n}.")
    return int(n) if n >= 1 else n


def about(valuation: Valuation) -> dict[str, Any]:
    """What a valuation is, for a document."""
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
    }


def _rows(data: Data) -> tuple[pd.DataFrame, Any, Any, Any]:
    """The rows with their names, so that values go by these."""
    X = pd.DataFrame(data.X, index=data.rows.index)
    X_test = None if data.X_test is None else pd.DataFrame(data.X_test)
    return X, data.y, X_test, data.y_test


def _settings(run: Run, data: Data) -> dict[str, Any]:
    """What `value`, `plan` and `locality_gap` take alike."""
    return {
        "model": find_model(run.model, data.regression),
        "cv": None if data.X_test is not None else (run.cv or 5),
        "support": find_support(run.support),
        "score": run.score,
        "seed": run.seed,
        "n_jobs": run.jobs,
    }


def _players(run: Run, data: Data) -> Any:
    if run.play_owners and data.owner is None:
        raise InvalidArgumentError("--play-owners needs the column that names them: --owner COLUMN.")
    return data.owner if run.play_owners else None


def _valued(run: Run, say: Speaker) -> tuple[Data, Valuation]:
    """Read the data and value its rows; an interruption leaves what is known so far."""
    data = load_data(run)
    say.status(f"{len(data.y):,} rows of {run.train}: " + "; ".join(data.said))
    try:
        valuation = value_rows(
            *_rows(data),
            **_settings(run, data),
            method=run.method,
            tol=run.tol,
            budget=run.budget,
            max_seconds=run.max_seconds,
            owners=_players(run, data),
            store=run.store,
            progress=not run.quiet,
            on_interrupt="return",
        )
    except KeyboardInterrupt:
        kept = f"; {run.store} keeps what was trained, the same command goes on" if run.store else ""
        say.status(f"stopped before there was a first estimate{kept}")
        raise
    return data, valuation


def _kept_or_valued(run: Run, values: Path | None, say: Speaker) -> tuple[Data, Valuation]:
    if run.play_owners:
        raise InvalidArgumentError("--play-owners values owners; rows are what this command is about.")
    if values is None:
        return _valued(run, say)
    data, valuation = load_data(run), load(values)
    say.status(f"{len(data.y):,} rows of {run.train}: " + "; ".join(data.said))
    if len(valuation.values) != len(data.y) or not valuation.to_frame().index.equals(data.rows.index):
        raise LocalShapleyError(
            f"{values} is not about the {len(data.y)} rows of {run.train} with these options; give the options that it "
            "was made with (--id, --test-size, --seed)."
        )
    return data, valuation


def _with_labels(valuation: Valuation, data: Data) -> pd.DataFrame:
    frame = valuation.to_frame()
    if valuation.unit != "row":
        return frame
    frame = frame.assign(label=data.y)
    return frame if data.owner is None else frame.assign(owner=data.owner.to_numpy())


def _write_values(valuation: Valuation, data: Data, path: Path) -> None:
    if path.suffix == ".parquet":
        valuation.save(path)
    else:
        write_table(_with_labels(valuation, data), path)


def _write_report(
    run: Run, files: Files, data: Data, valuation: Valuation, owners: pd.DataFrame | None, say: Speaker
) -> None:
    from localshapley.report import write_report

    assert files.report is not None
    is_rows = valuation.unit == "row"
    say.status("writing the report")
    problem = pose(*_rows(data), **_settings(run, data), owners=_players(run, data))
    gap = None
    if files.check_locality:
        settings = {name: given for name, given in _settings(run, data).items() if name != "cv"}
        gap = locality_gap(*_rows(data), **settings, progress=not run.quiet)
    write_report(
        files.report,
        valuation,
        data.rows if is_rows else None,
        y=data.y if is_rows else None,
        levels=count_levels(problem.graph, seed=run.seed),
        suspects=tasks.suspects(valuation, data.y, X=data.X) if is_rows else None,
        curves=_curves(run, files, data, valuation, say) if is_rows else None,
        owners=owners,
        gap=gap,
        image_shape=find_shape(files.image_shape),
        preparation=data.said,
        title=files.title or f"What the rows of {run.train.name} are worth",
    )


def _curves(run: Run, files: Files, data: Data, valuation: Valuation, say: Speaker) -> tasks.Curves | None:
    """Selection curves on the test rows, if they are asked for or quick."""
    if data.X_test is None or data.y_test is None or files.curves is False:
        return None
    model = find_model(run.model, data.regression)
    started = perf_counter()
    model.fit(data.X, data.y).predict(data.X_test)
    each = perf_counter() - started
    shares, n_seeds = np.linspace(0.1, 1.0, 10), 3
    if files.curves is None and each * len(shares) * (3 + n_seeds) / 2 > CURVE_SECONDS:
        say.status(f"selection curves left out: a training on all rows takes {each:.1f} s (--curves draws them)")
        return None
    if files.curves:
        shares, n_seeds = np.linspace(0.05, 1.0, 20), 10
    return tasks.curves(
        valuation,
        data.X,
        data.y,
        data.X_test,
        data.y_test,
        model=model,
        score="r2" if data.regression else "accuracy",
        shares=shares,
        n_seeds=n_seeds,
        seed=run.seed,
    )


def _check_files(run: Run, files: Files) -> None:
    """Refuse what cannot be written, or shown, before anything is paid."""
    for path in (files.out, files.report):
        _check_folder(path)
    if files.out is not None:
        kind_of(files.out)
    find_shape(files.image_shape)
    for name, wanted in (("--curves", files.curves), ("--check-locality", files.check_locality)):
        if wanted and run.test is None and run.test_size is None:
            raise InvalidArgumentError(f"{name} needs test rows: --test or --test-size.")


def _check_folder(path: Path | None) -> None:
    """Refuse a file in a folder that is not there before anything is paid."""
    if path is not None and not path.absolute().parent.is_dir():
        raise InvalidArgumentError(f"{path} cannot be written: the folder {path.parent} does not exist.")


def _end(valuation: Valuation) -> None:
    if valuation.stopped == "interrupted":
        import typer

        raise typer.Exit(INTERRUPTED)
