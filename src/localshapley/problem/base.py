"""What a problem is: games to play, and a trainer for their coalitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import Floats, Indices
from localshapley.coalitions.games import SupportGraph
from localshapley.data.folds import Fold, fold_of_rows, training_rows
from localshapley.data.row_digests import Digests
from localshapley.errors import InvalidArgumentError
from localshapley.models.owner_players import Owners
from localshapley.models.skill import Skill
from localshapley.models.task import Task
from localshapley.models.trainer import Trainer
from localshapley.notes import Note, notes_of
from localshapley.problem.players import GameDigests, Players
from localshapley.problem.store_keys import ScoreKeys
from localshapley.supports.base import Space, Support


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Games to play and a trainer for their coalitions, with what the result says about them.

    What only results, stores and reports need is given as functions and found out when they ask.

    Attributes
    ----------
    graph : SupportGraph
    trainer : Trainer
    model, score, support : str
        As the result names them.
    contents : callable
        Gives what scores depend on, for a store.
    ids : pandas Index or None
        Names of the players.
    unit : str
        What the players are: ``"row"``, ``"owner"`` or ``"node"``.
    remarks : callable
        Gives what a reader of the result should know.
    digests : callable
        Gives what the rows of the result are recognised by later, if they are rows of a table.
    judge : callable
        Gives how good the reference models are on test rows, once found out; None where there are none.
    oob_scores : callable
        Gives the scores of the rows out of bag, if they test each other in this way.
    among : int or None
        Number of all rows, where the players are only those that are in a support, and `ids` are their numbers.
    memory : int or None
        Bytes that finding and holding these rows takes at most.
    """

    graph: SupportGraph
    trainer: Trainer
    model: str
    score: str
    support: str
    contents: Callable[[], ScoreKeys]
    ids: pd.Index | None = None
    unit: str = "row"
    remarks: Callable[[], Iterable[Note]] = tuple
    digests: Callable[[], Digests | None] = lambda: None
    judge: Callable[[], Skill | None] = lambda: None
    oob_scores: Callable[[], Floats | None] = lambda: None
    among: int | None = None
    memory: int | None = None

    @cached_property
    def notes(self) -> list[Note]:
        """What a reader of the result should know."""
        return notes_of(self.remarks())

    def players(self) -> Players:
        """Return whose values a result has."""
        return Players(self.ids, self.unit, self.among, self.digests(), self.oob_scores())

    def check_seeds(self, seeds: int) -> None:
        """Refuse several seeds of a model that does not draw random numbers."""
        if not self.trainer.is_random:
            raise InvalidArgumentError(
                f"seeds={seeds} needs a model that draws random numbers; {self.model} gives the same values with "
                "every seed. Leave seeds out."
            )


@dataclass(frozen=True, kw_only=True)
class LocalProblem(Problem):
    """A problem whose games are those of supports, beside which there are the global ones.

    Attributes
    ----------
    source : Support
        Where the supports came from.
    tested : str
        What the tests are, in words.
    """

    source: Support
    tested: str = "test rows"

    def everyone_for(self, test: int) -> Indices:
        """All players that may play for a test."""
        return np.arange(self.graph.n_players, dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class RowsProblem(LocalProblem):
    """A problem of `value`: rows of a table, or their owners.

    Attributes
    ----------
    task : Task
    estimator : estimator object
    owners : Owners or None
    folds : list of folds, or None
        Where the rows test each other.
    spaces : sequence of Space
        Where the supports were searched, fold by fold.
    """

    task: Task
    estimator: Any
    owners: Owners | None = None
    folds: list[Fold] | None = None
    spaces: Sequence[Space] = ()

    def everyone_for(self, test: int) -> Indices:
        """All players that may play for a test row: with folds, those outside its own."""
        rows = np.arange(self.task.X.shape[0]) if self.folds is None else training_rows(self.folds)[test]
        return (rows if self.owners is None else np.unique(self.owners.of_row[rows])).astype(np.int32)

    @cached_property
    def origin(self) -> GameDigests:
        """The rows and settings of the problem, identified by their contents."""
        task, contents = self.task, self.contents()
        nothing = task.score_nothing_learnt(np.arange(len(task.y_test), dtype=np.int32))
        folds = fold_of_rows(self.folds, len(task.y)) if self.folds is not None and self.owners is None else None
        rows = contents.rows if self.owners is None else self.owners.digests(contents.rows)
        origin = GameDigests(contents.fingerprint, rows, contents.tests, nothing)
        return origin if folds is None else replace(origin, folds=folds)
