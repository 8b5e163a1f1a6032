"""Charts as SVG. Widths are in per cent and heights in pixels, so that a chart fits any screen."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

import numpy as np
from markupsafe import Markup, escape

HEIGHT = 240
BOTTOM = 24  # pixels for the names of the ticks
LINE = 22  # pixels of a line in a chart of lines


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element; children and attributes are escaped, `stroke_width` becomes `stroke-width`."""
    words = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), words, Markup("").join(map(escape, children)))


def histogram(
    counts: Sequence[int], edges: Sequence[float], label: str, across: str, up: str, *, whole: bool = False
) -> Markup:
    """Bars between the edges, or around them for `whole` numbers; those below zero have a colour of their own."""
    if whole:
        edges = [edge - 0.5 for edge in edges]
    x, y = _Scale(edges[0], edges[-1], 0, 100), _Scale(0, 1.08 * max(*counts, 1), HEIGHT - BOTTOM, 0)
    bars = [
        tag(
            "rect",
            tag("title", f"{_from_to(low, high, whole)}: {count:,} {up}"),
            class_="below" if high <= 0 else "bar",
            x=_percent(x(low) + 0.08),
            y=_pixels(y(count)),
            width=_percent(max(x(high) - x(low) - 0.16, 0.2)),
            height=_pixels(y(0) - y(count)),
        )
        for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True)
        if count
    ]
    zero = [] if not edges[0] < 0 < edges[-1] or whole else [_upright(x(0), "zero")]
    shapes = [*_grid(y, 0, max(counts), whole=True), *bars, *zero, *_ticks(x, edges[0], edges[-1], whole=whole)]
    return _plot(label, shapes, across, up)


def _from_to(low: float, high: float, whole: bool) -> str:
    if not whole:
        return f"{low:.4g} to {high:.4g}"
    first, last = round(low + 0.5), round(high - 0.5)
    return f"{first}" if first == last else f"{first} to {last}"


def bars(lines: Sequence[tuple[str, str, float]], label: str, *, alike: bool = False) -> Markup:
    """A bar for each line: its name, its number in words, its length; the last stands out, unless all are `alike`."""
    longest = max((length for *_, length in lines), default=0) or 1
    drawn = []
    for name, words, length in lines:
        kind = "bar" if alike or name == lines[-1][0] else "rest"
        width = _percent(max(100 * length / longest, 0.5) if length else 0)
        drawn.append((name, words, [tag("rect", class_=kind, y=4, height=LINE - 8, rx=2, width=width)]))
    return _lines(label, drawn)


def intervals(lines: Sequence[tuple[str, str, float, float, float]], label: str) -> Markup:
    """A dot with a whisker for each line: its name, its number in words, low, middle and high."""
    ends = [0.0, *(x for *_, low, _, high in lines for x in (low, high))]
    x = _Scale(min(ends), max(ends), 2, 98)
    drawn = []
    for name, words, low, middle, high in lines:
        side = "below" if middle < 0 else "bar"
        half = LINE / 2
        marks = [_upright(x(0), "zero", LINE)]
        if high > low:
            marks.append(tag("line", class_=side, x1=_percent(x(low)), x2=_percent(x(high)), y1=half, y2=half))
        marks.append(tag("circle", class_=side, cx=_percent(x(middle)), cy=half, r=4))
        drawn.append((name, words, marks))
    return _lines(label, drawn)


def curves(curves: list[dict[str, Any]], label: str, across: str, up: str) -> Markup:
    """A line with its band for each curve: name, x, mean, low, high."""
    every = np.concatenate([[*c["low"], *c["high"], *c["mean"]] for c in curves])
    low, high = float(every.min()), float(every.max())
    room = 0.05 * (high - low or abs(high) or 1.0)
    places = np.concatenate([c["x"] for c in curves])
    x = _Scale(float(places.min()), float(places.max()), 0, 100)
    y = _Scale(low - room, high + room, HEIGHT - BOTTOM, 0)
    shapes = []
    for i, c in enumerate(curves):
        there = [(x(a), y(b)) for a, b in zip(c["x"], c["high"], strict=True)]
        back = [(x(a), y(b)) for a, b in zip(c["x"], c["low"], strict=True)]
        middle = [(x(a), y(b)) for a, b in zip(c["x"], c["mean"], strict=True)]
        shapes.append(tag("polygon", class_=f"band c{i % 5}", points=_points(there + back[::-1])))
        shapes.append(tag("polyline", tag("title", c["name"]), class_=f"curve c{i % 5}", points=_points(middle)))
    inner = tag(
        "svg",
        *shapes,
        viewBox=f"0 0 100 {HEIGHT - BOTTOM}",
        preserveAspectRatio="none",
        width="100%",
        height=HEIGHT - BOTTOM,
    )
    keys = [
        tag(
            "span",
            tag("svg", tag("line", class_=f"curve c{i % 5}", x1=0, x2=28, y1=6, y2=6), width=28, height=12),
            " ",
            c["name"],
        )
        for i, c in enumerate(curves)
    ]
    plot = _plot(label, [*_grid(y, low, high), inner, *_ticks(x, x.low, x.high, " %")], across, up)
    return tag("div", *keys, class_="keys") + plot


