"""The leaves of trees that were grown once: which training rows are in each, and which test rows reach it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import joblib
import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from localshapley.arrays import AnyArray, Indices, Ints, Lists, offsets
from localshapley.coalitions.games import SupportGraph
from localshapley.formatting import counted, in_words
from localshapley.models.estimator_checks import final_step
from localshapley.runtime.memory import check_memory
from localshapley.supports.base import Space, Support

MOST_COUNTED = 2**32
"""Up to this many triples of a test row, a leaf and a row in it are walked through to count leaf mates: seconds."""


@dataclass(frozen=True)
class GrownTrees:
    """Trees that were grown once, with the rows in their leaves and the test rows that they judge.

    Attributes
    ----------
    model : fitted estimator
        A tree, a forest, or a pipeline that ends in one.
    X : table
        The rows that it was fitted on.
    rows : int array
        Their numbers among all training rows.
    X_test, tests : table and int array, optional
        The test rows, and their numbers among all test rows. Without them each row is judged out of bag, by the trees
        whose bag it is not in, and rows that have such a tree are numbered as test rows.
    """

    model: Any
    X: Any
    rows: Ints
    X_test: Any = None
    tests: Ints | None = None

    @cached_property
    def trees(self) -> list[Any]:
        """The fitted trees."""
        final = final_step(self.model)
        return list(getattr(final, "estimators_", [final]))

    @cached_property
    def bags(self) -> list[AnyArray | None]:
        """Which rows are in the bag of each tree; None where it was grown on all of them."""
        final = final_step(self.model)
        if not getattr(final, "bootstrap", False):
            return [None] * len(self.trees)
        bags: list[AnyArray | None] = []
        for drawn in final.estimators_samples_:
            bag = np.zeros(len(self.rows), dtype=bool)
            bag[drawn] = True
            bags.append(bag)
        return bags

    @cached_property
    def n_judges(self) -> Ints:
        """For each row the number of trees whose bag it is not in."""
        found = np.zeros(len(self.rows), dtype=np.int64)
        for bag in self.bags:
            found += False if bag is None else ~bag
        return found

    @cached_property
    def test_numbers(self) -> Ints:
        """Numbers of the test rows; out of bag an entry for each row, which counts where a tree judges it."""
        return np.cumsum(self.n_judges > 0) - 1 if self.tests is None else self.tests

    @cached_property
    def inputs(self) -> tuple[Any, Any]:
        """Rows and test rows in the form that trees take."""
        return self._as_input(self.X), None if self.X_test is None else self._as_input(self.X_test)

    def leaves_of(self, tree: int) -> tuple[Lists, Lists]:
        """For each leaf of a tree the rows of its bag, and the test rows."""
        grown, bag = self.trees[tree], self.bags[tree]
        X, X_test = self.inputs
        is_leaf = grown.tree_.children_left < 0
        number = np.cumsum(is_leaf, dtype=np.int32) - 1
        reached, n_leaves = number[grown.apply(X, check_input=False)], int(is_leaf.sum())
        inside: Any = slice(None) if bag is None else bag
        rows = grouped(reached[inside], self.rows[inside], n_leaves)
        if X_test is not None:
            return rows, grouped(number[grown.apply(X_test, check_input=False)], self.test_numbers, n_leaves)
        assert bag is not None, "out of bag there are bags"
        return rows, grouped(reached[~bag], self.test_numbers[~bag], n_leaves)

    def _before(self, X: Any) -> Any:
        """Rows as the last step of a pipeline takes them."""
        model = self.model
        while isinstance(model, Pipeline):
            X = model[:-1].transform(X) if len(model.steps) > 1 else X
            model = model.steps[-1][1]
        return X

    def _as_input(self, X: Any) -> Any:
        X = self._before(X)
        return check_array(X, accept_sparse="csr", dtype=np.float32, order="C", ensure_all_finite=False)


class TreeLeaves:
    """All leaves of some trees; they are found when they are first asked for.

    Parameters
    ----------
    growths : list of GrownTrees
    n_rows, n_tests : int
        Training rows and test rows in all.
    n_threads : int
        Trees to follow at a time.
    """

    def __init__(self, growths: list[GrownTrees], n_rows: int, n_tests: int, n_threads: int) -> None:
        self.n_rows, self.n_tests = n_rows, n_tests
        self.n_trees = sum(len(grown.trees) for grown in growths)
        self.most_counted = MOST_COUNTED
        self._growths, self._n_threads = growths, n_threads
        self._found: list[tuple[Lists, Lists]] = []

    def __iter__(self) -> Iterator[tuple[Lists, Lists]]:
        """Training rows and test rows of the leaves, some trees at a time, always in the same order."""
        if self._found:
            yield from self._found
            return
        todo = [(grown, tree) for grown in self._growths for tree in range(len(grown.trees))]
        for grown in self._growths:
            _ = grown.inputs, grown.bags, grown.test_numbers  # once, before there are threads
        parallel = joblib.Parallel(self._n_threads, backend="threading", return_as="generator")
        found = []
        for lists in parallel(joblib.delayed(grown.leaves_of)(tree) for grown, tree in todo):
            found.append(lists)
            yield lists
        self._found, self._growths = found, []  # nothing more is asked of the trees

    @cached_property
    def lists(self) -> tuple[Lists, Lists]:
        """Training rows and test rows of all leaves."""
        rows, tests = zip(*self, strict=True)
        self._found = [(_joined(rows), _joined(tests))]
        return self._found[0]

    @cached_property
    def of_tests(self) -> Lists:
        """The leaves that each test row reaches, one for each tree that judges it."""
        indptr, tests = self.lists[1]
        leaf = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
        return grouped(tests, leaf, self.n_tests)

    @cached_property
    def counted(self) -> tuple[Ints, Ints]:
        """Leaf mates of each test row, and test rows of each training row."""
        from localshapley.kernels.leaves import count_mates

        counts = np.zeros(self.n_tests, dtype=np.int64), np.zeros(self.n_rows, dtype=np.int64)
        count_mates(self.of_tests, self.lists[0], np.full(self.n_rows, -1), *counts)
        return counts

    @cached_property
    def bounds(self) -> tuple[Ints, Ints]:
        """The same, or, where leaves are so large that counting would take long, the most that they can be."""
        if self.counts_quickly:
            return self.counted
        (row_indptr, rows), (test_indptr, tests) = self.lists
        inside, outside = np.diff(row_indptr), np.diff(test_indptr)
        sizes = np.bincount(tests, weights=np.repeat(inside, outside), minlength=self.n_tests)
        reach = np.bincount(rows, weights=np.repeat(outside, inside), minlength=self.n_rows)
        return np.minimum(sizes, self.n_rows).astype(np.int64), np.minimum(reach, self.n_tests).astype(np.int64)

    @property
    def counts_quickly(self) -> bool:
        """Whether leaf mates are few enough to be counted in seconds."""
        rows, tests = self.lists
        return int((np.diff(rows[0]) * np.diff(tests[0])).sum()) <= self.most_counted

    def mates(self) -> list[Indices]:
        """The training rows that share a leaf with each test row, over all trees that judge it."""
        from localshapley.kernels.leaves import list_mates

        sizes, _ = self.counted
        n_pairs = int(sizes.sum())
        check_memory(f"a list of {in_words(n_pairs)} leaf mates", 20 * n_pairs, "use method='auto', or fewer test rows")
        players = np.empty(n_pairs, dtype=np.int32)
        list_mates(self.of_tests, self.lists[0], np.full(self.n_rows, -1), players)
        return np.split(players, np.cumsum(sizes)[:-1])


@dataclass(frozen=True, repr=False)
class LeafMates(Support):
    """The rows that share a leaf with the test row in a tree that judges it: no others matter to it.

    Parameters
    ----------
    leaves : TreeLeaves
    """

    leaves: TreeLeaves

    @property
    def names_rows(self) -> bool:
        """Always: the leaves are those of one set of rows."""
        return True

    def find(self, space: Space) -> list[Indices]:
        """List the leaf mates of each test row."""
        return self.leaves.mates()

    def larger(self) -> str:
        """The global game, which has the same values."""
        return "supports.Everything()"

    def __repr__(self) -> str:
        return f"leaf mates in {counted(self.leaves.n_trees, 'tree')}"


class LeafGraph(SupportGraph):
    """Games of leaf mates, which are listed only for those who need them: there may be too many.

    Parameters
    ----------
    leaves : TreeLeaves
    sources : int array of shape (n_tests,), optional
        The row that each test row is a copy of.
    """

    def __init__(self, leaves: TreeLeaves, sources: Ints | None = None) -> None:
        self.n_players, self.n_tests = leaves.n_rows, leaves.n_tests
        self.sources = np.arange(self.n_tests) if sources is None else sources
        self._leaves = leaves

    def __getattr__(self, name: str) -> Any:
        if name not in SupportGraph.__annotations__:  # the arrays of the games
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        super().__init__(self._leaves.mates(), self.n_players, sources=self.sources)
        sizes, reach = self._leaves.counted
        self.__dict__.update(support_sizes=sizes, tests_per_player=reach)  # no bounds any more
        return getattr(self, name)

    @cached_property
    def support_sizes(self) -> Ints:
        """Leaf mates of each test row."""
        return self._leaves.bounds[0]

    @cached_property
    def tests_per_player(self) -> Ints:
        """Test rows whose leaf mate each player is."""
        return self._leaves.bounds[1]

    @property
    def n_entries(self) -> int:
        """Pairs of a test row and a leaf mate."""
        return int(self._leaves.counted[0].sum())

    @property
    def sizes_are_bounds(self) -> bool:  # type: ignore[override]
        """Where counting would take long, and nobody asked for the games."""
        return self.listed() is None and not self._leaves.counts_quickly

    def listed(self) -> SupportGraph | None:
        """Itself, if its games have been listed."""
        return self if "players" in self.__dict__ else None


def grouped(keys: AnyArray, entries: AnyArray, n_groups: int) -> Lists:
    """Lists of the entries by their keys, in the order in which they come."""
    from localshapley.kernels.leaves import group

    keys, entries = keys.astype(np.int32), entries.astype(np.int32)
    indptr = offsets(np.bincount(keys, minlength=n_groups))
    members = np.empty(len(keys), dtype=np.int32)
    group(keys, entries, indptr[:-1].copy(), members)
    return indptr, members


def _joined(parts: tuple[Lists, ...]) -> Lists:
    """Lists one after the other."""
    sizes = np.concatenate([np.diff(indptr) for indptr, _ in parts])
    return offsets(sizes), np.concatenate([entries for _, entries in parts])
