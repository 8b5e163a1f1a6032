"""Pictures of a valuation: for each, one function makes its data, and one draws it with matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.formatting import kinds, shortened, with_row
from localshapley.models.skill import INTERVAL
from localshapley.runtime.argument_checks import check_whole
from localshapley.runtime.progress import in_notebook
from localshapley.valuation.matching import in_order
from localshapley.valuation.row_names import by_value, column, ids_of, influences

if TYPE_CHECKING:
    from localshapley.selection.learning_curves import Curves
    from localshapley.valuation import Valuation

# Colours that colour-blind readers can distinguish (Okabe and Ito).
HELPS, HURTS, NEUTRAL = "#0072B2", "#D55E00", "#767676"
SERIES = (HELPS, HURTS, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", NEUTRAL)
FILES_ONLY = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")
"""Backends of matplotlib that show nothing."""
MAX_BINS = 60
MAX_NODES = 40
"""Number of training rows that the picture of a support shows."""
MAX_NAME = 30
"""Characters of a name in a picture; longer ones would leave no room for it."""


@dataclass(frozen=True)
class Plots:
    """Pictures of a valuation, as `v.plot.ranking()` and so on.

    Each draws on `ax` and returns it: `v.plot.ranking().figure.savefig("ranking.png")`. Without `ax` it takes the
    current axes of pyplot if nothing is drawn there yet, else a new figure, which notebooks and windows of pyplot show.
    The numbers behind a picture come from the function of the same name with `_data`, such as `plots.ranking_data`.
    """

    valuation: Valuation

    def ranking(self, n: int = 20, *, ax: Any = None) -> Any:
        """The `n` rows at both ends of the ranking, half of them the best and half the worst, with 95 % intervals."""
        data = ranking_data(self.valuation, n)
        ax = _axes(ax, height=1 + 0.22 * len(data))
        left_out = np.diff(data["rank"], prepend=0) > 1
        place = np.arange(len(data)) + np.cumsum(left_out)  # with a gap between the best and the worst
        ax.barh(place, data["value"], color=_sign_colours(data["value"]), height=0.7)
        ax.errorbar(data["value"], place, xerr=INTERVAL * data["stderr"], fmt="none", ecolor="black", elinewidth=1)
        ax.set_yticks(place, _names(self.valuation, data.index))
        ax.invert_yaxis()
        _finish(ax, _unit(self.valuation), self.valuation.unit, f"Best and worst {self.valuation.unit}s")
        return ax

    def distribution(self, *, ax: Any = None) -> Any:
        """How many rows have which value; those below zero in another colour."""
        data = distribution_data(self.valuation)
        ax = _axes(ax)
        width, colours = data["right"] - data["left"], _sign_colours(data["left"] + data["right"])
        ax.bar(data["left"], data["count"], width=width, align="edge", color=colours, edgecolor="white")
        title = f"{int((self.valuation.values < 0).sum())} of {len(self.valuation.values)} below zero"
        _finish(ax, _unit(self.valuation), f"number of {self.valuation.unit}s", title)
        return ax

    def by_class(self, y: Any, *, ax: Any = None) -> Any:
        """Values of the rows of each class: quartiles as a box, and every row as a dot."""
        data = by_class_data(self.valuation, y)
        groups = [(label, rows["value"].to_numpy()) for label, rows in data.groupby("label")]
        ax = _axes(ax, height=1.5 + 0.8 * len(groups))
        rng = np.random.default_rng(0)
        for place, (_, values) in enumerate(groups):
            jitter = place + rng.uniform(-0.3, 0.3, len(values))
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
            ax.scatter(values, jitter, s=9, alpha=0.5, linewidths=0, color=_sign_colours(values))
            ax.barh(place, high - low, left=low, height=0.7, fill=False)
            ax.plot([median, median], [place - 0.35, place + 0.35], color="black", linewidth=2)
        ax.set_yticks(
            np.arange(len(groups)), [f"{shortened(f'{label}', MAX_NAME)} ({len(values)})" for label, values in groups]
        )
        ax.invert_yaxis()
        _finish(ax, _unit(self.valuation), "class (rows)", "Values by class")
        return ax

    def convergence(self, rows: Sequence[Any] | None = None, *, ax: Any = None) -> Any:
        """Estimates and their 95 % intervals against the trainings so far; by default the 3 best and 3 worst rows."""
        data = convergence_data(self.valuation, rows)
        ax = _axes(ax)
        by_row = data.groupby("row", sort=False)
        names = _names(self.valuation, pd.Index(data["row"].unique()))
        for i, (name, (_, line)) in enumerate(zip(names, by_row, strict=True)):
            colour, doubt = SERIES[i % len(SERIES)], INTERVAL * line["stderr"]
            ax.plot(line["trainings"], line["value"], color=colour, marker="o", markersize=3, label=name)
            ax.fill_between(line["trainings"], line["value"] - doubt, line["value"] + doubt, color=colour, alpha=0.15)
        ax.legend(title=self.valuation.unit, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        _finish(ax, "trainings", "estimate (band: 95 %)", "Estimates as the run went on", zero="y")
        return ax

    def support(self, test_row: int, *, ax: Any = None) -> Any:
        """The training rows around one test row: nearer to the middle and larger where they matter more."""
        data = support_data(self.valuation, test_row)
        ax = _axes(ax, width=5, height=5)
        colours = _sign_colours(data["value"])
        for x, y, colour in zip(data["x"], data["y"], colours, strict=True):
            ax.plot([0, x], [0, y], color=colour, linewidth=1, alpha=0.5, zorder=1)
        size = 60 + 540 * data["weight"]
        ax.scatter(data["x"], data["y"], s=size, color=colours, edgecolor="white", zorder=2)
        outwards = data[["x", "y"]].div(np.hypot(data["x"], data["y"]), axis=0).mul(np.sqrt(size) / 2 + 9, axis=0)
        names = _names(self.valuation, data.index)
        for name, place, offset in zip(names, data[["x", "y"]].to_numpy(), outwards.to_numpy(), strict=True):
            ax.annotate(name, place, offset, textcoords="offset points", ha="center", va="center", fontsize=7)
        ax.scatter([0], [0], s=320, color="black", marker="s", zorder=3)
        ax.annotate(f"{test_row}", (0, 0), color="white", ha="center", va="center", fontsize=8, zorder=4)
        n_rows = int(self.valuation.support_sizes[test_row])
        shown = f"{len(data)} of {n_rows}" if len(data) < n_rows else f"{n_rows}"
        test = kinds(self.valuation.unit)[1][:-1].capitalize()
        title = f"{test} {test_row}: its {shown} {self.valuation.unit}s, sum {data.attrs['sum']:.3g}"
        ax.set_title(title, loc="left", fontsize=10)
        for label, colour in (("helped", HELPS), ("hurt", HURTS)):
            ax.scatter([], [], color=colour, label=label)
        ax.legend(frameon=False, loc="lower right")
        ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal")
        ax.axis("off")
        return ax

    def against(self, other: Valuation, *, ax: Any = None) -> Any:
        """The values of another valuation of the same rows against those of this one, with 95 % intervals."""
        data = against_data(self.valuation, other)
        ax = _axes(ax, width=5, height=5)
        ax.errorbar(
            data["value"], data["other"], xerr=INTERVAL * data["stderr"], yerr=INTERVAL * data["other_stderr"],
            fmt="none", ecolor=NEUTRAL, elinewidth=0.5, alpha=0.5, zorder=1,
        )  # fmt: skip
        ax.scatter(data["value"], data["other"], s=12, color=HELPS, linewidths=0, alpha=0.7, zorder=2)
        title = f"Rank correlation {data['value'].corr(data['other'], method='spearman'):.3f}"
        _finish(ax, _model_and_unit(self.valuation), _model_and_unit(other), title, zero="xy")
        return ax

    def curves(self, curves: Curves, *, ax: Any = None) -> Any:
        """The curves of `tasks.curves`."""
        return draw_curves(curves, ax)


def ranking_data(valuation: Valuation, n: int = 20) -> pd.DataFrame:
    """The `n` rows with the highest and lowest values, half of each, best first: value, stderr, rank (from 1)."""
    check_whole("n", n)
    n_rows = len(valuation.values)
    order = by_value(valuation, best_first=True)
    places = np.arange(n_rows)
    shown = places if n >= n_rows else np.concatenate([places[: n - n // 2], places[n_rows - n // 2 :]])
    data: pd.DataFrame = valuation.to_frame()[["value", "stderr"]].iloc[order[shown]]
    return data.assign(rank=shown + 1)


def distribution_data(valuation: Valuation) -> pd.DataFrame:
    """A histogram of the values in which zero is an edge: left, right, count."""
    values = valuation.values
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    width = (high - low) / MAX_BINS
    if width == 0:
        n_below = int((values < 0).sum())
        return pd.DataFrame({"left": [-0.5, 0.0], "right": [0.0, 0.5], "count": [n_below, len(values) - n_below]})
    if np.ptp(values) > width:  # no bins fit between values that are equal up to rounding
        width = max(np.diff(np.histogram_bin_edges(values, "auto"))[0], width)
    first = np.floor(low / width)
    edges = width * np.arange(first, np.floor(high / width) + 2)
    count = np.bincount((np.floor(values / width) - first).astype(int), minlength=len(edges) - 1)
    return pd.DataFrame({"left": edges[:-1], "right": edges[1:], "count": count})


def by_class_data(valuation: Valuation, y: Any) -> pd.DataFrame:
    """The value and the label of every row."""
    return valuation.to_frame()[["value"]].assign(label=in_order(valuation, y=column("y", y, valuation))[1])


def convergence_data(valuation: Valuation, rows: Sequence[Any] | None = None) -> pd.DataFrame:
    """Estimates of some rows by round: row, trainings, value, stderr; the first row of `rows` comes first."""
    history = valuation.history
    if history is None:
        raise InvalidArgumentError(
            "valuation has no history, as it was not sampled in rounds; exact values have no convergence to show. "
            'Use value(..., method="sample").'
        )
    index = valuation.to_frame().index
    if rows is None:
        order = by_value(valuation, best_first=True)
        chosen = order if len(order) <= 6 else np.concatenate([order[:3], order[-3:]])
    else:
        chosen = index.get_indexer_for(pd.Index(rows))
        if len(chosen) == 0 or (chosen < 0).any():
            raise InvalidArgumentError(
                f"rows must be names of rows of the valuation, such as {index[0]!r}; got {rows!r}."
            )
    n_rounds = len(history.trainings)
    return pd.DataFrame(
        {
            "row": index[np.repeat(chosen, n_rounds)],
            "trainings": np.tile(history.trainings, len(chosen)),
            "value": history.values[:, chosen].T.ravel(),
            "stderr": history.stderr[:, chosen].T.ravel(),
        }
    )


def support_data(valuation: Valuation, test_row: int) -> pd.DataFrame:
    """The most influential rows of a support and where to draw them: value, weight (0 to 1), x, y.

    The `sum` of all values of the support is in `attrs`.
    """
    rows, values = influences(valuation, test_row)
    shown = pd.DataFrame({"value": values[:MAX_NODES]}, index=ids_of(valuation)[rows[:MAX_NODES]])
    largest = shown["value"].abs().max()
    shown["weight"] = shown["value"].abs() / largest if largest > 0 else 0.0
    angle = 2 * np.pi * np.arange(len(shown)) / max(len(shown), 1)
    radius = 1 - 0.6 * shown["weight"]
    shown["x"], shown["y"] = radius * np.sin(angle), radius * np.cos(angle)
    shown.attrs["sum"] = float(values.sum())
    return shown


def against_data(valuation: Valuation, other: Valuation) -> pd.DataFrame:
    """Two valuations side by side: value, stderr, other, other_stderr; matched by name where both have unique names."""
    here = valuation.to_frame()[["value", "stderr"]]
    there = other.to_frame()[["value", "stderr"]].set_axis(["other", "other_stderr"], axis=1)
    if len(here) != len(there):
        raise InvalidArgumentError(
            f"other values {len(there)} rows, this valuation {len(here)}; they must be the same."
        )
    if here.index.is_unique and there.index.is_unique and there.index.isin(here.index).all():
        return here.join(there)
    return pd.concat([here, there.set_axis(here.index)], axis=1)


def curves_data(curves: Curves) -> pd.DataFrame:
    """The curves against the share of rows in use: curve, used, mean, low, high.

    Removing the worst first is adding the best first, seen from the other end, so these two are one line.
    """
    table = curves.table.assign(used=curves.table["n_rows"] / curves.n_rows)
    names = {
        "best first": "best kept",
        "worst removed first": "best kept",
        "random": "random",
        "best removed first": "worst kept",
    }
    table["curve"] = table["curve"].map(names)
    columns = ["curve", "used", "mean", "low", "high"]
    return table[columns].drop_duplicates(["curve", "used"]).sort_values(["curve", "used"], ignore_index=True)


def draw_curves(curves: Curves, ax: Any = None) -> Any:
    """Draw the curves of `tasks.curves`; returns the axes."""
    data = curves_data(curves)
    ax = _axes(ax)
    for (name, line), colour in zip(data.groupby("curve"), (HELPS, NEUTRAL, HURTS), strict=True):
        style = "--" if name == "random" else "-"
        ax.plot(100 * line["used"], line["mean"], color=colour, linestyle=style, label=name)
        ax.fill_between(100 * line["used"], line["low"], line["high"], color=colour, alpha=0.15, linewidth=0)
    ax.legend(frameon=False)
    _finish(ax, "rows in use (%)", f"{curves.score} on the test rows", "Score with part of the rows", zero="")
    return ax


def _axes(ax: Any, *, width: float = 6.4, height: float = 4) -> Any:
    """The user's axes, those of pyplot that are still empty, or new ones on a figure of their own."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise LocalShapleyError('plots need matplotlib: pip install "localshapley[plots]".') from None
    # Scripts may not want pyplot, which looks for a screen; notebooks show its figures.
    pyplot = import_module("matplotlib.pyplot") if in_notebook() else sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and pyplot.get_fignums() and not (pyplot.gcf().axes and pyplot.gca().has_data()):
        return pyplot.gca()
    made: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    if pyplot is not None and _is_shown():
        return pyplot.subplots(**made)[1]
    return Figure(**made).subplots()  # of pyplot it would stay open, and nobody would see it


