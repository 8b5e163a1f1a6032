"""What a list of label errors amounts to: of which class they are, how far to trust it, what they cost the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Ints
from localshapley.audit.base import RowValues
from localshapley.audit.label_noise_models import NoiseScores
from localshapley.audit.noise_rates import may_be_chance
from localshapley.models.skill import Skill

MAX_SHARE = 0.2
"""Caution is advised if more than this share of all rows is probably wrong."""
MAX_CLASS_SHARE = 1 / 3
"""Caution is advised if more than this share of the rows of a class is probably wrong."""
FEW = 10
"""So few rows can all be looked at, wherever their labels come from."""
MAX_CHANCE_SHARE = 0.13
"""Without label-noise models, labels may be outcomes of chance if more than this share of them looks wrong."""
MAX_SHARE_OF_LEAD = 0.5
"""The same, as a share of what the model's accuracy is above that of a constant guess: both must be exceeded."""
MIN_ORDERED_CLASSES = 3
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
    """What a list of label errors amounts to.

    Attributes
    ----------
    n_rows, n_suspects : int
        All rows, and those on the list.
    n_wrong : tuple of float or None
        Estimated number of wrong labels, listed or not, and the ends of its 95 % interval; None where the label-noise
        models can learn nothing, or the table is too small for them.
    by_class : DataFrame or None
        For each label `rows`, `suspects` and `share`, most suspects first; None where numbers take the place of labels.
    cautions : list of str
        Reasons to doubt the list: more than a fifth of all rows, or a third of a class, are probably wrong; labels may
        be outcomes of chance, as those of the rows that the models are surest of hardly differ more often from what is
        predicted than they then would; the models can learn nothing from the columns; or, with values, the model that
        rows were valued with is not better than a constant guess by more than two standard errors. Where values decide,
        rows that do harm and are outvoted by their neighbours count as probably wrong, and labels may be outcomes of
        chance if more than 13 % look wrong, and more than half of what the model's accuracy is above that of the guess.
        Shares of fewer than ten rows are not looked at.
    harm, harm_stderr : float or None
        Sum of the values of the listed rows, and its standard error; at most that error where the valuation did not
        keep how the errors of rows are correlated. The sum is the mean effect of these rows over training sets of all
        sizes. With many other rows they usually do less harm: `audit.worth_mending` measures it. None without values.
    skill : Skill or None
        How good the model that rows were valued with is on test rows; None if that is not known.
    is_regression : bool
        Whether numbers take the place of labels.
    """

    n_rows: int
    n_suspects: int
    n_wrong: tuple[float, float, float] | None
    by_class: pd.DataFrame | None
    cautions: list[str]
    harm: float | None = None
    harm_stderr: float | None = None
    skill: Skill | None = None
    is_regression: bool = False

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


def make_verdict(
    labels: AnyArray,
    order: Ints,
    scores: NoiseScores | None,
    is_wrong: AnyArray,
    values: RowValues | None,
    *,
    regression: bool,
) -> Verdict:
    """Say what a list amounts to.

    Parameters
    ----------
    labels : array of shape (n_rows,)
    order : int array
        The listed rows.
    scores : NoiseScores or None
    is_wrong : bool array of shape (n_rows,)
        Which labels are probably wrong, listed or not; where values decide, those that do harm and are outvoted.
    values : RowValues or None
    regression : bool
    """
    sure = np.flatnonzero(is_wrong)
    n_wrong = None if scores is None else scores.n_wrong
    is_learnt = n_wrong is None or bool(np.isfinite(n_wrong[0]))
    skill = None if values is None else values.skill
    differ = None if scores is None else scores.differ
    harm, harm_stderr = (None, None) if values is None else _sum_of_values(values, order)
    cautions = _cautions(skill, len(labels), len(sure), differ, None if regression else _by_class(labels, sure))
    return Verdict(
        n_rows=len(labels),
        n_suspects=len(order),
        n_wrong=n_wrong if is_learnt else None,
        by_class=None if regression else _by_class(labels, order),
        cautions=[*([] if is_learnt else [NOT_LEARNT]), *cautions],
        harm=harm,
        harm_stderr=harm_stderr,
        skill=skill,
        is_regression=regression,
    )


