"""The mean of valuations with different seeds, and what they differ in."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats, Singles, singles
from localshapley.engine.executor import Cost
from localshapley.engine.run_result import FinalEstimate
from localshapley.notes import Note
from localshapley.valuation.intervals import CODES, errors_against

if TYPE_CHECKING:
    from localshapley.valuation import Valuation


def mean_over_seeds(runs: list[Valuation], aim: float | None = None) -> Valuation:
    """One valuation of several, which differ in nothing but the seeds of the model and of the draws.

    `aim` is the relative error that each of them was to reach, if there is one.
    """
    first, n = runs[0], len(runs)
    values = np.mean([run.values for run in runs], axis=0)
    variance = np.mean([run.stderr**2 for run in runs], axis=0)
    stderr, spread_tests = np.sqrt(variance / n), _of_tests(runs)
    notes = [note for note in first.notes if note.code not in CODES]
    notes += errors_against(aim, values, stderr, spread_tests)
    notes.append(Note("means-over-seeds", f"values are means over {n} seeds of the model.", n_seeds=n))
    ended = first.stopped
    return replace(
        first,
        estimate=FinalEstimate(
            values,
            stderr,
            per_test=_mean_matrix(runs),
            spread=_of_draws(runs),
            spread_tests=spread_tests,
            spread_seed=_of_seeds(np.array([run.values for run in runs]) - values, variance),
        ),
        players=replace(first.players, oob_scores=_mean([run.oob_scores for run in runs])),
        cost=_total([run.cost for run in runs]),
        stopped=Note(ended.code, f"{ended}, for each of {n} seeds", **{**ended.data, "n_seeds": n}) if ended else ended,
        notes=notes,
        origin=None,
        history=None,
    )


def _mean(numbers: list[Floats | None]) -> Floats | None:
    known = [part for part in numbers if part is not None]
    return np.mean(known, axis=0) if known else None


def _of_seeds(apart: Floats, by_draws: Floats) -> Singles:
    """A column for each seed; the part of the differences that is due to the draws is taken out."""
    n = len(apart)
    seen = (apart**2).sum(axis=0) / (n - 1)
    share = np.divide(np.maximum(seen - by_draws, 0.0), seen, out=np.zeros_like(seen), where=seen > 0)
    return singles((apart * np.sqrt(share / (n * (n - 1)))).T, order="C")


def _of_tests(runs: list[Valuation]) -> Singles | None:
    """The mean of the columns: all runs have the same test rows in the same bundles."""
    known = [run.spread_tests for run in runs if run.spread_tests is not None]
    if len(known) < len(runs) or len({len(run.support_sizes) for run in runs}) > 1:
        return None
    found: Singles = np.mean(known, axis=0)
    return found


def _of_draws(runs: list[Valuation]) -> Singles | None:
    """Columns of independent draws, under random signs, so that their products add up."""
    known = [run.spread for run in runs if run.spread is not None]
    if not known or len(known) < sum(bool(run.stderr.any()) for run in runs):
        return None
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(known), known[0].shape[1]))
    found = sum(columns * sign for columns, sign in zip(known, signs, strict=True)) / len(runs)
    norm = np.linalg.norm(found, axis=1)
    wanted = np.sqrt(sum(run.stderr**2 for run in runs)) / len(runs)
    return singles((found.T * np.divide(wanted, norm, out=np.zeros_like(norm), where=norm > 0)).T)


def _mean_matrix(runs: list[Valuation]) -> sparse.csr_array | None:
    known = [run.per_test for run in runs if run.per_test is not None]
    if len(known) < len(runs) or len({matrix.shape for matrix in known}) > 1:
        return None
    return sparse.csr_array(sum(known[1:], known[0]) / len(known))


def _total(costs: list[Cost]) -> Cost:
    numbers = {f.name: sum(getattr(cost, f.name) for cost in costs) for f in fields(Cost) if f.name != "trainer"}
    return Cost(trainer=costs[0].trainer, **numbers)