def _is_shown() -> bool:
    """Whether pyplot shows its figures: in windows or in a notebook."""
    import matplotlib as mpl

    return str(mpl.get_backend()).lower() not in FILES_ONLY


def _finish(ax: Any, xlabel: str, ylabel: str, title: str, zero: str = "x") -> None:
    """Name the axes, and draw a line at zero across those that `zero` names."""
    if "x" in zero:
        ax.axvline(0, color="black", linewidth=0.8, zorder=0)
    if "y" in zero:
        ax.axhline(0, color="black", linewidth=0.8, zorder=0)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_title(title, loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)


def _names(valuation: Valuation, names: pd.Index) -> list[str]:
    """Names of rows; those that are cut have the number of their row, where it is known."""
    ids = ids_of(valuation)
    if valuation.unit != "row" or not ids.is_unique:
        return [shortened(f"{name}", MAX_NAME) for name in names]
    return [
        with_row(f"{name}", MAX_NAME, row) for name, row in zip(names, ids.get_indexer(names).tolist(), strict=True)
    ]


def _sign_colours(values: Any) -> list[str]:
    return [HELPS if value >= 0 else HURTS for value in values]


def _unit(valuation: Valuation) -> str:
    return f"value ({valuation.score}, summed over the {kinds(valuation.unit)[1]})"


def _model_and_unit(valuation: Valuation) -> str:
    return f"value ({valuation.model.split('(')[0]}, {valuation.score})"