def _by_class(labels: AnyArray, listed: Ints) -> pd.DataFrame:
    rows = pd.Series(labels).value_counts()
    suspects = pd.Series(labels[listed]).value_counts().reindex(rows.index, fill_value=0)
    table = pd.DataFrame({"rows": rows, "suspects": suspects, "share": suspects / rows}).rename_axis("label")
    return table.sort_values(["suspects", "rows"], ascending=False, kind="stable")


def _sum_of_values(values: RowValues, rows: Ints) -> tuple[float, float]:
    """The sum of the values of some rows, and its standard error."""
    total = float(values.values[rows].sum())
    if values.spread is None:
        return total, float(values.stderr[rows].sum())
    return total, float(np.linalg.norm(values.spread[rows].sum(axis=0, dtype=np.float64)))


def _cautions(
    skill: Skill | None,
    n_rows: int,
    n_wrong: int,
    differ: tuple[float, float, float] | None,
    by_class: pd.DataFrame | None,
) -> Iterator[str]:
    if skill is not None and skill.is_near_chance:
        yield (
            f"the model is no better than a constant guess by more than two standard errors ({skill}). Where little "
            "can be learnt, rows do harm and disagree with their neighbours without being wrong."
        )
    chance = "" if by_class is None else CHANCE + (IN_ORDER if _may_have_an_order(by_class.index) else "")
    if n_wrong > MAX_SHARE * n_rows and n_rows >= MIN_ROWS:
        yield (
            f"{n_wrong:,} of {n_rows:,} rows ({100 * n_wrong / n_rows:.0f} %) are suspected, more than a fifth. "
            "So many are rarely wrong; more often the columns do not tell the labels apart. "
            f"{chance or 'Look at some before you trust the rest.'}"
        )
        return
    if chance and differ is not None and n_wrong > FEW and may_be_chance(*differ):
        yield (
            f"all labels may be right. The label-noise models predict {100 * (1 - differ[0]):.0f} % of them; if labels "
            f"were outcomes of chance, {100 * differ[2]:.0f} % of those that they are surest of would be others than "
            f"predicted, and {100 * differ[1]:.0f} % are. {chance}"
        )
    elif chance and differ is None and skill is not None and _is_large(n_wrong, n_rows, skill):
        yield (
            f"{n_wrong:,} of {n_rows:,} labels ({100 * n_wrong / n_rows:.0f} %) look wrong, which is much "
            f"where the model is right about {100 * skill.model:.0f} % of held-out rows, and a constant guess about "
            f"{100 * skill.guess:.0f} %. {chance}"
        )
    if by_class is not None:
        yield from _caution_of_class(by_class)


def _is_large(n_wrong: int, n_rows: int, skill: Skill) -> bool:
    """Whether more labels look wrong than a model of this accuracy can tell from chance, if it can tell anything."""
    known = skill.score == "accuracy" and not skill.is_near_chance  # else another caution says it
    return (
        n_rows >= MIN_ROWS
        and known
        and n_wrong / n_rows > max(MAX_CHANCE_SHARE, MAX_SHARE_OF_LEAD * (skill.model - skill.guess))
    )


def _may_have_an_order(labels: pd.Index) -> bool:
    """Whether classes are whole numbers, more than two."""
    return labels.dtype.kind in "iu" and len(labels) >= MIN_ORDERED_CLASSES


def _caution_of_class(by_class: pd.DataFrame) -> Iterator[str]:
    large = by_class[(by_class["share"] > MAX_CLASS_SHARE) & (by_class["rows"] >= MIN_ROWS)]
    if len(large):
        label, n, s, share = next(_lines(large.sort_values("share", ascending=False)))
        yield (
            f"{100 * share:.0f} % of the rows labelled {label!r} ({s:,} of {n:,}) are suspected, more than a third. "
            "The model may not recognise this class; its right rows then look wrong, too."
        )


def _lines(table: pd.DataFrame) -> Iterator[tuple[Any, int, int, float]]:
    columns = (table.index.tolist(), table["rows"], table["suspects"], table["share"])
    return zip(*columns, strict=True)
