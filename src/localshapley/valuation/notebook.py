"""What a notebook shows of a valuation: facts, the best and worst rows and a histogram, as plain HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from localshapley.valuation.plots import HELPS, HURTS, distribution_data

if TYPE_CHECKING:
    from localshapley.valuation import Valuation

WIDTH, HEIGHT = 320, 110
N_SHOWN = 5


def to_html(valuation: Valuation) -> str:
    """Describe a valuation in HTML, with nothing to load and nothing to run."""
    heading, *facts = repr(valuation).split("\n")
    n_shown = min(N_SHOWN, len(valuation.values))
    parts = [
        _figure("Best", _table(valuation.top(n_shown))),
        _figure("Worst", _table(valuation.bottom(n_shown))),
        _figure("Values", _histogram(distribution_data(valuation))),
    ]
    return (
        f"<div><p><b>{escape(heading)}</b></p>"
        f'<pre style="white-space: pre-wrap">{escape(chr(10).join(facts))}</pre>'
        f'<div style="display: flex; flex-wrap: wrap; gap: 2em">{"".join(parts)}</div></div>'
    )


def _figure(title: str, content: str) -> str:
    return f"<div><b>{title}</b>{content}</div>"


def _table(rows: pd.DataFrame) -> str:
    """A table of values with three digits; the names of the rows are escaped."""
    rounded = rows.assign(**{name: rows[name].map("{:.3g}".format) for name in rows.columns if name != "n_tests"})
    return str(rounded.to_html(border=0, escape=True))


def _histogram(bins: pd.DataFrame) -> str:
    """The histogram as an SVG picture; values below zero in another colour."""
    left, right, tallest = bins["left"].min(), bins["right"].max(), max(bins["count"].max(), 1)
    scale = WIDTH / (right - left)
    bars = [
        f'<rect x="{(start - left) * scale:.1f}" y="{HEIGHT * (1 - count / tallest):.1f}" '
        f'width="{max((end - start) * scale - 1, 0.5):.1f}" height="{HEIGHT * count / tallest:.1f}" '
        f'fill="{HELPS if start >= 0 else HURTS}"/>'
        for start, end, count in bins.itertuples(index=False)
    ]
    zero = -left * scale
    ticks = [
        f'<text x="{x:.1f}" y="{HEIGHT + 14}" font-size="11" fill="currentColor" text-anchor="{anchor}">{text}</text>'
        for x, anchor, text in ((0, "start", f"{left:.3g}"), (zero, "middle", "0"), (WIDTH, "end", f"{right:.3g}"))
        if text != "0" or 30 < zero < WIDTH - 30
    ]
    return (
        f'<br/><svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT + 18}" role="img" '
        f'aria-label="histogram of the values">{"".join(bars)}'
        f'<line x1="0" x2="{WIDTH}" y1="{HEIGHT}" y2="{HEIGHT}" stroke="currentColor"/>{"".join(ticks)}</svg>'
    )
