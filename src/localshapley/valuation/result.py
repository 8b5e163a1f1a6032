"""The result of a valuation."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from localshapley.arrays import AnyArray, Floats, Ints, Singles, relative
from localshapley.coalitions.games import SupportGraph
from localshapley.coalitions.random_groups import squares
from localshapley.coalitions.subsets import TrainingCounts, count_levels
from localshapley.data.row_digests import Digests
from localshapley.engine.executor import Cost
from localshapley.engine.run_result import FinalEstimate, History, check_lengths
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.formatting import kinds, printable
from localshapley.io.tables import index_as_columns
from localshapley.models.skill import Skill
from localshapley.notes import Note, note_of, notes_of, plain
from localshapley.problem.players import GameDigests, Players
from localshapley.runtime.argument_checks import check_whole
from localshapley.sampling.ranking import Ranking
from localshapley.valuation.facts import Facts, GameCounts, Provenance
from localshapley.valuation.file import read, save
from localshapley.valuation.intervals import beyond_doubt, in_words, interval, ranked, summary
from localshapley.valuation.row_coverage import over_all_rows
from localshapley.valuation.row_names import by_value, companions
from localshapley.valuation.table_matching import rows_and_labels

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from localshapley.valuation.plots import Plots


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Valuation:
    """What each training row is worth: the sum over the test rows of its local Shapley value.

    Attributes
    ----------
    estimate : FinalEstimate
        The values, and what is known about their errors.
    players : Players
        Whose values these are.
    counts : GameCounts
        How large the games were.
    facts : Facts
        What was valued, and how.
    cost : Cost
    stopped : Note
        What ended the run, and what was reached.
    notes : list of Note
        What a reader of the values should know. Notes read as sentences, and have a `code` and `data`.
    history : History or None
        The rounds of a sampled run.
    games : SupportGraph or None
        The games that were played; not kept in a file, and not listed for `models.Fixed` if nobody asked for them.
    origin : GameDigests or None
        What `update` needs to know; kept along with `per_test`.
    record : Provenance or None
        How it was made: version, date, seed, limits and call; None for a valuation that no function of this package
        made, and in files of earlier versions.
    """

    estimate: FinalEstimate
    players: Players
    counts: GameCounts
    facts: Facts
    cost: Cost
    stopped: Note
    notes: list[Note] = field(default_factory=list)
    history: History | None = None
    games: SupportGraph | None = None
    origin: GameDigests | None = None
    record: Provenance | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "stopped", note_of(self.stopped))
        object.__setattr__(self, "notes", notes_of(self.notes))
        n, by_test = len(self.values), self.per_test
        check_lengths(self, ("n_tests", "oob_scores", "ids"), n)
        if self.history is not None and self.history.values.shape[1] != n:
            raise InvalidArgumentError(
                f"history must have an entry for each of the {n} values; got {self.history.values.shape[1]}."
            )
        shape = len(self.support_sizes), n
        if by_test is not None and by_test.shape != shape:
            raise InvalidArgumentError(
                f"per_test must have shape {shape}, that of support_sizes by values; got {by_test.shape}."
            )

    # What the parts hold, under the names by which people ask for it.

    @property
    def values(self) -> Floats:
        """One number for each row, shape (n_rows,)."""
        return self.estimate.values

    @property
    def stderr(self) -> Floats:
        """Standard error of each value over the draws, shape (n_rows,); 0 where it is exact."""
        return self.estimate.stderr

    @property
    def per_test(self) -> sparse.csr_array | None:
        """`φ_z(v_t)`, a sparse array of shape (n_tests, n_rows), if it was asked for."""
        return self.estimate.per_test

    @property
    def spread(self) -> Singles | None:
        """Errors of sampled values are correlated: shape (n_rows, 64).

        The covariance of rows `i` and `j` is about ``spread[i] @ spread[j]``, the variance of row `i` is
        ``spread[i] @ spread[i]``.
        """
        return self.estimate.spread

    @property
    def spread_tests(self) -> Singles | None:
        """The same for what other test rows would have changed; see `stderr_tests`."""
        return self.estimate.spread_tests

    @property
    def spread_seed(self) -> Singles | None:
        """The same for other seeds of the model, where `value` was asked for several; see `stderr_seed`."""
        return self.estimate.spread_seed

    @property
    def ids(self) -> pd.Index | None:
        """The index of the user's table."""
        return self.players.ids

    @property
    def unit(self) -> str:
        """What is valued: ``"row"``, ``"owner"`` or ``"node"``."""
        return self.players.unit

    @property
    def among(self) -> int | None:
        """Number of all rows, where the result has only some of them.

        These are the rows that are in a support, because nearly all of very many rows that lie in parts are worth 0;
        `ids` are then the numbers of the rows. See `over_all_rows`.
        """
        return self.players.among

    @property
    def digests(self) -> Digests | None:
        """By which the rows and labels are recognised in a table that is given later."""
        return self.players.digests

    @property
    def oob_scores(self) -> Floats | None:
        """With ``cv="oob"``: how the trees whose bag a row is not in score on it, with all their rows in the leaves.

        For a classifier that is the probability of the row's own label. A row that is in every bag is scored as if
        nothing had been learnt.
        """
        return self.players.oob_scores

    @property
    def n_tests(self) -> Ints:
        """Number of test rows that each row can matter to, shape (n_rows,)."""
        return self.counts.n_tests

    @property
    def support_sizes(self) -> Ints:
        """Rows in the support of each test row, shape (n_tests,)."""
        return self.counts.support_sizes

    @property
    def levels(self) -> TrainingCounts | None:
        """Trainings of the paper's four levels on these games; counted when first asked for, and kept."""
        if self.counts.levels is None and self.games is not None:
            object.__setattr__(self, "counts", replace(self.counts, levels=count_levels(self.games)))
        return self.counts.levels

    @property
    def model(self) -> str:
        """The model, as text."""
        return self.facts.model

    @property
    def score(self) -> str:
        """The score, as text."""
        return self.facts.score

    @property
    def support(self) -> str:
        """The support, as text."""
        return self.facts.support

    @property
    def method(self) -> str:
        """How the values were computed."""
        return self.facts.method

    @property
    def chosen(self) -> str:
        """Which way the method ``"auto"`` took, and why."""
        return self.facts.chosen

    @property
    def is_random(self) -> bool:
        """Whether the model draws random numbers: another seed gives other values."""
        return self.facts.is_random

    @property
    def skill(self) -> Skill | None:
        """How good the model is on the test rows when it is trained on all rows, beside a constant guess.

        None for games of your own, for graphs, and in files of earlier versions.
        """
        return self.facts.known_skill()

    # How sure the values are.

    @property
    def stderr_tests(self) -> Floats | None:
        """How far each value would be off with other test rows: a standard error, shape (n_rows,).

        `√(T · Var_t φ_z(v_t))` over the `T` test rows, those that the row does not matter to included. It is exact for
        up to 64 test rows and in the closed forms of neighbours, and else known to a tenth. None if there is one test
        row, where test rows are not told apart (``"global-mc"``, ``"tmc"``, ``"complementary"``, ``"pivot"``, the
        formulas of `comparators` but those of neighbours, and ``games="train"`` of `value_nodes` without `per_test`),
        and in files of earlier versions.
        """
        return None if self.spread_tests is None else np.sqrt(squares(self.spread_tests))

    @property
    def stderr_seed(self) -> Floats | None:
        """How far each value would be off with other seeds of the model: a standard error, shape (n_rows,).

        Known where `value` was asked for several seeds, over which the values are means; else None.
        """
        return None if self.spread_seed is None else np.sqrt(squares(self.spread_seed))

    def interval(self, level: float = 0.95, *, errors: str = "all") -> tuple[Floats, Floats]:
        """Confidence intervals of the values, from all errors that are known: draws, test rows and seeds.

        An interval is for what the value would be with as many test rows as there are, on average over all the test
        rows that might have been there. With few test rows a row's own differences say little about how far its value
        may be off, so intervals lean on those of the other rows: rows that matter to no test row at all have one, too.

        Parameters
        ----------
        level : float, default=0.95
            Share of the intervals that hold what they are for.
        errors : {"all", "draws"}, default="all"
            ``"draws"`` leaves out test rows and seeds: what the value is for these test rows.

        Returns
        -------
        low, high : arrays of shape (n_rows,)

        Examples
        --------
        >>> import localshapley as ls
        >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
        >>> v = ls.value(X, y, X_test, y_test, model="knn")
        >>> low, high = v.interval()
        >>> int((high < 0).sum()), int((v.values < 0).sum())  # intervals below zero, and values below zero
        (1, 6)
        """
        return interval(self, level, errors)

    def among_worst(self, k: int, level: float = 0.95) -> Ranking:
        """How sure it is which `k` rows are the worst, with all errors that are known.

        Parameters
        ----------
        k : int
        level : float, default=0.95

        Returns
        -------
        Ranked
            Has the `probability` of each row to be among the true `k`, and the `size` of the set of lowest values that
            holds all of them with probability `level`. Where errors of test rows are not known, it says so (`unknown`).

        Examples
        --------
        >>> import localshapley as ls
        >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
        >>> v = ls.value(X, y, X_test, y_test, model="knn")
        >>> worst = v.among_worst(3)
        >>> round(float(worst.probability.sum()), 6), worst.size >= 3
        (3.0, True)
        """
        return ranked(self, k, level, best=False)

    def among_best(self, k: int, level: float = 0.95) -> Ranking:
        """The same for the best rows."""
        return ranked(self, k, level, best=True)

    def below_zero(self, errors: str = "all") -> AnyArray:
        """Which values are below zero by more than their errors of 95 %, shape (n_rows,).

        Parameters
        ----------
        errors : {"all", "draws"}, default="all"
            As in `interval`.
        """
        return beyond_doubt(self, errors)[0]

    def summary(self) -> str:
        """How sure the values are, in a few sentences."""
        return summary(self)

    @property
    def relative_error(self) -> float:
        """Standard errors of all values together, `‖stderr‖ / ‖values‖`."""
        return relative(self.stderr, self.values)

    def over_all_rows(self) -> Valuation:
        """The valuation with a value for every row, where it has only the rows that are in a support."""
        return over_all_rows(self)

    def to_frame(self) -> pd.DataFrame:
        """Values as a table with the index of the user's rows: value, the standard errors that are known, n_tests."""
        import pandas as pd

        index = pd.RangeIndex(len(self.values), name="row") if self.ids is None else self.ids
        stderrs = {name: getattr(self, name) for name in ("stderr", "stderr_tests", "stderr_seed")}
        known = {name: stderr for name, stderr in stderrs.items() if stderr is not None}
        return pd.DataFrame({"value": self.values, **known, "n_tests": self.n_tests}, index=index)

    def to_polars(self) -> pl.DataFrame:
        """The same as a polars DataFrame, with the index as its first column."""
        try:
            import polars as pl
        except ModuleNotFoundError:
            raise LocalShapleyError("to_polars() needs polars: pip install polars.") from None
        return pl.from_pandas(index_as_columns(self.to_frame()))

    def to_dict(self) -> dict[str, Any]:
        """The values and what is known about them, as JSON can hold it; notes have their codes and data.

        Examples
        --------
        >>> import localshapley as ls
        >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
        >>> found = ls.value(X, y, X_test, y_test, model="knn").to_dict()
        >>> found["stopped"]["code"], found["columns"]["n_tests"][:3]
        ('closed-form', [3, 1, 4])
        """
        names = ("unit", "model", "score", "support", "method", "chosen", "stopped", "notes", "relative_error", "among")
        parts = {"cost": self.cost, "skill": self.skill, "record": self.record}
        found = {name: getattr(self, name) for name in names}
        found |= {name: None if part is None else asdict(part) for name, part in parts.items()}
        found |= {"support_sizes": self.support_sizes}
        found |= {"columns": index_as_columns(self.to_frame()).to_dict("list")}
        return plain(found)  # type: ignore[no-any-return]

    def in_order(self, X: Any, y: Any) -> tuple[Any, AnyArray]:
        """Rows and labels in the order of the valuation: by their indexes, else by their contents.

        Rows that were not valued are refused, and changed labels are told in a warning.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_rows, n_features), or None
        y : array, Series or list of shape (n_rows,)
        """
        X, y = rows_and_labels(self, X, y)
        return X, y

    def companions(self, n: int, rows: Ints | None = None) -> list[Ints]:
        """The rows that are most often in the same supports as each of some rows, by default of all.

        Nearest are those that share the largest part of the supports that either of both is in. Needs `per_test`;
        without it rows have no companions.

        Parameters
        ----------
        n : int
            Number of companions; fewer where fewer rows share a support with it.
        rows : int array, optional
            Positions.
        """
        return companions(self, n, np.arange(len(self.values)) if rows is None else rows)

    def top(self, n: int = 10) -> pd.DataFrame:
        """The `n` most valuable rows, best first."""
        check_whole("n", n, least=0)
        return self.to_frame().iloc[by_value(self, best_first=True)[:n]]

    def bottom(self, n: int = 10) -> pd.DataFrame:
        """The `n` least valuable rows, worst first."""
        check_whole("n", n, least=0)
        return self.to_frame().iloc[by_value(self, best_first=False)[:n]]

    @property
    def plot(self) -> Plots:
        """Pictures of the valuation: ``plot.ranking()``, ``plot.distribution()``, ... (needs matplotlib)."""
        from localshapley.valuation.plots import Plots

        return Plots(self)

    def _repr_html_(self) -> str:
        from localshapley.valuation.notebook import to_html

        return to_html(self)

    def save(self, path: str | Path) -> None:
        """Write the valuation to a `.parquet` file; `localshapley.load` reads it back."""
        save(self, path)

    def __repr__(self) -> str:
        best, worst = int(np.argmax(self.values)), int(np.argmin(self.values))
        name = (lambda i: i) if self.ids is None else (lambda i: printable(str(self.ids[i])))
        what, tests = kinds(self.unit)
        sure = in_words(self)
        of_all = "" if self.among is None else f" of {self.among:,} (no other is in a support: worth 0)"
        lines = [
            f"Valuation of {len(self.values):,} {what}{of_all} over {len(self.support_sizes):,} {tests}",
            *([f"  sure     {sure}"] if sure else []),
            f"  model    {self.model}",
            f"  score    {self.score}, summed over the {tests}",
            f"  support  {self.support}: {range_of(self.support_sizes)} {self.unit}s",
            f"  method   {self.method}: {_cost_in_words(self.cost)}",
            *([f"  chosen   {self.chosen}"] if self.chosen else []),
            f"  stopped  {self.stopped}",
            f"  values   sum {self.values.sum():.4g}; best {self.values[best]:.4g} ({self.unit} {name(best)}), "
            f"worst {self.values[worst]:.4g} ({self.unit} {name(worst)}); {int((self.values < 0).sum()):,} below zero",
        ]
        return "\n".join(lines + [f"  note     {note}" for note in self.notes])


def _cost_in_words(cost: Cost) -> str:
    done = f"{cost.trainings:,} training{'s' * (cost.trainings > 1)} in" if cost.trainings else "no training,"
    extra = [f"{n:,} {what}" for n, what in ((cost.stored, "from the store"), (cost.reused, "saved by reuse")) if n]
    return ", ".join([f"{done} {cost.seconds:.2f} s", *extra])


def range_of(sizes: Ints) -> str:
    """Smallest and largest of some sizes, in words."""
    low, high = int(sizes.min(initial=2**62)), int(sizes.max(initial=0))
    return str(high) if low >= high else f"{low} to {high}"


def load(path: str | Path) -> Valuation:
    """Read a valuation that `Valuation.save` wrote.

    A file that is damaged, or holds something impossible, is refused with a `LocalShapleyError`. Nothing is unpickled:
    a file that was made to mislead can give wrong numbers but cannot run code.
    """
    return Valuation(**read(path))
