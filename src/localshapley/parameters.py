"""What the arguments that functions share mean, said once; `documented` puts it into every docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

SHARED = """
X, X_test : array, DataFrame (pandas or polars), SciPy sparse matrix or list, of shape (n_rows, n_features)
    Training rows, which are valued, and test rows, on which models are scored. `value` and `plan` also take training
    rows that are larger than memory: a Dask array or DataFrame, a pyarrow data set, the path of a Parquet, Feather or
    Arrow file or of a folder of these, or a NumPy memory map.
y, y_test : array, Series or list of shape (n_rows,)
    Labels (text or numbers) for a classifier, numbers for a regressor; the name of a column of `X` where that is a
    Dask DataFrame, a data set or a path. Rows and labels are joined by position; if
    both have an index, the same labels in another order are refused, and other labels are noted.
model : scikit-learn estimator, name or `localshapley.models` object
    What is trained on each coalition of rows: your own model, as it is. Names are ``"knn"``, ``"tree"``,
    ``"forest"``, ``"svm"``, ``"logistic"``, ``"ridge"`` and ``"fixed-forest"``; a regressor if `y` holds fractions.
cv : int, splitter of scikit-learn, pairs (training rows, test rows) or "oob", optional
    In place of test rows: every row is a test row for the rows of the other folds, and is valued by the folds
    that it is not in. All folds are one run, and a coalition that several of them share is trained once. With
    ``"oob"`` and `models.Fixed` every row is judged by the trees whose bag it is not in, and there is one fit.
support : `localshapley.supports` object or "auto", optional
    Which training rows can matter to a test row; by default the family that belongs to the model. With ``"auto"``
    that support grows until the values are nearly global, as in `locality_gap`, or `budget` allows no more: a note
    says what gap remains.
score : str or callable, optional
    ``"confidence"`` (default of classifiers with probabilities), ``"accuracy"`` (of the others),
    ``"margin"``, ``"log_loss"``; ``"squared_error"`` (default of regressors), ``"absolute_error"``; or a
    function `(y_true, prediction) -> float`. More is better: errors are negated.
