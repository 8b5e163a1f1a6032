"""What a list of suspects amounts to: of which class they are, how far to trust it, what they cost the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray
from localshapley.audit.label_noise_models import may_be_chance
from localshapley.data.rows import are_amounts
from localshapley.scoring import SCORES
from localshapley.valuation import Skill, Valuation
from localshapley.valuation.intervals import beyond_doubt
from localshapley.valuation.row_names import check_valuation, column, ids_of

MANY = 0.2
"""If more than this share of all rows is suspected, caution is advised,"""
MANY_OF_CLASS = 1 / 3
"""or more than this share of the rows of a class."""
FEW = 10
"""So few suspects can all be looked at, wherever their labels come from."""
LARGE = 0.13
"""Without witnesses, labels may be outcomes of chance if more than this share look wrong,"""
BESIDE_SKILL = 0.5
"""and more than so many times the share that the model predicts better than the guess."""
MANY_NUMBERS = 3
"""Whole numbers that are as many classes at least may have an order."""
MIN_ROWS = 10
"""Shares of fewer rows say nothing."""
CHANCE = (
    "Labels that are outcomes of chance (bought or not, churn, ratings) cannot be told from wrong ones; look at a few "
    "before you act on many."
)
IN_ORDER = (
    " If these classes are numbers whose order counts, such as ratings, predict them as numbers: with a regressor (on "
    "the command line, --task regression)."
)
NOT_LEARNT = (
    "neither a forest nor a support vector machine can tell the labels from the columns better than by how frequent "
    "each is, so that nothing is known about which are wrong."
)
MAX_CLASSES = 5
"""Number of classes that a sentence names."""


@dataclass(frozen=True, repr=False, eq=False)
class Verdict:
    """What suspects amount to.

    Attributes
    ----------
    n_rows, n_suspects : int
    n_wrong : tuple of float or None
        Estimated number of wrong labels, listed or not, and the ends of its 95 % interval; None without
        witnesses (see `suspects`), or where they can learn nothing.
    by_class : DataFrame or None
        For each label `rows`, `suspects` and `share`, most suspects first; None for a regressor, or without labels.
    harm, harm_stderr : float
        Sum of the suspects' values, and its standard error; at most that error where the valuation did not keep how the
        errors of rows are correlated. The sum is the mean effect of these rows over training sets of all sizes. With
        many other rows they usually do less harm: `tasks.mending` measures it.
    n_tests : int
        Number of test rows that values are summed over.
    skill : Skill or None
        How good the model is on test rows; None if the valuation does not say.
    cautions : list of str
        Reasons to doubt the list: the model is not better than a constant guess by more than two standard errors, or
        more than a fifth of all rows, or a third of a class, are probably wrong (without witnesses: do harm beyond
        sampling error and are outvoted by their neighbours), or labels may be outcomes of chance: the labels of the
        rows that the witnesses are surest of hardly differ more often from what they predict than they then would
        (without witnesses: more than 13 % look wrong, and more than half of what the model's accuracy is above that of
        the guess), or the witnesses can learn nothing from the columns. Shares of fewer than ten rows are not looked
        at.
    """

    n_rows: int
    n_suspects: int
    n_wrong: tuple[float, float, float] | None
    by_class: pd.DataFrame | None
    harm: float
    harm_stderr: float
    n_tests: int
    skill: Skill | None
    cautions: list[str]

    @property
    def classes(self) -> str:
        """The suspects by class, in words."""
        if self.by_class is None or not self.n_suspects:
            return ""
        some = self.by_class[self.by_class["suspects"] > 0]
        words = [
            f"{s:,} of {n:,} labelled {label!r} ({100 * share:.0f} %)"
            for label, n, s, share in _lines(some[:MAX_CLASSES])
        ]
        return ", ".join(words) + (f", and {len(some) - MAX_CLASSES} more classes" if len(some) > MAX_CLASSES else "")

    @property
    def number(self) -> str:
        """How many labels look wrong, in words; empty if it is not known."""
        if self.n_wrong is None:
            return ""
        about, low, high = (round(number) for number in self.n_wrong)
        return f"about {about:,} ({low:,} to {high:,}) of {self.n_rows:,} labels look wrong"

    def __repr__(self) -> str:
        share = self.n_suspects / self.n_rows
        lines = [self.number] if self.number else []
        lines += [f"{self.n_suspects:,} of {self.n_rows:,} rows are suspected ({100 * share:.0f} %)"]
        lines += [f"  by class  {self.classes}"] if self.classes else []
        lines += [f"  model     {self.skill}"] if self.skill is not None else []
        return "\n".join(lines + [f"  caution   {caution}" for caution in self.cautions])


def verdict(valuation: Valuation, y: Any, found: pd.DataFrame) -> Verdict:
    """Say what suspects amount to: of which class they are, how good the model is, and when to be careful.

    Parameters
    ----------
    valuation : Valuation
    y : array, Series or list of shape (n_rows,), or None
        Labels, or numbers, that the rows were valued with; without them suspects are not counted by class.
    found : DataFrame
        From `suspects`.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> y[:9] = (y[:9] + 1) % 3
    >>> v = ls.value(X, y, X_test, y_test, model="knn")
    >>> ls.tasks.verdict(v, y, ls.tasks.suspects(v, y, X=X))
    about 13 (4 to 30) of 105 labels look wrong
    10 of 105 rows are suspected (10 %)
      by class  4 of 36 labelled 0 (11 %), 3 of 36 labelled 1 (8 %), 3 of 33 labelled 2 (9 %)
      model     accuracy 0.956 on 45 test rows; always predicting '0' gives 0.333
    """
    check_valuation(valuation)
    n_rows, n_wrong = len(valuation.values), found.attrs.get("n_wrong")
    if n_wrong is None:
        agrees = found["agreement"] >= 0.5 if "agreement" in found else np.zeros(len(found), dtype=bool)
        sure = found[_does_harm(valuation, found) & ~agrees]
    else:
        sure = found[found["p_wrong"] > 0.5]
    n_sure = found.attrs.get("n_suspects", len(sure))
    is_learnt = n_wrong is None or np.isfinite(n_wrong[0])
    labels = None if y is None else column("y", y, valuation)
    if labels is not None and is_regression(valuation, labels):
        labels = None
    sure_of_class = None if labels is None else _by_class(labels, sure)
    return Verdict(
        n_rows=n_rows,
        n_suspects=len(found),
        n_wrong=n_wrong if is_learnt else None,
        by_class=None if labels is None else _by_class(labels, found),
        harm=float(found["value"].sum()),
        harm_stderr=_stderr_of_sum(valuation, found),
        n_tests=len(valuation.support_sizes),
        skill=valuation.skill,
        cautions=[
            *([] if is_learnt else [NOT_LEARNT]),
            *_cautions(valuation.skill, n_rows, n_sure, found.attrs.get("differ"), sure_of_class),
        ],
    )


def _does_harm(valuation: Valuation, found: pd.DataFrame) -> AnyArray:
    """Whether the values of the suspects are below zero beyond doubt."""
    ids = ids_of(valuation)
    if not ids.is_unique:
        return (found["value"] < 0).to_numpy()
    return beyond_doubt(valuation)[0][ids.get_indexer(found.index)]


def is_regression(valuation: Valuation, labels: AnyArray) -> bool:
    """Whether the rows carry numbers: by the score, or by the labels if the score is the user's own."""
    if valuation.score in SCORES:
        return SCORES[valuation.score].task == "regressor"
    return are_amounts(labels)


