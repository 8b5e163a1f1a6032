"""How sure values are: draws, test rows and seeds together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

from localshapley.arrays import AnyArray, Floats, Singles, relative
from localshapley.coalitions.random_groups import HARDLY, credibility, missing, squares
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.formatting import kinds
from localshapley.notes import Note
from localshapley.runtime.argument_checks import check_number, check_whole
from localshapley.sampling.ranking import ErrorModel, Ranking
from localshapley.valuation.row_names import by_value

if TYPE_CHECKING:
    from localshapley.valuation import Valuation

ERRORS = ("all", "draws")
CODES = ("tests-larger-error", "draws-larger-error", "target-missed")
"""Notes on errors, which are made anew where errors change."""
HELP = "a larger budget, or more time, helps."
MUCH, MOST_SHARE = 0.5, 10.0
"""Of the size of the values: an error that leaves little of them, and the largest that is told as a number."""


def interval(v: Valuation, level: float, errors: str) -> tuple[Floats, Floats]:
    """Lower and upper ends of confidence intervals; see `Valuation.interval`."""
    _check_level(level)
    half = _half_width(v, level, errors, is_picked=False)
    return v.values - half, v.values + half


def beyond_doubt(v: Valuation, errors: str = "all") -> tuple[AnyArray, AnyArray]:
    """Whether each value is below, and above, zero by more than its errors of 95 %.

    Rows are picked from many here, so that errors are those of `random_groups.missing`.
    """
    half = _half_width(v, 0.95, errors, is_picked=True)
    return v.values + half < 0, v.values - half > 0


def _half_width(v: Valuation, level: float, errors: str, *, is_picked: bool) -> Floats:
    """Of intervals, from variances and their degrees of freedom, put together after Welch and Satterthwaite."""
    check_errors(errors)
    parts: list[tuple[Floats | float, float]] = [(v.stderr**2, np.inf)]
    if errors == "all" and v.spread_tests is not None:
        weight, common = (1.0, missing(v.spread_tests)) if is_picked else credibility(v.spread_tests)
        parts += [(part, v.spread_tests.shape[1] - 1) for part in (weight * squares(v.spread_tests), common)]
    if errors == "all" and v.spread_seed is not None:
        parts.append((squares(v.spread_seed), v.spread_seed.shape[1] - 1))
    variance, doubt = np.zeros_like(v.values), np.zeros_like(v.values)
    for part, freedom in parts:
        variance += part
        doubt += part**2 / freedom
    joint = np.divide(variance**2, doubt, out=np.full_like(variance, np.inf), where=doubt > 0)
    freedoms, which = np.unique(joint, return_inverse=True)  # rows that no test row has met share theirs
    half: Floats = student.ppf((1 + level) / 2, freedoms)[which] * np.sqrt(variance)
    return half


def check_errors(errors: str) -> None:
    """Refuse what is neither all errors nor those of the draws."""
    if errors not in ERRORS:
        raise unknown_name("errors", errors, ERRORS)


def ranked(v: Valuation, k: int, level: float, *, best: bool) -> Ranking:
    """How sure it is which rows are the worst or the best; see `Valuation.among_worst`."""
    check_whole("k", k)
    _check_level(level)
    if k > len(v.values):
        raise InvalidArgumentError(f"k must be at most {len(v.values)}, the number of {v.unit}s; got {k}.")
    values = -v.values if best else v.values
    order = by_value(v, best_first=best)  # a shuffled table gets the same probabilities
    draws, tests, seeds = (None if c is None else c[order] for c in (v.spread, v.spread_tests, v.spread_seed))
    found = ErrorModel.of(values[order], v.stderr[order], draws=draws, tests=tests, seeds=seeds).lowest(int(k), level)
    probability = np.empty_like(found.probability)
    probability[order] = found.probability
    unknown = f"{_not_known(v)}: with others the order may differ." if _not_known(v) else ""
    return replace(found, probability=probability, order=order[found.order], unknown=unknown, unit=v.unit)


def _check_level(level: float) -> None:
    check_number("level", level, above=0, most=1)
    if level == 1:
        raise InvalidArgumentError("level must be below 1, as nothing is certain; got 1.")


def n_sure(v: Valuation) -> tuple[int, int]:
    """Rows that are below zero beyond doubt, and rows that are above."""
    below, above = beyond_doubt(v)
    return int(below.sum()), int(above.sum())


def in_words(v: Valuation) -> str:
    """How many values below zero would stay there with other test rows; empty where that is not known."""
    if v.spread_tests is None:
        return ""
    sure, sentence = counted_sure(v)
    return f"{sure:,} {sentence}"


def counted_sure(v: Valuation) -> tuple[int, str]:
    """Return how many values below zero (above, if none is below) would stay there, and the sentence about them."""
    n_below, n_above = int((v.values < 0).sum()), int((v.values > 0).sum())
    below, above = n_sure(v)
    sure, n, side = (below, n_below, "below") if n_below else (above, n_above, "above")
    sentence = f"of the {n:,} {v.unit}s {side} zero would still be {side} zero with other {kinds(v.unit)[1]} (95 %)"
    return sure, sentence


def summary(v: Valuation) -> str:
    """How sure the values are, in a few sentences; see `Valuation.summary`."""
    size = float(np.linalg.norm(v.values)) or 1.0
    stderrs = {"draws": v.stderr, f"other {kinds(v.unit)[1]}": v.stderr_tests, "other seeds": v.stderr_seed}
    parts = [
        f"{what} {100 * np.linalg.norm(e) / size:.0f} %" for what, e in stderrs.items() if e is not None and e.any()
    ]
    sentences = [in_words(v), f"Errors of all values together, relative to their size: {', '.join(parts) or 'none'}"]
    sentences.append(_not_known(v))
    sentences += [note for note in v.notes if note.code == "locality-gap"]
    sentences += larger_error(v.values, v.stderr, v.spread_tests)
    return "\n".join(f"{s[0].upper()}{s[1:]}".removesuffix(".") + "." for s in sentences if s)


def _not_known(v: Valuation) -> str:
    which = kinds(v.unit)[1]
    return "" if v.spread_tests is not None else f"How much values depend on which {which} were there is not known"


def larger_error(values: Floats, stderr: Floats, spread_tests: Singles | None) -> list[Note]:
    """A note where values are sampled, and either test rows or draws are so much of the error that one should know."""
    size, by_draws = float(np.linalg.norm(values)), float(np.linalg.norm(stderr))
    if not by_draws:
        return []
    size = size or 1e-100
    by_tests = 0.0 if spread_tests is None else float(np.sqrt(squares(spread_tests).sum()))
    if by_draws <= HARDLY * by_tests:
        text = (
            f"the choice of test rows is the larger error ({100 * by_tests / size:.0f} % of the size of the values; "
            f"the draws: {100 * by_draws / size:.0f} %): more draws would not help; more test rows would."
        )
        return [Note("tests-larger-error", text, by_tests=by_tests / size, by_draws=by_draws / size)]
    if by_draws > max(by_tests, MUCH * size):
        text = f"the draws are off by {_share(by_draws / size)} the size of the values: {HELP}"
        return [Note("draws-larger-error", text, by_tests=by_tests / size, by_draws=by_draws / size)]
    return []


def _share(error: float) -> str:
    """An error in words; that of values which are zero up to rounding is no number."""
    return f"{100 * error:.0f} % of" if error < MOST_SHARE else "many times"


def errors_against(aim: float | None, values: Floats, stderr: Floats, spread_tests: Singles | None) -> list[Note]:
    """Return notes on the larger error, and on draws that are off by more than `aim`, where that was the target."""
    notes, found = larger_error(values, stderr, spread_tests), relative(stderr, values)
    if aim is None or found <= aim:
        return notes
    missed = f"the draws are off by {_share(found)} the size of the values, not by {100 * aim:.3g} %"
    by_tests = [note for note in notes if note.code == "tests-larger-error"]
    text = f"the run ended before its target: {missed}{'.' if by_tests else f': {HELP}'}"
    return [Note("target-missed", text, error=found, tol=aim), *by_tests]