method : str or `localshapley.methods` object, default="auto"
    ``"auto"`` is exact where that is cheaper than sampling to the target, game by game and size by size, and
    sampled elsewhere. ``"exact"`` trains each distinct subset of all supports once (LSMR), or nothing if the
    model has a closed form; ``"sample"`` draws them (LSMR-A, unbiased, with standard errors). For comparison:
    ``"pivot"`` (the paper's LSMR-A with corrected weights), ``"pivot-printed"`` (as printed, biased),
    ``"subset-centric"`` and ``"baseline"`` (the paper's slower exact ways), ``"local-mc"`` (permutations of each
    support). All rows play for every test row, whatever the support, with ``"global-mc"`` (permutations), ``"tmc"``
    (the same, truncated: biased), ``"complementary"`` (a coalition against its complement), ``"loo"``
    (leave-one-out) and ``"random"``.
budget : int, optional
    Maximum number of trainings. A sampled run never exceeds it, and spends it if no `tol` or `stop` is given; an
    exact one that would need more is refused before it starts.
tol : float, optional
    Stop sampling when the standard errors of all values together, `‖stderr‖ / ‖values‖`, are at most this;
    0.1 if neither `tol`, `stop` nor `budget` is given.
stop : `localshapley.stopping` rule, optional
    Another rule, such as ``stopping.RankStable(top=20)``; rules combine with ``&`` and ``|``.
max_seconds : float, optional
    Stop sampling by this time, counted from the call, to within a twentieth of it or one training: rounds are
    sized to fit into what is left of it. If there is no time for a first estimate on all test rows, some of them
    count, drawn at random, and a warning says how many; if even that takes longer, or `per_test` asks for all of
    them, the run is refused before it starts. With a `store` it trains until then, and the same call goes on.
empty : float, optional
    Score of the empty coalition on every test row. By default every class is equally likely, and a
    regressor predicts the mean of `y`; with `cv`, that of the rows outside the test row's fold.
seed : int, default=0
    The same arguments and seed give the same values, bit for bit.
seeds : int, optional
    For a model that draws random numbers: value with so many seeds, `seed` and those after it, and give the means
    of the values, with their error in `Valuation.stderr_seed`. `budget` and `max_seconds` are shared out evenly. A
    random state that the model was given holds for the first seed; folds that `cv=5` draws differ, too.
n_jobs : int, optional
    Number of training processes; -1 uses every core.
progress : bool or callable, optional
    True shows a bar, False none; by default a bar on a terminal or in a notebook when the run takes over a second,
    and elsewhere a line on standard error now and then when it takes over ten.
    A function is called with trainings done and the total.
owners : array or Series of shape (n_rows,), optional
    Who contributed each training row, in the order of `X`: the owners are valued in place of the rows, each as a
    whole. For the sums of the rows' values see `localshapley.owners.shares`.
per_test : bool, default=False
    Whether to keep the value of each training row to each test row, a sparse matrix; refused if it would not fit
    in memory.
store : path or `localshapley.Store`, optional
    File that keeps what has been trained, such as ``"run.db"``. A run that was killed resumes where it stopped,
    and other runs with this model and score reuse what they share with it. Where training is quicker than
    reading, the store is not used, and a note says so.
on_error : {"raise", "skip"}, default="raise"
    What an error in training does (other than the model's refusal of too few rows): end the run, with everything
    so far in the store, or score the coalition like the empty one, which biases the values and is noted.
rare : {"raise", "drop"}, default="raise"
    What rows of a class with one row do, where `cv` is a number of folds: end the run, as no fold can test what it
    has not learnt, or be left out. Then `valuation.ids` names the rows that were valued; give other functions these
    rows, such as ``y.loc[valuation.ids]``.
on_interrupt : {"raise", "return"}, default="raise"
    What Ctrl-C does to a sampled run: end it, or return the values from the rounds so far, with standard errors.
"""
"""As the docstrings of the functions have them."""

HEADING = "Parameters\n----------\n"
NAMES = re.compile(r"\*?\w+(, \*?\w+)*")


def documented(function: F) -> F:
    """Give a function, or a class, a docstring that says what each of its parameters means, in their order.

    Those that its own docstring explains keep that text; the others are explained as everywhere.

    Examples
    --------
    >>> @documented
    ... def double(n, seed=0):
    ...     '''Double a number.
    ...
    ...     Parameters
    ...     ----------
    ...     n : int
    ...
    ...     Returns
    ...     -------
    ...     int
    ...     '''
    >>> print(double.__doc__)
    Double a number.
    <BLANKLINE>
    Parameters
    ----------
    n : int
    seed : int, default=0
        The same arguments and seed give the same values, bit for bit.
    <BLANKLINE>
    Returns
    -------
    int
    """
    if function.__doc__ is None:  # python -OO
        return function
    doc = inspect.cleandoc(function.__doc__)
    before, heading, rest = doc.partition(HEADING)
    own, gap, after = rest.partition("\n\n")
    if not heading:  # all are explained elsewhere
        before, gap, after = doc.partition("Returns\n")
        gap = f"\n{gap}"
    told = _entries(SHARED) | _entries(own)
    lines = dict.fromkeys(told[name] for name in inspect.signature(function).parameters)  # some share an entry
    function.__doc__ = f"{before}{HEADING}{''.join(lines)}".rstrip("\n") + ("\n" if not heading else "") + gap + after
    return function


def _entries(section: str) -> dict[str, str]:
    """The entries of a section of parameters, by the name of each parameter."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section.strip("\n")):
        names = NAMES.match(entry)
        found |= dict.fromkeys(names[0].split(", "), f"{entry}\n") if names else {}
    return found
