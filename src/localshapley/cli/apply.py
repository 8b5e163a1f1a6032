"""`localshapley apply`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import localshapley as ls
from localshapley.cli.data import load_data, no_column
from localshapley.cli.files import Writing, check_files
from localshapley.cli.options import (
    DATA,
    OUTPUT,
    WHOLE,
    Encoding,
    Na,
    RawCsv,
    RunOptions,
    Sep,
    option,
    stripped,
    takes_groups,
)
from localshapley.cli.output import Output, as_records
from localshapley.cli.valuing import explaining_preparation, find_model, guarded_in_words
from localshapley.errors import LocalShapleyError
from localshapley.io.tables import read_table

if TYPE_CHECKING:
    from localshapley.audit import RepairedTable, ScoreChange

CHECK = "The check"
"""Panel of the help for what belongs to `--check`."""


@takes_groups
def apply(
    output: Output,
    table: Annotated[Path, typer.Argument(help="The table that the report is about.", show_default=False)],
    decisions: Annotated[Path, typer.Argument(help="Decisions that the report has saved.", show_default=False)],
    target: Annotated[str, option("Column of the labels.", DATA, "--target", "-t")],
    out: Annotated[Path, option("Mended table to write, of the same kind as the table.", OUTPUT, "--out", "-o")],
    id: Annotated[str | None, option("Column that names the rows, as for the report.", DATA)] = None,
    encoding: Encoding = "utf-8",
    sep: Sep = None,
    na: Na = None,
    force: Annotated[bool, option("Overwrite a file that is there already.", OUTPUT, "--force", "-f")] = False,
    raw_csv: RawCsv = False,
    check: Annotated[bool, option("Compare the model before and after by cross-validation.", CHECK, "--check")] = False,
    model: Annotated[str, option("Model to compare with, as in value (default: knn).", CHECK, "--model", "-m")] = "knn",
    cv: Annotated[int, option("Folds to cross-validate with (default: 5).", CHECK, **WHOLE)] = 5,
    drop: Annotated[list[str] | None, option("Column that the model does not get; repeat for more.", CHECK)] = None,
    category: Annotated[
        list[str] | None, option("Column whose numbers are codes, not amounts; repeat for more.", CHECK)
    ] = None,
    task: Annotated[str, option("classification or regression (default: inferred from the target).", CHECK)] = "auto",
    no_prepare: Annotated[bool, option("Hand the table to the model as it is.", CHECK, "--no-prepare")] = False,
    seed: Annotated[int, option("Seed of the folds (default: 0).", CHECK, **WHOLE)] = 0,
) -> None:
    """Mend a table by the decisions that were made in a report."""
    from localshapley.io.rewriting import check_kind, rewrite_table

    check_files(read={"the decisions": decisions}, written={"--out": out})
    _check_out(table, out, force)
    check_kind(table, out)
    target, id = target.strip(), stripped(id)
    rows = read_table(table, encoding, sep=sep, na=na, once=(target, id), ids=id)
    for name, given in (("--target", target), ("--id", id)):
        if given is not None and given not in rows.columns:
            raise no_column(name, given, rows, table)
    applied = ls.audit.apply(rows.reset_index(drop=True), decisions, target=target, id=id)
    change = None
    if check:
        run = RunOptions(
            train=table, target=target, id=id, encoding=encoding, sep=sep, na=na, model=model, drop=drop,
            category=category, task=task, no_prepare=no_prepare, seed=seed, drop_missing_target=True,
        )  # fmt: skip
        change = _checked(applied, run, cv, output)
    is_new, is_gone = (applied.decisions["decision"].to_numpy() == word for word in ("relabel", "drop"))
    cells = dict(zip(applied.places[is_new].tolist(), applied.decisions["new_label"][is_new], strict=True))
    text, writing = [str(applied)] + ([str(change)] if change is not None else []), Writing()
    with writing.to(out):
        gone = applied.places[is_gone]
        guarded = rewrite_table(table, out, target, cells, gone, encoding=encoding, sep=sep, raw=raw_csv)
        text.append(f"Wrote {out}: {len(applied.table):,} rows{guarded_in_words(guarded)}")
    output.answer(_document(applied, change, out), "\n".join(text))
    writing.end()


def _check_out(table: Path, out: Path, force: bool) -> None:
    """Refuse to overwrite what is there, unless that was asked for."""
    if out.exists() and not force:
        which = "the table itself" if table.exists() and out.samefile(table) else "there already"
        raise LocalShapleyError(f"{out} is {which}; give another --out, or --force to overwrite it.")


def _checked(applied: RepairedTable, run: RunOptions, folds: int, output: Output) -> ScoreChange:
    """The score before and after, with the table prepared as for a valuation."""
    data = load_data(run)
    output.status("comparing the model before and after: " + "; ".join(data.preparation))
    with explaining_preparation(run):
        return applied.check(data.X, model=find_model(run.model, data.regression), cv=folds, seed=run.seed)


def _document(applied: RepairedTable, change: ScoreChange | None, out: Path) -> dict[str, Any]:
    relabelled = applied.relabelled.rename("n").reset_index()
    return {
        "table": str(out),
        "rows": len(applied.table),
        "kept": len(applied.kept),
        "relabelled": int(applied.relabelled.sum()),
        "dropped": len(applied.dropped),
        "changes": relabelled.to_dict("records"),
        "new_labels": applied.new_labels,
        "decisions": as_records(applied.decisions.rename_axis("row")),
        "check": None if change is None else asdict(change),
    }
