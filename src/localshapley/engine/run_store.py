"""What has been trained before is looked up in a store, and new trainings are added to it.

A run replays the same schedule, so one that was killed resumes where it stopped, and other runs on the same rows find
what they share. Keys are contents and not positions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from localshapley.arrays import Floats
from localshapley.coalitions.batch import Coalitions
from localshapley.engine.score_store import Store
from localshapley.engine.store_file import StoreError
from localshapley.errors import InvalidArgumentError, warn
from localshapley.formatting import counted, duration
from localshapley.models.trainer import TrainingOutcome
from localshapley.notes import Note
from localshapley.problem.store_keys import ScoreKeys

StoreSetting: TypeAlias = str | os.PathLike[str] | Store | None

ENOUGH_TRAININGS = 256
"""Number of trainings that are enough to say how long one takes."""


@contextmanager
def opened(store: StoreSetting, contents: Callable[[], ScoreKeys]) -> Iterator[RunStore | None]:
    """What a run knows of the store behind the `store` argument: a path, a store that stays open, or None."""
    if store is None:
        yield None
    elif isinstance(store, Store):
        yield RunStore(store, contents())
    elif isinstance(store, str | os.PathLike):
        with Store(store) as file:
            yield RunStore(file, contents())
    else:
        raise InvalidArgumentError(f"store must be a path such as 'run.db', or a Store; got {store!r}.")


class RunStore:
    """A store as a run uses it: scores by the contents of coalitions and test rows.

    Parameters
    ----------
    store : Store
    contents : ScoreKeys

    Attributes
    ----------
    notes : list of Note
        What the user should know.
    """

    def __init__(self, store: Store, contents: ScoreKeys) -> None:
        self._store, self._contents = store, contents
        self._seconds, self._trained = 0.0, 0
        self._keeps, self._was_asked = True, False
        self._notes: list[Note] = []

    @property
    def notes(self) -> list[Note]:
        """What the user should know about the store."""
        unused = Note("store-not-needed", "the store was not used: these values need no training.")
        return self._notes if self._was_asked else [unused]

    def look_up(self, coalitions: Coalitions) -> Floats:
        """Scores of coalitions on their test rows, flat; NaN where they are not known."""
        self._was_asked = True
        if not self._keeps:
            return np.full(len(coalitions.tests), np.nan)
        keys, tests = self._contents.keys(coalitions)
        try:
            return self._store.lookup(self._contents.fingerprint, keys, coalitions.test_indptr, tests)
        except StoreError as error:
            self._do_without(error)
            return np.full(len(coalitions.tests), np.nan)

    def keep(self, coalitions: Coalitions, trained: TrainingOutcome) -> None:
        """Keep the scores of coalitions, unless they are trained more quickly than read."""
        self._seconds += trained.counts.seconds
        self._trained += len(coalitions) - trained.counts.trivial
        if not self._keeps:
            return
        if self._trained >= ENOUGH_TRAININGS and self._seconds / self._trained < self._store.fastest:
            each = self._seconds / self._trained
            text = (
                f"the store was not used after {counted(self._trained, 'training')}: one takes {duration(each)}, less "
                "than it takes to read one back."
            )
            self._stop(Note("store-slower", text, n_trainings=self._trained, seconds_per_training=each))
            return
        scores = trained.scores.copy()
        for c in trained.stand_ins:
            scores[coalitions.test_indptr[c] : coalitions.test_indptr[c + 1]] = np.nan
        keys, tests = self._contents.keys(coalitions)
        about = self._contents.fingerprint, self._contents.about
        try:
            self._store.add(*about, keys, coalitions.test_indptr, tests, scores)
        except StoreError as error:
            self._do_without(error)

    def _do_without(self, error: StoreError) -> None:
        """Better to finish without a store than not at all."""
        text = f"the run continued without its store, which keeps what it had: {error}"
        self._stop(Note("store-failed", text, error=error))
        warn(text)

    def _stop(self, note: Note) -> None:
        self._keeps = False
        self._notes.append(note)
