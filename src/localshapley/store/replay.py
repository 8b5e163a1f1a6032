"""What has been trained before: looked up in a store, and kept there.

A run is a replay of the same schedule, so that one that was killed goes on where it stopped, and other runs on the same
rows find what they share. Keys are contents and not positions.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from localshapley.arrays import Floats, Masks
from localshapley.coalitions.batch import Coalitions
from localshapley.errors import InvalidArgumentError, LocalShapleyWarning
from localshapley.games import SupportGraph
from localshapley.models.trainer import Trained
from localshapley.problem import Problem
from localshapley.store import Store, StoreError
from localshapley.store.contents import digest_rows, digest_text, fingerprint
from localshapley.valuation import Origin, Valuation
from localshapley.wording import duration

StoreSetting: TypeAlias = str | os.PathLike[str] | Store | None

FAST = 300e-6
"""Seconds; trainings that are quicker are done again sooner than they are read."""
ENOUGH_TRAININGS = 256
"""So many trainings tell how long one takes."""


class Replay:
    """Scores by the contents of coalitions and test rows, in a store.

    Parameters
    ----------
    store : Store
    fingerprint : bytes
        Names everything but the rows that decides a score.
    about : str
        The same for people.
    rows, tests : arrays of shape (n, 2)
        Digests of training and test rows.
    nothing : array of shape (2,)
        Digest that stands for the empty coalition.
    """

    def __init__(self, store: Store, fingerprint: bytes, about: str, rows: Masks, tests: Masks, nothing: Masks) -> None:
        self._store, self._fingerprint, self._about = store, fingerprint, about
        self._rows, self._tests, self._nothing = rows, tests, nothing
        self._seconds, self._trained = 0.0, 0
        self._keeps = True
        self.was_asked = False
        self.notes: list[str] = []

    def lookup(self, coalitions: Coalitions) -> Floats:
        """Scores of coalitions on their test rows, flat; NaN where they are not known."""
        self.was_asked = True
        if not self._keeps:
            return np.full(len(coalitions.tests), np.nan)
        return self._store.lookup(
            self._fingerprint, self._keys(coalitions), coalitions.test_indptr, self._tests[coalitions.tests]
        )

    def keep(self, coalitions: Coalitions, trained: Trained, seconds: float) -> None:
        """Keep the scores of coalitions that took so long to train."""
        self._seconds += seconds
        self._trained += len(coalitions) - trained.n_trivial
        if not self._keeps:
            return
        if self._trained >= ENOUGH_TRAININGS and self._seconds / self._trained < FAST:
            each = duration(self._seconds / self._trained)
            self._stop(f"the store was left out: a training takes {each}, less than it takes to read one back.")
            return
        scores = trained.scores.copy()
        for c in trained.stand_ins:
            scores[coalitions.test_indptr[c] : coalitions.test_indptr[c + 1]] = np.nan
        try:
            self._store.add(
                self._fingerprint,
                self._about,
                self._keys(coalitions),
                coalitions.test_indptr,
                self._tests[coalitions.tests],
                scores,
            )
        except StoreError as error:  # better to end without a store than not to end
            self._stop(f"the run went on without its store, which keeps what it had: {error}")
            warnings.warn(self.notes[-1], LocalShapleyWarning, stacklevel=2)

    def _stop(self, note: str) -> None:
        self._keeps = False
        self.notes.append(note)

    def _keys(self, coalitions: Coalitions) -> Masks:
        from localshapley.kernels.digests import add_up

        out = np.empty((len(coalitions), 2), dtype=np.uint64)
        add_up(coalitions.indptr, coalitions.players, self._rows, out)
        out[np.diff(coalitions.indptr) == 0] = self._nothing
        return out


@contextmanager
def opened(store: str | os.PathLike[str] | Store) -> Iterator[Store]:
    """The store behind the `store` argument: one that is open, and stays so, or a path."""
    if isinstance(store, Store):
        yield store
    elif isinstance(store, str | os.PathLike):
        with Store(store) as file:
            yield file
    else:
        raise InvalidArgumentError(f"store must be a path such as 'run.db', or a Store; got {store!r}.")


def replay_of_task(store: Store, problem: Problem) -> Replay:
    """Make the replay of models that are trained on the rows of a task."""
    task = problem.task
    # What the empty coalition predicts may depend on all rows: a regressor takes their mean.
    nothing = f"nothing {'' if task.classes is not None else repr(float(task.y.mean()))}"
    origin = origin_of(problem)
    about = f"{problem.model}, {task.score.name}, {problem.trainer.name}"
    return Replay(store, origin.fingerprint, about, origin.rows, origin.tests, digest_text(nothing))


def origin_of(problem: Problem) -> Origin:
    """What a problem is of, by contents."""
    task = problem.task
    rows = digest_rows(task.X, task.y)
    return Origin(
        fingerprint(task, problem.estimator, problem.trainer.name),
        rows if problem.owners is None else problem.owners.digests(rows),
        digest_rows(task.X_test, task.y_test),
        task.score_nothing_learnt(np.arange(len(task.y_test), dtype=np.int32)),
    )


def replay_of_game(store: Store, name: str, graph: SupportGraph) -> Replay:
    """Make the replay of a game that goes by a name; its players and test rows go by their numbers."""
    rows, tests = (digest_rows(np.arange(n)[:, None], np.zeros(n)) for n in (graph.n_players, graph.n_tests))
    return Replay(store, digest_text(f"game {name}").tobytes(), name, rows, tests, digest_text("nothing"))


def kept_values(valuation: Valuation, origin: Origin, graph: SupportGraph) -> dict[int, Floats]:
    """Values of the players of each test row whose support is as it was in an exact valuation."""
    before, matrix = valuation.origin, valuation.per_test
    assert before is not None
    assert matrix is not None
    place = {key.tobytes(): t for t, key in enumerate(before.tests)}
    kept = {}
    for t in range(graph.n_tests):
        old, players = place.get(origin.tests[t].tobytes()), graph.support(t)
        if old is None:
            continue
        start, stop = matrix.indptr[old], matrix.indptr[old + 1]
        was, now = before.rows[matrix.indices[start:stop]], origin.rows[players]
        was_order, now_order = np.lexsort(was.T), np.lexsort(now.T)
        if len(was) == len(now) and (was[was_order] == now[now_order]).all():
            values = np.empty(len(now))
            values[now_order] = matrix.data[start:stop][was_order]
            # All that may have changed is what a model that learnt nothing predicts.
            kept[t] = values + (before.nothing[old] - origin.nothing[t]) / max(len(now), 1)
    return kept
