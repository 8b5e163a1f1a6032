"""Supports that are large enough: `support="auto"` grows them until the locality gap is small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from localshapley.engine.executor import Executor
from localshapley.engine.run_store import opened
from localshapley.errors import InvalidArgumentError, TooLargeError
from localshapley.locality.gap import ArrivalOrders, LocalityGap, summarise
from localshapley.methods.limits import Limits
from localshapley.models.boosted_trees import BoostedTrainer
from localshapley.models.fixed_trees import FixedTrainer
from localshapley.notes import Note
from localshapley.problem.base import LocalProblem
from localshapley.problem.build import build_problem
from localshapley.question import L, Question
from localshapley.runtime.compiling import announcing_compilation
from localshapley.runtime.progress import Progress
from localshapley.supports.given import Everything
from localshapley.supports.hops import Hops

N_TESTS = 10
"""Test rows on which the gap is measured,"""
MAX_TRAININGS = 20_000
"""and trainings for that at most; of a budget, and of a limit of time, a quarter at most."""
MAX_PAIRS = 100_000
"""Without a budget, supports do not grow beyond so many rows, over all test rows; else beyond its trainings."""


def grow_support(question: Question[L]) -> tuple[LocalProblem, Limits]:
    """Return the problem of a question with a support that is large enough, and the limits that are left."""
    limits, question = question.limits, replace(question, support=None)
    problem = build_problem(question)
    if limits.method.plays_all or isinstance(problem.trainer, FixedTrainer | BoostedTrainer):
        return problem, limits
    most = MAX_TRAININGS if limits.budget is None else min(MAX_TRAININGS, limits.budget // 4)
    walks = _walks(problem, limits.seed, most)
    if walks is None:
        text = f"support='auto' kept {problem.support}: to measure what it misses would take over {most:,} trainings."
        return _with_note(problem, Note("support-not-grown", text, support=problem.support, trainings=most)), limits
    bar = Progress(limits.progress, None, "finding a support")
    with opened(question.store, problem.contents) as known, announcing_compilation(limits.progress), bar:
        walks.draw(_n_orders(walks, problem, most))
        max_seconds = None if limits.max_seconds is None else limits.max_seconds / 4
        gaps = GapsOfSupports(walks, Executor(problem.trainer, known, max_seconds=max_seconds), most, bar)
        found, gap, reason = _grow(problem, gaps, question)
    budget = None if limits.budget is None else limits.budget - gaps.n_scored
    return _with_note(found, note_on_gap(found, gap, reason)), replace(limits, budget=budget)


def _with_note(problem: LocalProblem, note: Note) -> LocalProblem:
    return replace(problem, remarks=lambda: [*problem.notes, note])


def _walks(problem: LocalProblem, seed: int, most: int) -> ArrivalOrders | None:
    """Walks over as many test rows as there are trainings for, with a few orders; None for none."""
    rng, n_tests = np.random.default_rng(seed), problem.graph.n_tests
    order = rng.permutation(n_tests)
    for n in range(min(N_TESTS, n_tests), 0, -1):
        walks = ArrivalOrders(problem, np.sort(order[:n]).astype(np.int32), rng)
        if 2 * (walks.each + 3 * int(walks.near(problem).sizes.sum())) < most:
            return walks
    return None


def _n_orders(walks: ArrivalOrders, problem: LocalProblem, most: int) -> int:
    """Orders that leave room for supports that grow to four times their size; larger ones see fewer of them."""
    near = int(walks.near(problem).sizes.sum())
    return int(np.clip(most // (walks.each + 7 * near), 2, 1000))


class GapsOfSupports:
    """Locality gaps of one support after the other, over the same orders of arrival, within trainings and time."""

    def __init__(self, walks: ArrivalOrders, executor: Executor, most: int, bar: Progress) -> None:
        self.most, self._walks, self._executor, self._bar = most, walks, executor, bar
        self._total = walks.walk(executor, [walks.everyone], len(walks.orders), bar)[0][:, 0]

    @property
    def is_late(self) -> bool:
        """Whether there is no time for another support."""
        return self._executor.is_late

    @property
    def n_scored(self) -> int:
        """Coalitions scored, trained now or before."""
        return self._executor.counts.trainings + self._executor.counts.stored

    def n_orders(self, problem: LocalProblem) -> int:
        """Orders that there are trainings left for, with the supports of a problem."""
        each = max(int(self._walks.near(problem).sizes.sum()), 1)
        return int(min(len(self._total), (self.most - self.n_scored) // each))

    def of(self, problem: LocalProblem) -> LocalityGap:
        """How far the values of a problem are from the global ones."""
        n = self.n_orders(problem)
        local, _ = self._walks.walk(self._executor, [self._walks.near(problem)], n, self._bar)
        n = len(local)  # fewer than that where time is up
        return summarise(local[:, 0], self._total[:n], self._walks.tests, self._executor.counts.trainings, problem)


def _grow(problem: LocalProblem, gaps: GapsOfSupports, question: Question[L]) -> tuple[LocalProblem, LocalityGap, str]:
    """The first support whose gap is small enough, or the last one that may be; with its gap and what ended it."""
    gap = gaps.of(problem)
    while not gap.enough:
        larger = problem.source.grown()
        if larger is None or (problem.graph.support_sizes == problem.graph.n_players).all():
            return problem, gap, "there is no larger one"
        try:
            grown = build_problem(replace(question, support=larger))
            if isinstance(larger, Hops) and grown.graph.n_entries == problem.graph.n_entries:
                # What is left is in other parts of the graph.
                grown = build_problem(replace(question, support=Everything()))
        except TooLargeError:
            return problem, gap, "a larger one does not fit into memory"
        if reason := _too_large(grown, gaps, question.limits):
            return problem, gap, reason
        problem, gap = grown, gaps.of(grown)
    return problem, gap, ""


def _too_large(problem: LocalProblem, gaps: GapsOfSupports, limits: Limits) -> str:
    """Why a support is too large, if it is."""
    if gaps.is_late:
        return "there was no time to measure a larger one"
    most = MAX_PAIRS if limits.budget is None else limits.budget
    if problem.graph.n_entries > most:
        return f"a larger one would have over {most:,} {problem.unit}s, over all {problem.tested}"
    if gaps.n_orders(problem) < 2:
        return f"to measure a larger one would take over {gaps.most:,} trainings"
    left = None if limits.budget is None else limits.budget - gaps.most
    try:
        limits.method.start(problem.graph, Executor(problem.trainer), replace(limits, budget=left))
    except InvalidArgumentError:
        return "a larger one would need a larger budget"
    return ""


def note_on_gap(problem: LocalProblem, gap: LocalityGap, reason: str) -> Note:
    """What was found, for a result."""
    text = (
        f"locality gap of {problem.support}, found by support='auto': {gap.gap:.2f} ± {gap.gap_stderr:.2f} of the "
        f"values' size (± is one standard error; sampling alone: {gap.noise:.2f}; {len(gap.tests)} {gap.tested}, "
        f"{gap.trainings:,} trainings)"
    )
    text = f"{text}." if gap.enough else f"{text}; {reason}."
    return Note("locality-gap", text, support=problem.support, gap=gap.gap, stderr=gap.gap_stderr, enough=gap.enough)