def scatter(a: Sequence[float], b: Sequence[float], names: Sequence[str], label: str, across: str, up: str) -> Markup:
    """A dot for each pair, with the line on which the two are equal."""
    low, high = float(min(*a, *b, 0)), float(max(*a, *b, 0))
    x, y = _Scale(low, high, 2, 98), _Scale(low, high, HEIGHT - BOTTOM - 6, 6)
    equal = tag(
        "line", class_="zero", x1=_percent(x(low)), x2=_percent(x(high)), y1=_pixels(y(low)), y2=_pixels(y(high))
    )
    dots = [
        tag("circle", tag("title", name), class_="dot", cx=_percent(x(p)), cy=_pixels(y(q)), r=3.5)
        for p, q, name in zip(a, b, names, strict=True)
    ]
    return _plot(label, [*_grid(y, low, high), equal, *dots, *_ticks(x, low, high)], across, up)


def round_step(span: float, n: int) -> float:
    """The round number (1, 2 or 5 times a power of ten) that divides a span into at most about `n` parts."""
    rough = max(span, 1e-300) / n
    power = 10.0 ** floor(log10(rough))
    return float(next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999))


class _Scale:
    """Maps numbers from `low` to `high` to positions from `start` to `end`."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self._start, self._end = low, high, start, end

    def __call__(self, x: float) -> float:
        share = (x - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self._start + share * (self._end - self._start)


def _round_numbers(low: float, high: float, n: int, *, whole: bool = False) -> list[float]:
    """Round numbers from `low` to `high`."""
    step = max(round_step(high - low, n), 1.0 if whole else 0.0)
    return [i * step for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _grid(y: _Scale, low: float, high: float, *, whole: bool = False) -> list[Markup]:
    """Horizontal lines with their numbers, left of the chart."""
    lines = []
    for mark in _round_numbers(low, high, 5, whole=whole):
        place = y(mark)
        lines.append(tag("line", class_="grid", x1="0%", x2="100%", y1=_pixels(place), y2=_pixels(place)))
        lines.append(tag("text", f"{mark:,.6g}", class_="tick", x=-8, y=_pixels(place + 4), text_anchor="end"))
    return lines


def _ticks(x: _Scale, low: float, high: float, suffix: str = "", *, whole: bool = False) -> list[Markup]:
    """Numbers below the chart."""
    marks = []
    for mark in _round_numbers(low, high, 6, whole=whole):
        place = x(mark)
        anchor = "end" if place > 98 else "middle"
        words = f"{mark:.6g}{suffix}"
        marks.append(tag("text", words, class_="tick", x=_percent(place), y=HEIGHT - 6, text_anchor=anchor))
    return marks


def _upright(place: float, kind: str, height: float = HEIGHT - BOTTOM) -> Markup:
    return tag("line", class_=kind, x1=_percent(place), x2=_percent(place), y1=0, y2=_pixels(height))


def _plot(label: str, shapes: Sequence[Markup], across: str, up: str) -> Markup:
    """A chart with the names of its axes, above and below it."""
    drawn = tag("svg", tag("title", label), *shapes, class_="plot", role="img", height=HEIGHT)
    return tag("p", up, class_="up") + drawn + tag("p", across, class_="across")


def _lines(label: str, lines: Sequence[tuple[str, str, list[Markup]]]) -> Markup:
    """Lines of a name, a drawing and a number in words."""
    parts = []
    for name, words, marks in lines:
        parts.append(tag("span", name, class_="name", dir="auto", title=name))
        drawing = tag("svg", tag("title", f"{name}: {words}"), *marks, width="100%", height=LINE)
        parts += [drawing, tag("span", words, class_="words")]
    return tag("div", *parts, class_="lines", role="img", aria_label=label)


def _points(pairs: list[tuple[float, float]]) -> str:
    return " ".join(f"{a:.2f},{b:.2f}" for a, b in pairs)


def _percent(x: float) -> str:
    return f"{x:.2f}%"


def _pixels(x: float) -> str:
    return f"{x:.1f}"
