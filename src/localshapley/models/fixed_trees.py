"""Trees, forests and boosted trees of fixed structure: grown once, and a coalition only refills their leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import BaseDecisionTree

from localshapley import scoring
from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.random_groups import RandomGroups
from localshapley.errors import InvalidArgumentError
from localshapley.models.boosted_trees import BoostedTrainer, BoostedTrees
from localshapley.models.boosting_losses import family_of
from localshapley.models.compiled import plain
from localshapley.models.estimator_checks import final_step, has_random_state, train_reference
from localshapley.models.task import Task
from localshapley.models.trainer import Counts, Model, Trainer, TrainingOutcome
from localshapley.models.tree_leaves import GrownTrees, TreeLeaves
from localshapley.notes import Note
from localshapley.runtime.threads import threads_for

if TYPE_CHECKING:
    from localshapley.kernels.leaf_games import LeafLabels

FORESTS = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)


class Fixed(Model):
    """A tree, forest or boosted trees, grown once on all rows; a coalition of rows only refills the leaves.

    The values of the rows are then exact, over all coalitions of all rows, and take no more than the time of the fit.
    A leaf predicts the shares of the classes, or the mean, of those of its rows that are in the coalition. A row counts
    once in the bag of a tree, however often it was drawn, and an empty leaf has learnt nothing. A forest is scored tree
    by tree: its score is the mean over the trees, which for ``confidence`` is the confidence of the forest.

    The leaves of boosted trees predict steps of Newton's method, with the gradients and hessians of the model of all
    rows. Their score is ``margin``, the difference of the decision values of classes, which is a sum over the trees;
    for numbers it is ``squared_error``, by how much each tree lowers it after those before it, filled by all rows.

    With ``value(X, y, model=Fixed(forest), cv="oob")`` every row is judged by the trees whose bag it is not in: there
    is no test set, and one fit.

    Parameters
    ----------
    estimator : scikit-learn estimator
        `DecisionTreeClassifier`, `RandomForestClassifier`, `ExtraTreesClassifier`, their regressors, single extra
        trees, `GradientBoosting…`, `HistGradientBoosting…`, XGBoost's or LightGBM's models, or a pipeline that ends in
        one of them. It need not be fitted.

    Examples
    --------
    >>> import localshapley as ls
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> v = ls.value(X, y, model=ls.models.Fixed(RandomForestClassifier()), cv="oob")
    >>> v.cost.trainings, len(v.support_sizes)
    (0, 105)
    """

    def __init__(self, estimator: Any) -> None:
        final = final_step(estimator)
        if not (isinstance(final, (BaseDecisionTree, *FORESTS)) or family_of(final)):
            raise InvalidArgumentError(
                "models.Fixed needs a decision tree, a random forest, extra trees or gradient boosting of scikit-learn,"
                f" or a model of XGBoost or LightGBM; got {estimator!r}. Give other models without Fixed."
            )
        self.estimator = estimator
        self.is_boosted = bool(family_of(final))
        if self.is_boosted and is_classifier(final):
            self.score = "margin"

    def __repr__(self) -> str:
        return f"Fixed({self.estimator!r})"

    def check(self, score: scoring.Score, *, oob: bool) -> None:
        """Refuse scores without a closed form, and trees that no row is out of the bag of."""
        of_classes = scoring.Margin if self.is_boosted else scoring.Confidence
        if type(score) not in (of_classes, scoring.SquaredError):
            linear = "squared_error" if score.task == "regressor" else of_classes.name
            raise InvalidArgumentError(
                f"score {score.name!r} has no closed form with models.Fixed; use score={linear!r}, or give the model "
                "without Fixed, so that coalitions are trained."
            )
        if oob and not getattr(final_step(self.estimator), "bootstrap", False):
            raise InvalidArgumentError(
                "cv='oob' needs trees that each leave rows out; "
                f"{type(final_step(self.estimator)).__name__} grows them on all rows: use a forest with "
                "bootstrap=True, or cv=5."
            )

    def trainer(
        self, task: Task, n_jobs: int | None = None, *, skip_errors: bool = False
    ) -> FixedTrainer | BoostedTrainer:
        """Grow the trees on all rows of a task, and make the trainer that refills them."""
        rows, tests = np.arange(task.X.shape[0]), np.arange(task.X_test.shape[0])
        reference = train_reference(self.estimator, task.X, task.y, task.seed)
        return self.refilling(task, [self.grown(reference, task, rows, tests)], n_jobs)

    def grown(self, reference: Any, task: Task, rows: Ints, tests: Ints) -> GrownTrees:
        """The fitted trees of a task, whose rows and test rows have these numbers among all."""
        if not self.is_boosted:
            return GrownTrees(reference, task.X, rows, task.X_test, tests)
        y, y_test = task.y, task.y_test
        if task.codes is not None:  # the rows of a fold may lack a class
            present, y = np.unique(task.codes, return_inverse=True)
            y_test = np.where(np.isin(y_test, present), np.searchsorted(present, y_test), -1)
        return BoostedTrees(reference, task.X, rows, task.X_test, tests, y, y_test)

    def refilling(self, task: Task, growths: list[GrownTrees], n_jobs: int | None) -> FixedTrainer | BoostedTrainer:
        """The trainer that refills the leaves of trees, one forest or boosting for each fold."""
        boosted = [grown for grown in growths if isinstance(grown, BoostedTrees)]
        if not boosted:
            return FixedTrainer(self.estimator, task, growths, n_jobs)
        if task.empty is not None:
            raise InvalidArgumentError(
                f"empty={task.empty!r} is not for boosted trees in models.Fixed: without rows they predict what "
                "boosting starts from; leave empty out."
            )
        return BoostedTrainer(self.estimator, task, boosted, n_jobs)


class FixedTrainer(Trainer):
    """Refills the leaves of fixed trees, or sums up the values of all coalitions, leaf by leaf.

    Parameters
    ----------
    estimator : tree or forest
    task : Task
    growths : list of GrownTrees
        The fitted trees, one forest for each fold.
    n_jobs : int, optional
        Threads that follow rows to their leaves; by default one per core.
    """

    kernels = (
        "group",
        "add_leaf_values",
        "add_bundle_values",
        "add_pair_values",
        "score_refilled",
        "count_mates",
        "list_mates",
    )

    def __init__(self, estimator: Any, task: Task, growths: list[GrownTrees], n_jobs: int | None = None) -> None:
        self.name = f"{type(final_step(estimator)).__name__} (fixed)"
        self.is_random = has_random_state(estimator)
        self.training_notes = _notes(final_step(estimator), task)
        n_threads = threads_for(n_jobs)
        n_rows, n_tests = task.X.shape[0], task.X_test.shape[0]
        self.leaves = TreeLeaves(growths, n_rows, n_tests, n_threads)
        self.n_parts = self.leaves.n_trees
        self._labels = leaf_labels(task, 1 / _judges(growths, n_tests))
        self._harmonic, self._room = harmonic_sums(n_rows), np.zeros(task.n_outputs)
        self._totals: tuple[Floats, Floats] | None = None

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Refill the leaves with each coalition, and score it."""
        from localshapley.kernels.leaf_games import score_refilled

        out, last_in = np.empty(len(coalitions.tests)), np.full(self.leaves.n_rows, -1)
        score_refilled(coalitions.arrays, self.leaves.of_tests, self.leaves.lists[0], self._labels, last_in, out)
        return TrainingOutcome(out, Counts(trivial=int((np.diff(coalitions.indptr) == 0).sum())))

    def parts(self) -> FixedTrainer:
        """Itself: the values of a forest are sums over its trees."""
        return self

    def add_up(self) -> Iterator[None]:
        """Sum up values and full scores; see `models.trainer.Parts`."""
        from localshapley.kernels.leaf_games import add_leaf_values

        values, full = np.zeros(self.leaves.n_rows), np.zeros(self.leaves.n_tests)
        for rows, tests in self.leaves:
            add_leaf_values(rows, tests, self._labels, self._harmonic, self._room, values, full)
            yield
        self._totals = values, full

    @property
    def totals(self) -> tuple[Floats, Floats]:
        """Values of the training rows, and scores of the test rows with all rows in the leaves."""
        if self._totals is None:
            for _ in self.add_up():
                pass
        assert self._totals is not None
        return self._totals

    def values(self) -> Floats:
        """Values, summed over the test rows."""
        return self.totals[0]

    def by_test(self, graph: SupportGraph) -> sparse.csr_array:
        """Values to each test row."""
        from localshapley.kernels.leaf_games import add_pair_values

        out, everyone = np.zeros(len(graph.N[1])), np.arange(self.leaves.n_tests, dtype=np.int32)
        place = np.empty(self.leaves.n_rows, dtype=np.int64)
        of_tests, rows = self.leaves.of_tests, self.leaves.lists[0]
        add_pair_values(of_tests, rows, self._labels, self._harmonic, self._room, graph.N, everyone, place, out)
        return graph.matrix(out)

    def by_bundle(self, bundles: RandomGroups) -> Floats:
        """Values to each bundle of test rows: each is the test rows of its own copy of the leaves."""
        from localshapley.kernels.leaf_games import add_bundle_values

        out, first = np.zeros((bundles.n, self.leaves.n_rows)), np.zeros(bundles.n + 1, dtype=np.int64)
        for rows, tests in self.leaves:
            dealt = np.empty(int(np.diff(tests[0]).max(initial=0)), dtype=np.int32)
            room = first, dealt, self._room
            add_bundle_values(rows, tests, bundles.of_test, self._labels, self._harmonic, room, out)
        return out


