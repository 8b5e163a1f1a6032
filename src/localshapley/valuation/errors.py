"""How sure values are: draws, test rows and seeds together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

from localshapley.arrays import Floats, Singles
from localshapley.bundles import HARDLY, squares, unmet
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.estimate.ranking import Doubt, Ranked
from localshapley.inputs.numbers import check_number, check_whole

if TYPE_CHECKING:
    from localshapley.valuation import Valuation

ERRORS = ("all", "draws")
ADVICE = "more draws would not help; more test rows would."


def interval(v: Valuation, level: float, errors: str) -> tuple[Floats, Floats]:
    """Lower and upper ends of confidence intervals; see `Valuation.interval`."""
    _check_level(level)
    check_errors(errors)
    variance = v.stderr**2
    doubt = np.zeros_like(variance)  # Σ variance² / degrees of freedom, after Welch and Satterthwaite
    for columns in (v.spread_tests, v.spread_seed) if errors == "all" else ():
        if columns is not None:
            own = squares(columns) + (unmet(columns) if columns is v.spread_tests else 0.0)
            variance = variance + own
            doubt += own**2 / (columns.shape[1] - 1)
    freedom = np.divide(variance**2, doubt, out=np.full_like(variance, np.inf), where=doubt > 0)
    half = student.ppf((1 + level) / 2, freedom) * np.sqrt(variance)
    return v.values - half, v.values + half


def check_errors(errors: str) -> None:
    """Refuse what is neither all errors nor those of the draws."""
    if errors not in ERRORS:
        raise unknown_name("errors", errors, ERRORS)


def ranked(v: Valuation, k: int, level: float, *, best: bool) -> Ranked:
    """How sure it is which rows are the worst or the best; see `Valuation.among_worst`."""
    check_whole("k", k)
    _check_level(level)
    if k > len(v.values):
        raise InvalidArgumentError(f"k must be at most {len(v.values)}, the number of {v.unit}s; got {k}.")
    values = -v.values if best else v.values
    doubt = Doubt.of(values, v.stderr, draws=v.spread, tests=v.spread_tests, seeds=v.spread_seed)
    return doubt.lowest(int(k), level)


def _check_level(level: float) -> None:
    check_number("level", level, above=0, most=1)
    if level == 1:
        raise InvalidArgumentError("level must be below 1, as nothing is certain; got 1.")


def n_sure(v: Valuation) -> tuple[int, int]:
    """Rows whose 95 % intervals are below zero, and rows whose intervals are above."""
    low, high = interval(v, 0.95, "all")
    return int((high < 0).sum()), int((low > 0).sum())


def in_words(v: Valuation) -> str:
    """How many values below zero would stay there with other test rows; empty where that is not known."""
    if v.spread_tests is None:
        return ""
    n_below, n_above = int((v.values < 0).sum()), int((v.values > 0).sum())
    below, above = n_sure(v)
    sure, n, side = (below, n_below, "below") if n_below else (above, n_above, "above")
    return f"{sure} of the {n} {v.unit}s {side} zero would still be {side} zero with other {_tests(v)} (95 %)"


def summary(v: Valuation) -> str:
    """How sure the values are, in a few sentences; see `Valuation.summary`."""
    size = float(np.linalg.norm(v.values)) or 1.0
    stderrs = {"draws": v.stderr, f"other {_tests(v)}": v.stderr_tests, "other seeds": v.stderr_seed}
    parts = [
        f"{what} {100 * np.linalg.norm(e) / size:.0f} %" for what, e in stderrs.items() if e is not None and e.any()
    ]
    sentences = [in_words(v), f"Errors of all values together, relative to their size: {', '.join(parts) or 'none'}"]
    if v.stderr_tests is None:
        sentences.append(f"How much values depend on which {_tests(v)} were there is not known")
    sentences += [note for note in v.notes if note.startswith("locality gap")]
    sentences += larger_error(v.values, v.stderr, v.spread_tests)
    return "\n".join(f"{s[0].upper()}{s[1:]}".removesuffix(".") + "." for s in sentences if s)


def _tests(v: Valuation) -> str:
    return "test nodes" if v.unit == "node" else "test rows"


def larger_error(values: Floats, stderr: Floats, spread_tests: Singles | None) -> list[str]:
    """A note where values are sampled, and test rows are so much the larger error that the draws hardly count."""
    size, by_draws = float(np.linalg.norm(values)), float(np.linalg.norm(stderr))
    if not (size and by_draws and spread_tests is not None):
        return []
    by_tests = float(np.sqrt(squares(spread_tests).sum()))
    if not 0 < by_draws <= HARDLY * by_tests:
        return []
    return [
        f"the choice of test rows is the larger error ({100 * by_tests / size:.0f} % of the size of the values; the "
        f"draws: {100 * by_draws / size:.0f} %): {ADVICE}"
    ]
