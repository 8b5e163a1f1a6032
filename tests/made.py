"""Valuations made by hand, and others with something changed, by the names under which people ask for it."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from localshapley.valuation import Cost, Facts, FinalEstimate, GameCounts, Players, Valuation

PARTS = {"estimate": FinalEstimate, "players": Players, "counts": GameCounts, "facts": Facts}


def made(values, stderr=None, **changes):
    """A valuation of given values; everything else is made up, unless it is given."""
    values = np.asarray(values, dtype=np.float64)
    n = len(values)
    plain = Valuation(
        estimate=FinalEstimate(values, np.zeros(n) if stderr is None else np.asarray(stderr, dtype=np.float64)),
        players=Players(),
        counts=GameCounts(np.ones(2, dtype=np.int64), np.ones(n, dtype=np.int64)),
        facts=Facts("a model", "accuracy", "given", "exact"),
        cost=Cost("none", 0, 0, 0, 0, 0, 0.0),
        stopped="at the end",
    )
    return changed(plain, **changes)


def changed(v, **changes):
    """The same valuation with other values, names, texts, ..."""
    for part, kind in PARTS.items():
        own = {f.name: changes.pop(f.name) for f in fields(kind) if f.name in changes}
        if own:
            changes[part] = replace(getattr(v, part), **own)
    return replace(v, **changes)