def _by_class(labels: AnyArray, found: pd.DataFrame) -> pd.DataFrame:
    rows = pd.Series(labels).value_counts()
    suspects = found["label"].value_counts().reindex(rows.index, fill_value=0)
    table = pd.DataFrame({"rows": rows, "suspects": suspects, "share": suspects / rows}).rename_axis("label")
    return table.sort_values(["suspects", "rows"], ascending=False, kind="stable")


def _stderr_of_sum(valuation: Valuation, found: pd.DataFrame) -> float:
    """Standard error of the sum of the values of the suspects."""
    ids = ids_of(valuation)
    if valuation.spread is None or not ids.is_unique:
        return float(found["stderr"].sum())
    noise = valuation.spread[ids.get_indexer(found.index)].sum(axis=0, dtype=np.float64)
    return float(np.linalg.norm(noise))


def _cautions(
    skill: Skill | None,
    n_rows: int,
    n_suspects: int,
    differ: tuple[float, float, float] | None,
    by_class: pd.DataFrame | None,
) -> Iterator[str]:
    if skill is not None and skill.is_near_chance:
        yield (
            f"the model is no better than a constant guess by more than two standard errors ({skill}). Where little "
            "can be learnt, rows do harm and disagree with their neighbours without being wrong."
        )
    chance = "" if by_class is None else CHANCE + (IN_ORDER if _may_have_an_order(by_class.index) else "")
    if n_suspects > MANY * n_rows and n_rows >= MIN_ROWS:
        yield (
            f"{n_suspects:,} of {n_rows:,} rows ({100 * n_suspects / n_rows:.0f} %) are suspected, more than a fifth. "
            "So many are rarely wrong; more often the columns do not tell the labels apart. "
            f"{chance or 'Look at some before you trust the rest.'}"
        )
        return
    if chance and differ is not None and n_suspects > FEW and may_be_chance(*differ):
        yield (
            f"all labels may be right. The witnesses predict {100 * (1 - differ[0]):.0f} % of them; if labels were "
            f"outcomes of chance, {100 * differ[2]:.0f} % of those that the witnesses are surest of would be others "
            f"than predicted, and {100 * differ[1]:.0f} % are. {chance}"
        )
    elif chance and differ is None and skill is not None and _is_large(n_suspects, n_rows, skill):
        yield (
            f"{n_suspects:,} of {n_rows:,} labels ({100 * n_suspects / n_rows:.0f} %) look wrong, which is much "
            f"where the model is right about {100 * skill.model:.0f} % of held-out rows, and a constant guess about "
            f"{100 * skill.guess:.0f} %. {chance}"
        )
    if by_class is not None:
        yield from _caution_of_class(by_class)


