"""The commands about results and data sets: compare, report, datasets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from localshapley import datasets as data_sets
from localshapley import tasks
from localshapley.cli.data import find_shape, named_rows
from localshapley.cli.options import Output
from localshapley.cli.output import Speaker
from localshapley.errors import InvalidArgumentError, LocalShapleyError, unknown_name
from localshapley.inputs.preparing import labels_of, prepare
from localshapley.inputs.tables import read_table, write_table
from localshapley.valuation import Valuation, load

BUNDLED = {
    "breast_cancer": "569 tumours, 30 measurements, benign or malignant",
    "diabetes": "442 patients, 10 measurements, progression (regression)",
    "digits": "1,797 images of 8 × 8 pixels, digits 0 to 9",
    "iris": "150 flowers, 4 measurements, 3 species",
    "wine": "178 wines, 13 measurements, 3 cultivars",
}
FROM_FILES = {
    "mnist": "70,000 images of 28 × 28 pixels, digits 0 to 9 (from files)",
    "adult": "48,842 people, 14 columns, income over 50K or not (from files)",
    "bank": "4,521 calls of a bank, 15 columns, offer taken or not (from files)",
    "cora": "2,708 papers that cite each other, 7 subjects (from files)",
    "citeseer": "3,327 papers that cite each other, 6 subjects (from files)",
    "pubmed": "19,717 papers that cite each other, 3 subjects (from files)",
}


def compare(output: Output, one: Path, two: Path, top: int, picture: Path | None) -> None:
    """Compare the values of rows that two results share."""
    from scipy.stats import kendalltau, pearsonr, spearmanr

    say = Speaker(output)
    first, second = _read_values(one), _read_values(two)
    both = pd.concat([first, second], axis=1, join="inner", keys=["one", "two"])
    if len(both) < 2:
        raise LocalShapleyError(f"{one} and {two} share {len(both)} rows; their first columns must name the same rows.")
    top = min(top, len(both))
    a, b = both["one"].to_numpy(), both["two"].to_numpy()
    document = {
        "rows": len(both),
        "only_in_one": len(first) - len(both),
        "only_in_two": len(second) - len(both),
        "spearman": spearmanr(a, b).statistic,
        "kendall": kendalltau(a, b).statistic,
        "pearson": pearsonr(a, b).statistic,
        "top": top,
        "best_in_common": _in_common(-a, -b, top),
        "worst_in_common": _in_common(a, b, top),
        "sign_agreement": float(np.mean(np.sign(a) == np.sign(b))),
    }
    unmatched = ""
    if len(both) < max(len(first), len(second)):
        unmatched = f" ({len(first) - len(both)} only in {one.name}, {len(second) - len(both)} only in {two.name})"
    text = [
        f"{len(both):,} rows in both{unmatched}",
        f"  rank correlation  {document['spearman']:.3f} (Spearman), {document['kendall']:.3f} (Kendall)",
        f"  correlation       {document['pearson']:.3f} (Pearson)",
        f"  best {top:<12} {document['best_in_common']} in common",
        f"  worst {top:<11} {document['worst_in_common']} in common",
        f"  same sign         {100 * document['sign_agreement']:.1f} %",
    ]
    if picture is not None:
        _scatter(both, one.name, two.name, picture)
        text.append(f"Wrote {picture}")
    say.answer(document, "\n".join(text))


def _read_values(path: Path) -> pd.Series:
    """Values by the first column of a table that has a column `value`."""
    if path.suffix == ".parquet":
        try:
            return load(path).to_frame()["value"]
        except LocalShapleyError:
            pass  # a table of another make
    table = read_table(path)
    if "value" not in table.columns:
        raise LocalShapleyError(f"{path} has no column 'value'; give a result of localshapley value --out.")
    column = table.set_index(table.columns[0])["value"]
    if column.index.has_duplicates:
        raise LocalShapleyError(f"{path} has {column.index[column.index.duplicated()][0]!r} twice in its first column.")
    if not pd.api.types.is_numeric_dtype(column):
        raise LocalShapleyError(f"{path} has text in the column 'value'.")
    return column.astype(float)


def _in_common(a: np.ndarray, b: np.ndarray, top: int) -> int:
    best = (set(np.argsort(values, kind="stable")[:top].tolist()) for values in (a, b))
    return len(set.intersection(*best))


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


def report(
    output: Output,
    values: Path,
    out: Path,
    train: Path | None,
    target: str | None,
    owner: str | None,
    title: str,
    image_shape: str | None,
    data: bool,
) -> None:
    """Write the page about a result that was kept."""
    from localshapley.report import write_report

    say = Speaker(output)
    valuation = load(values)
    rows = y = suspects = owners = None
    if train is None and (target or owner):
        raise InvalidArgumentError("--target and --owner are columns of the table that was valued; give --train TABLE.")
    if train is not None:
        table = _rows_of(valuation, train)
        for option, name in (("--target", target), ("--owner", owner)):
            if name is not None and name not in table.columns:
                raise unknown_name(option, name, table.columns)
        rows = table.drop(columns=[name for name in (target, owner) if name is not None])
        if target is not None:
            y = labels_of(table[target])[0]
            suspects = tasks.suspects(valuation, y, X=prepare(rows).X)
        if owner is not None:
            owners = tasks.owners(valuation, table[owner])
    write_report(
        out,
        valuation,
        rows,
        y=y,
        suspects=suspects,
        owners=owners,
        image_shape=find_shape(image_shape),
        title=title,
        json=data,
    )
    say.answer({"report": str(out)}, f"Wrote {out}")


def _rows_of(valuation: Valuation, path: Path) -> pd.DataFrame:
    """The rows of a table that were valued, found by their names or, if all were, by their order."""
    index = valuation.to_frame().index
    table = read_table(path)
    table = named_rows(table, path, str(index.name) if index.name in table.columns else None)
    if not index.isin(table.index).all():
        raise LocalShapleyError(f"{path} is not the table that was valued: it has no row {index[0]!r}.")
    return table.loc[index]


def datasets(output: Output, name: str | None, out: Path | None) -> None:
    """List data sets, or write one as a table."""
    say = Speaker(output)
    if name is None:
        text = [f"{key:<14} {about}" for key, about in {**BUNDLED, **FROM_FILES}.items()]
        text += ["", "localshapley datasets iris writes iris.csv; in Python: ls.datasets.load('iris')."]
        text += ["Data sets from files are looked for in LOCALSHAPLEY_DATA."]
        say.answer({"bundled": BUNDLED, "from_files": FROM_FILES}, "\n".join(text))
        return
    if name not in BUNDLED:
        raise unknown_name("NAME", name, BUNDLED)
    data = data_sets.load(name)
    table = pd.DataFrame(np.vstack([data.X, data.X_test]), columns=data.feature_names).round(6)
    table["target"] = np.concatenate([data.y, data.y_test])
    path = out or Path(f"{name}.csv")
    write_table(table.rename_axis("id"), path)
    say.answer({"table": str(path), "rows": len(table)}, f"Wrote {path}: {len(table):,} rows; --target target --id id")
