"""`localshapley compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import localshapley as ls
from localshapley.cli.files import Writing, check_files
from localshapley.cli.options import WHOLE, takes_groups
from localshapley.cli.output import Output
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.io.tables import read_table, unguard

if TYPE_CHECKING:
    import pandas as pd

    from localshapley.arrays import Floats


@takes_groups
def compare(
    output: Output,
    one: Annotated[
        Path, typer.Argument(help="Values: a table whose first column names the rows, with a column `value`.")
    ],
    two: Annotated[Path, typer.Argument(help="Values of the same rows.")],
    top: Annotated[int, typer.Option(help="Number of best and worst rows to compare.", **WHOLE)] = 50,
    picture: Annotated[
        Path | None, typer.Option(help="Scatter plot to write: .png, .svg or .pdf (needs matplotlib).")
    ] = None,
) -> None:
    """Compare two results: rank correlation, overlap of the best and worst rows, scatter plot."""
    check_files(read={"the first values": one, "the second values": two}, written={"--picture": picture})
    first, second = _by_contents(one, two) or (_read_values(one), _read_values(two))
    both = _joined(first, second)
    if len(both) < 2:
        raise LocalShapleyError(
            f"{one} and {two} have {len(both)} rows in common; their first columns must name the same rows."
        )
    alone = {"only_in_one": len(first) - len(both), "only_in_two": len(second) - len(both)}
    document = {"rows": len(both), **alone, **_agreement(both, min(top, len(both)))}
    unmatched = ""
    if any(alone.values()):
        unmatched = f" ({alone['only_in_one']} only in {one.name}, {alone['only_in_two']} only in {two.name})"
    text = [f"{len(both):,} rows in both{unmatched}", *_lines(document)]
    writing = Writing()
    if picture is not None:
        with writing.to(picture):
            _scatter(both, one.name, two.name, picture)
            text.append(f"Wrote {picture}")
    output.answer(document, "\n".join(text))
    writing.end()


def _joined(first: pd.Series, second: pd.Series) -> pd.DataFrame:
    """Values of the rows that are in both, by their names."""
    import pandas as pd

    from localshapley.data.indexes import places_of

    place = places_of(first.index, second.index)
    is_there = place >= 0
    return pd.DataFrame({"one": first[is_there], "two": second.to_numpy()[place[is_there]]})


def _by_contents(one: Path, two: Path) -> tuple[pd.Series, pd.Series] | None:
    """Saved values of the same rows in two orders, whose numbers do not name them: the second by those of the first."""
    from localshapley.valuation.table_matching import find

    found = [_load(path) for path in (one, two)]
    if any(v is None or v.digests is None or v.to_frame().index.name != "row" for v in found):
        return None
    first, second = (v for v in found if v is not None)
    assert first.digests is not None and second.digests is not None  # noqa: PT018 - for mypy
    place = find(second.digests.rows, first.digests.rows)
    if len(first.values) != len(second.values) or (place < 0).any():
        return None
    names = first.to_frame().index
    return first.to_frame()["value"], second.to_frame()["value"].set_axis(names[place])


def _load(path: Path) -> ls.Valuation | None:
    """A saved valuation; None for a table that something else wrote."""
    if path.suffix != ".parquet":
        return None
    try:
        return ls.load(path)
    except LocalShapleyError:
        return None


def _read_values(path: Path) -> pd.Series:
    """Values by the first column of a table that has a column `value`."""
    import pandas as pd

    saved = _load(path)
    if saved is not None:
        return saved.to_frame()["value"]
    table = read_table(path, once=("value",), ids=0)
    if "value" not in table.columns:
        raise LocalShapleyError(f"{path} has no column 'value'; give a result of localshapley value --out.")
    column = table.set_index(table.columns[0])["value"]
    column.index = column.index.map(unguard)
    if column.index.has_duplicates:
        raise LocalShapleyError(f"{path} has {column.index[column.index.duplicated()][0]!r} twice in its first column.")
    if not pd.api.types.is_numeric_dtype(column):
        raise LocalShapleyError(f"{path} has text in the column 'value'; it must hold numbers.")
    return column.astype(float)


def _agreement(both: pd.DataFrame, top: int) -> dict[str, Any]:
    import numpy as np
    from scipy.stats import kendalltau, pearsonr, spearmanr

    a, b = both["one"].to_numpy(), both["two"].to_numpy()
    return {
        "spearman": spearmanr(a, b).statistic,
        "kendall": kendalltau(a, b).statistic,
        "pearson": pearsonr(a, b).statistic,
        "top": top,
        "best_in_common": _in_common(-a, -b, top),
        "worst_in_common": _in_common(a, b, top),
        "sign_agreement": float(np.mean(np.sign(a) == np.sign(b))),
    }


def _in_common(a: Floats, b: Floats, top: int) -> int:
    best = (set(values.argsort(kind="stable")[:top].tolist()) for values in (a, b))
    return len(set.intersection(*best))


def _lines(found: dict[str, Any]) -> list[str]:
    return [
        f"  rank correlation  {found['spearman']:.3f} (Spearman), {found['kendall']:.3f} (Kendall)",
        f"  correlation       {found['pearson']:.3f} (Pearson)",
        f"  best {found['top']:<12} {found['best_in_common']} in common",
        f"  worst {found['top']:<11} {found['worst_in_common']} in common",
        f"  same sign         {100 * found['sign_agreement']:.1f} %",
    ]


def _scatter(both: pd.DataFrame, one: str, two: str, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise LocalShapleyError('--picture needs matplotlib: pip install "localshapley[plots]".') from None
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.scatter(both["one"], both["two"], s=10, alpha=0.6)
    axes.axline((0, 0), slope=1, color="0.7", linewidth=1)
    axes.set(xlabel=f"value in {one}", ylabel=f"value in {two}")
    try:
        figure.savefig(path, dpi=150)
    except ValueError as error:
        raise InvalidArgumentError(f"--picture {path}: {error}") from None