def _notes(final: Any, task: Task) -> tuple[Note, ...]:
    """Where refilled leaves differ from those of scikit-learn."""
    found = []
    if getattr(final, "class_weight", None) is not None:
        text = "class_weight shapes the trees, but their leaves are refilled with plain shares of the classes."
        found.append(Note("leaves-refilled", text, setting="class_weight"))
    if getattr(final, "monotonic_cst", None) is not None:
        text = "monotonic_cst shapes the trees, but refilled leaves need not keep to it."
        found.append(Note("leaves-refilled", text, setting="monotonic_cst"))
    if final.criterion == "absolute_error":
        text = "criterion='absolute_error' shapes the trees, but their leaves are refilled with means."
        found.append(Note("leaves-refilled", text, setting="criterion"))
    if task.classes is None and isinstance(final, FORESTS):
        text = "the forest is scored tree by tree: its squared error is the mean of the errors of its trees."
        found.append(Note("scored-by-tree", text))
    return tuple(found)


def leaf_labels(task: Task, weights: Floats) -> LeafLabels:
    """Labels of training and test rows, as kernels take them."""
    nothing = plain(task.score_nothing_learnt(np.arange(len(task.y_test), dtype=np.int32)))
    if task.classes is None or task.codes is None:
        none, middle = np.zeros(0, dtype=np.int64), float(task.y.mean())
        return True, none, none, plain(task.y - middle), plain(task.y_test - middle), weights, nothing
    numbers = np.zeros(0)
    return False, plain(task.codes, np.int64), plain(task.y_test, np.int64), numbers, numbers, weights, nothing