def _is_large(n_suspects: int, n_rows: int, skill: Skill) -> bool:
    """Whether more labels look wrong than a model of this accuracy can tell from chance, if it can tell anything."""
    known = skill.score == "accuracy" and not skill.is_near_chance  # else another caution says it
    return n_rows >= MIN_ROWS and known and n_suspects / n_rows > max(LARGE, BESIDE_SKILL * (skill.model - skill.guess))


def _may_have_an_order(labels: pd.Index) -> bool:
    """Whether classes are whole numbers, more than two."""
    return labels.dtype.kind in "iu" and len(labels) >= MANY_NUMBERS


def _caution_of_class(by_class: pd.DataFrame) -> Iterator[str]:
    large = by_class[(by_class["share"] > MANY_OF_CLASS) & (by_class["rows"] >= MIN_ROWS)]
    if len(large):
        label, n, s, share = next(_lines(large.sort_values("share", ascending=False)))
        yield (
            f"{100 * share:.0f} % of the rows labelled {label!r} ({s:,} of {n:,}) are suspected, more than a third. "
            "The model may not recognise this class; its right rows then look wrong, too."
        )


def _lines(table: pd.DataFrame) -> Iterator[tuple[Any, int, int, float]]:
    columns = (table.index.tolist(), table["rows"], table["suspects"], table["share"])
    return zip(*columns, strict=True)
