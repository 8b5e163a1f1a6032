"""What is to be played: all stages up to the games, and a trainer for the coalitions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.games import SupportGraph
from localshapley.inputs.data import encode, known_table, read_data, read_table
from localshapley.inputs.folds import Fold, make_folds
from localshapley.inputs.indexes import check_order, index_of
from localshapley.inputs.loud import note_of_loud_rows
from localshapley.inputs.model import (
    check_decisions,
    final_step,
    fitting,
    on_one_line,
    predict,
    takes_kernel,
    train_reference,
)
from localshapley.inputs.numbers import check_n_jobs
from localshapley.inputs.task import Task, make_task
from localshapley.models.dispatch import as_model
from localshapley.models.fixed import Fixed, FixedTrainer, predict_out_of_bag, scores_out_of_bag
from localshapley.models.leaves import Grown, LeafGraph, LeafMates
from localshapley.models.model import Model
from localshapley.models.owners import Owners, OwnersTrainer
from localshapley.models.trainer import Trainer
from localshapley.store.contents import Contents, contents_by_name, contents_of_task, describe
from localshapley.supports.base import Space, Support
from localshapley.supports.default import default_support
from localshapley.supports.given import Everything
from localshapley.valuation.parts import Digests, Origin
from localshapley.valuation.skill import Skill, classifier_skill, regressor_skill

MAX_PREDICTED = 2000
"""Maximum number of test rows that reference models predict; more would hardly say better how good the model is."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Games to play and a trainer for their coalitions, with what the result says about them.

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
    notes : list of str
    digests : callable
        Gives what the rows of the result are recognised by later, if they are rows of a table.
    skill : Skill or None
        How good the reference models are on test rows.
    oob_scores : callable
        Gives the scores of the rows out of bag, if they test each other in this way.
    """

    graph: SupportGraph
    trainer: Trainer
    model: str
    score: str
    support: str
    contents: Callable[[], Contents]
    ids: pd.Index | None = None
    unit: str = "row"
    notes: list[str] = field(default_factory=list)
    digests: Callable[[], Digests | None] = lambda: None
    skill: Skill | None = None
    oob_scores: Callable[[], Floats | None] = lambda: None


@dataclass(frozen=True, kw_only=True)
class RowsProblem(Problem):
    """A problem of `value`: rows of a table, or their owners.

    Attributes
    ----------
    task : Task
    source : Support
        Where the supports came from.
    estimator : estimator object
    owners : Owners or None
    folds : list of folds, or None
        Where the rows test each other.
    """

    task: Task
    source: Support
    estimator: Any
    owners: Owners | None = None
    folds: list[Fold] | None = None

    def everyone_for(self, test: int) -> Indices:
        """All players that may play for a test row: with folds, those outside its own."""
        rows = np.arange(self.task.X.shape[0]) if self.folds is None else _training_rows(self.folds)[test]
        return (rows if self.owners is None else np.unique(self.owners.of_row[rows])).astype(np.int32)

    @cached_property
    def origin(self) -> Origin:
        """The rows and settings of the problem, identified by their contents."""
        task, contents = self.task, self.contents()
        nothing = task.score_nothing_learnt(np.arange(len(task.y_test), dtype=np.int32))
        return Origin(contents.fingerprint, contents.rows, contents.tests, nothing)


def pose(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    model: Any,
    cv: Any = None,
    support: Support | None = None,
    score: Any = None,
    empty: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    on_error: str = "raise",
    owners: Any = None,
) -> RowsProblem:
    """Check the arguments of `value`, train the reference models and find the games."""
    check_n_jobs(n_jobs)
    if on_error not in ("raise", "skip"):
        raise unknown_name("on_error", on_error, ("raise", "skip"))
    if support is not None and not isinstance(support, Support):
        raise InvalidArgumentError(
            f"support must be one of localshapley.supports, such as supports.Nearest(10), or None; got {support!r}."
        )
    raw, raw_test = known_table(X), known_table(X_test)
    checked = check(raw, y, raw_test, y_test, model=model, cv=cv, score=score, empty=empty, seed=seed)
    task, estimator, notes = checked.task, checked.model.estimator, checked.notes
    notes += note_of_loud_rows(task, checked.ids, folds=checked.folds is not None or checked.oob)
    held = None
    if owners is not None:
        held = Owners(owners, task.X.shape[0])
        notes += check_order("owners", owners, "X" if index_of(raw) is not None else "y", index_of(raw, y))
    if isinstance(checked.model, Fixed):
        fixed = _pose_fixed(checked, checked.model, support, n_jobs)
        return fixed if held is None else _of_owners(fixed, held)
    trials: list[Trial] = []
    if checked.folds is None:
        support, found = _find_supports(support, task, estimator, raw, raw_test, notes, trials)
    else:
        support, found = _find_by_folds(support, task, estimator, raw, checked.folds, notes, trials)
    graph = SupportGraph(found, task.X.shape[0])
    empty_supports = int((graph.support_sizes == 0).sum())
    if empty_supports:
        notes.append(
            f"{empty_supports} of {graph.n_tests} test rows have an empty support and add nothing; "
            f"a larger support ({support.larger()}) would reach them."
        )
    trainer = checked.model.trainer(task, n_jobs, skip_errors=on_error == "skip")
    notes += [trainer.note] if trainer.note else []
    problem = RowsProblem(
        graph=graph,
        trainer=trainer,
        model=on_one_line(estimator),
        score=task.score.name,
        support=repr(support),
        contents=lambda: contents_of_task(task, estimator, trainer.name),
        ids=checked.ids,
        notes=notes,
        digests=checked.digests,
        skill=_skill(trials, task),
        task=task,
        source=support,
        estimator=estimator,
        folds=checked.folds,
    )
    return problem if held is None else _of_owners(problem, held)


def _pose_fixed(checked: Checked, model: Fixed, support: Support | None, n_jobs: int | None) -> RowsProblem:
    """Grow the trees of each fold once; games need no list of players as long as nobody asks for it."""
    if support not in (None, Everything()):
        raise InvalidArgumentError(
            f"support {support!r} is not for models.Fixed: exactly the leaf mates of a test row matter to it; leave "
            "support out."
        )
    model.check(checked.task.score, oob=checked.oob)
    trials: list[Trial] = []
    task, growths = _grow_out_of_bag(checked, model, trials) if checked.oob else _grow_by_folds(checked, model, trials)
    trainer = FixedTrainer(model.estimator, task, growths, n_jobs)
    source = LeafMates(trainer.leaves) if support is None else support
    graph: SupportGraph = LeafGraph(trainer.leaves)
    if support is not None:
        n_rows, n_tests = task.X.shape[0], task.X_test.shape[0]
        everyone = [np.arange(n_rows)] * n_tests if checked.folds is None else _training_rows(checked.folds)
        graph = SupportGraph(everyone, n_rows)

    def contents() -> Contents:
        # A score depends on all rows, which grew the trees, and equal rows may be in different bags.
        of_task = contents_of_task(task, model.estimator, trainer.name)
        what = (of_task.fingerprint, of_task.rows, of_task.tests, checked.folds, checked.oob)
        name = f"{model!r} {blake2b(describe(what).encode(), digest_size=16).hexdigest()}"
        return contents_by_name(name, task.X.shape[0], task.X_test.shape[0])

    return RowsProblem(
        graph=graph,
        trainer=trainer,
        model=" ".join(repr(model).split()),
        score=task.score.name,
        support=repr(source),
        contents=contents,
        ids=checked.ids,
        notes=[*checked.notes, *([trainer.note] if trainer.note else [])],
        digests=checked.digests,
        skill=_skill(trials, task),
        oob_scores=(lambda: scores_out_of_bag(trainer, growths[0], checked.task)) if checked.oob else lambda: None,
        task=task,
        source=source,
        estimator=model.estimator,
        folds=checked.folds,
    )


def _grow_by_folds(checked: Checked, model: Fixed, trials: list[Trial]) -> tuple[Task, list[Grown]]:
    """Grow trees on all rows for the test rows, or on the rows outside each fold for those of the fold."""
    task, growths = checked.task, []
    if checked.folds is None:
        everyone, tests = np.arange(task.X.shape[0]), np.arange(task.X_test.shape[0])
        parts = [(task, everyone, tests)]
    else:
        place = np.argsort(_order_of_tests(checked.folds))
        ends = np.cumsum([len(test) for _, test in checked.folds])[:-1]
        numbered = zip(checked.folds, np.split(place, ends), strict=True)
        parts = [(_of_fold(task, fold), fold[0], tests) for fold, tests in numbered]
    for part, rows, tests in parts:
        reference = train_reference(model.estimator, part.X, part.y, task.seed)
        trials.append(_try_out(reference, part, -(-MAX_PREDICTED // len(parts))))
        growths.append(Grown(reference, part.X, rows, part.X_test, tests))
    return task, growths


def _grow_out_of_bag(checked: Checked, model: Fixed, trials: list[Trial]) -> tuple[Task, list[Grown]]:
    """Grow trees on all rows; test rows are those that some tree has not seen."""
    task, rows = checked.task, np.arange(checked.task.X.shape[0])
    grown = Grown(train_reference(model.estimator, task.X, task.y, task.seed), task.X, rows)
    seen = grown.n_judges == 0
    if seen.all():
        raise InvalidArgumentError(
            "cv='oob' needs rows that are not in the bag of every tree, and there are none; give the forest more trees "
            "(n_estimators), or a smaller max_samples."
        )
    if seen.any():
        checked.notes.append(
            f"{int(seen.sum())} of {len(rows)} rows are in the bag of every tree and are no test rows; more trees "
            "(n_estimators) would judge them."
        )
        task = replace(task, X_test=_safe_indexing(task.X, np.flatnonzero(~seen)), y_test=task.y_test[~seen])
    tests = _sampled(np.flatnonzero(~seen), MAX_PREDICTED, task.seed)
    trials.append(_as_trial(predict_out_of_bag(grown, tests), checked.task, tests))
    return task, [grown]


def _of_owners(problem: RowsProblem, owners: Owners) -> RowsProblem:
    """The same problem with owners as the players."""
    of_rows, folds = problem.contents, problem.folds
    allowed = fold_of_test = None
    note = "an owner joins a coalition with all of its rows."
    if folds is not None:
        allowed = np.array([np.isin(np.arange(len(owners.of_row)), train) for train, _ in folds])
        fold_of_test = np.repeat(np.arange(len(folds)), [len(test) for _, test in folds])[_order_of_tests(folds)]
        note = "an owner joins a coalition with all of its rows that are outside the test row's fold."

    def contents() -> Contents:
        found = of_rows()
        # What a coalition of owners scores depends on the folds, too.
        fingerprint = blake2b(found.fingerprint + describe(folds).encode(), digest_size=16).digest()
        rows = owners.digests(found.rows)
        return found._replace(rows=rows, fingerprint=found.fingerprint if folds is None else fingerprint)

    return replace(
        problem,
        graph=owners.graph(problem.graph),
        trainer=OwnersTrainer(problem.trainer, owners, allowed, fold_of_test),
        contents=contents,
        ids=owners.names,
        unit="owner",
        notes=[*problem.notes, note],
        digests=lambda: None,
        oob_scores=lambda: None,
        owners=owners,
    )


@dataclass(frozen=True)
class Checked:
    """Checked arguments, in one form; test rows of folds are in ascending order."""

    task: Task
    model: Model
    ids: pd.Index | None
    notes: list[str]
    digests: Callable[[], Digests]
    folds: list[Fold] | None = None
    oob: bool = False


def check(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    model: Any,
    cv: Any = None,
    score: Any = None,
    empty: float | None = None,
    seed: int = 0,
) -> Checked:
    """Check rows, labels, model and score, and convert them to one form."""
    if cv is not None and (X_test is not None or y_test is not None):
        raise InvalidArgumentError("give either X_test and y_test, or cv; with cv the rows test each other.")
    data = read_data(X, y, X_test, y_test) if cv is None else read_table(X, y)
    chosen, notes = as_model(model, data.y)
    estimator, folds, oob = chosen.estimator, None, isinstance(cv, str) and cv == "oob"
    if oob:
        if not isinstance(chosen, Fixed):
            raise InvalidArgumentError(
                "cv='oob' needs trees that are grown once, such as model=models.Fixed(RandomForestClassifier()); for "
                "other models give a number of folds, such as cv=5."
            )
        data = replace(data, X_test=data.X, y_test=data.y)
    elif cv is not None:
        if takes_kernel(estimator):
            raise InvalidArgumentError(
                "cv is not supported by models that take a precomputed kernel; give X_test and y_test."
            )
        folds = make_folds(cv, data.y, classifier=is_classifier(estimator), seed=seed)
        tests = np.sort(np.concatenate([test for _, test in folds]))
        data = replace(data, X_test=_safe_indexing(data.X, tests), y_test=data.y[tests])
    data = fitting(data, estimator)
    task, more = make_task(
        data,
        classifies=is_classifier(estimator),
        has_proba=hasattr(estimator, "predict_proba"),
        score=score,
        empty=empty,
        seed=seed,
    )
    notes = notes + more + data.notes
    return Checked(task, chosen, data.ids, notes, lambda: Digests.of(known_table(X), y), folds, oob)


def _find_supports(
    support: Support | None,
    task: Task,
    estimator: Any,
    raw: Any,
    raw_test: Any,
    notes: list[str],
    trials: list[Trial],
    n_predicted: int = MAX_PREDICTED,
) -> tuple[Support, list[Indices]]:
    """Train the model on all rows, try it out, and find the support of every test row."""
    reference = train_reference(estimator, task.X, task.y, task.seed)
    with suppress(InvalidArgumentError):  # such as too few rows for its neighbours; coalitions have conventions for it
        trials.append(_try_out(reference, task, n_predicted))
    if task.score.source in ("proba", "margin"):
        check_decisions(reference, task.score.name)
    if support is None:
        support, induced = default_support(final_step(reference))
        note = (
            f"locality is assumed, not induced: {type(final_step(estimator)).__name__} has no support of its own, "
            f"so {support} was used; locality_gap() estimates what that misses."
        )
        if not induced and note not in notes:
            notes.append(note)
    return support, support(_space(reference, task, raw, raw_test))


def _find_by_folds(
    support: Support | None,
    task: Task,
    estimator: Any,
    raw: Any,
    folds: list[Fold],
    notes: list[str],
    trials: list[Trial],
) -> tuple[Support, list[Indices]]:
    """Find supports fold by fold among the rows outside; test rows come in ascending order."""
    if support is not None and support.names_rows:
        raise InvalidArgumentError(
            f"support {type(support).__name__} names rows or vectors for one set of test rows, cv makes several; give "
            "another support, or X_test and y_test instead of cv."
        )
    found: list[Indices] = []
    chosen = support
    for train, test in folds:
        part = _of_fold(task, (train, test))
        raw_part, raw_test = _safe_indexing(raw, train), _safe_indexing(raw, test)
        most = -(-MAX_PREDICTED // len(folds))
        chosen, inside = _find_supports(support, part, estimator, raw_part, raw_test, notes, trials, most)
        found += _as_numbered(train, inside)
    assert chosen is not None
    return chosen, [found[t] for t in _order_of_tests(folds)]


def _of_fold(task: Task, fold: Fold) -> Task:
    """The task of learning from the rows outside a fold, and being tested on those inside."""
    train, test = fold
    return replace(
        task,
        X=_safe_indexing(task.X, train),
        y=task.y[train],
        X_test=_safe_indexing(task.X, test),
        y_test=task.y[test] if task.codes is None else task.codes[test],
        codes=None if task.codes is None else task.codes[train],
    )


def _as_numbered(train: Ints, inside: list[Indices]) -> list[Indices]:
    """Supports among some of the rows, by the numbers of all rows; one array stays one array."""
    of_array = {id(rows): train[rows].astype(np.int32) for rows in {id(rows): rows for rows in inside}.values()}
    return [of_array[id(rows)] for rows in inside]


Trial: TypeAlias = tuple[AnyArray, AnyArray, AnyArray]
"""Of some test rows: what is true, what a reference model predicts, and the best constant guess of its rows."""


def _try_out(reference: Any, task: Task, most: int) -> Trial:
    """Have a reference model predict test rows, of many a random sample."""
    tests = _sampled(np.arange(len(task.y_test)), most, task.seed)
    return _as_trial(predict(reference, _safe_indexing(task.X_test, tests)), task, tests)


def _sampled(tests: Ints, most: int, seed: int) -> Ints:
    """The test rows or, of many, a random sample."""
    if len(tests) <= most:
        return tests
    return np.sort(np.random.default_rng(seed).choice(tests, most, replace=False))


def _as_trial(predicted: AnyArray, task: Task, tests: Ints) -> Trial:
    """Predictions beside what is true, and a constant guess."""
    if task.classes is None or task.codes is None:
        return task.y_test[tests], predicted.astype(np.float64), np.full(len(tests), task.y.mean())
    codes, _ = encode(predicted, task.classes)
    return task.y_test[tests], codes, np.full(len(tests), np.bincount(task.codes).argmax())


def _skill(trials: list[Trial], task: Task) -> Skill | None:
    """How good the reference models are together; None if they have predicted next to nothing."""
    if sum(len(truth) for truth, _, _ in trials) < 2:
        return None
    truth, predicted, guessed = (np.concatenate(parts) for parts in zip(*trials, strict=True))
    if task.classes is None or task.codes is None:
        return regressor_skill(truth, predicted, guessed)
    return classifier_skill(truth, predicted, guessed, str(task.classes[np.bincount(task.codes).argmax()]))


def _order_of_tests(folds: list[Fold]) -> Ints:
    """Positions that sort the concatenated test rows of all folds; of equal rows, earlier folds come first."""
    return np.argsort(np.concatenate([test for _, test in folds]), kind="stable")


def _training_rows(folds: list[Fold]) -> list[Ints]:
    """For each test row the rows that models are trained on."""
    by_fold = [train for train, test in folds for _ in test]
    return [by_fold[t] for t in _order_of_tests(folds)]


def _space(reference: Any, task: Task, raw: Any, raw_test: Any) -> Space:
    """The space before the last step of a pipeline, else that of the rows."""
    model, X, X_test = reference, task.X, task.X_test
    while isinstance(model, Pipeline):
        if len(model.steps) > 1:
            X, X_test = model[:-1].transform(X), model[:-1].transform(X_test)
        model = model.steps[-1][1]
    return Space(_as_rows(X), _as_rows(X_test), raw, raw_test, task.y, final_step(reference), task.seed)


def _as_rows(table: Any) -> Any:
    """Rows as an array or a CSR matrix."""
    if sparse.issparse(table):
        return sparse.csr_matrix(table)
    return table.to_numpy() if isinstance(table, pd.DataFrame) else table