def harmonic_sums(most: int) -> Floats:
    """Sums of 1/i and of 1/i² up to each number."""
    i = np.arange(1, most + 1, dtype=np.float64)
    return np.array([np.concatenate([[0.0], np.cumsum(term)]) for term in (1 / i, 1 / (i * i))])


def _judges(growths: list[GrownTrees], n_tests: int) -> Ints:
    """Number of trees that judge each test row."""
    judges = np.zeros(n_tests, dtype=np.int64)
    for grown in growths:
        if grown.tests is not None:
            judges[grown.tests] += len(grown.trees)
        else:
            judges += grown.n_judges[grown.n_judges > 0]
    return judges


def predict_out_of_bag(grown: GrownTrees, rows: Ints) -> AnyArray:
    """What the trees whose bag each row is not in predict for it together; each row has such a tree."""
    final, X = final_step(grown.model), grown.inputs[0][rows]
    votes: Any = 0.0
    for tree, bag in zip(grown.trees, grown.bags, strict=True):
        assert bag is not None
        said = (tree.predict_proba if is_classifier(final) else tree.predict)(X, check_input=False)
        votes = votes + np.where(bag[rows], 0.0, said.T).T
    if is_classifier(final):
        return final.classes_[votes.argmax(axis=1)]  # type: ignore[no-any-return]
    return votes / grown.n_judges[rows]  # type: ignore[no-any-return]


def scores_out_of_bag(trainer: FixedTrainer, grown: GrownTrees, task: Task) -> Floats:
    """Scores of all rows of a task by the trees that have not seen them; as if nothing were learnt, if all have."""
    found = task.score_nothing_learnt(np.arange(len(grown.rows), dtype=np.int32))
    found[grown.n_judges > 0] = trainer.totals[1]
    return found
