"""Play random cases: `make fuzz SECONDS=60 SEED=1`, or one of them again with `make fuzz CASE=17`.

Each case calls `value` and compares it with the definition (`oracle.py`) and with itself. It ends as `equal`, as
`refused` (an error of this package), as `tied` (rounding decides, so that there is nothing to compare), or as a
failure: `wrong` values, a `raw` error, or a `warning` that is not this package's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

import localshapley as ls
from fuzz.cases import Case, draw
from fuzz.oracle import TieError, dtypes_of, table, values_of
from localshapley.errors import LocalShapleyError, LocalShapleyWarning

FAILURES = ("wrong", "raw", "warning")
EXACT = ("exact", "auto", "subset-centric", "baseline", "loo")
EFFICIENT = (*EXACT[:-1], "sample", "local-mc")
"""Methods whose values add up to what everyone gains together."""


@dataclass
class Outcome:
    """How a case ended, and in what words."""

    kind: str
    what: str = ""


class WrongError(Exception):
    """Two things differ that should be equal."""


def play(number: int) -> tuple[Case | None, Outcome]:
    """Draw and play a case."""
    case = draw(number)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = compare(case)
        except LocalShapleyError as error:
            outcome = Outcome("refused", str(error))
        except WrongError as error:
            outcome = Outcome("wrong", str(error))
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            outcome = Outcome("raw", f"{type(error).__name__} at {where}: {error}")
    foreign = [one for one in caught if not issubclass(one.category, LocalShapleyWarning)]
    if foreign and outcome.kind not in FAILURES:
        outcome = Outcome("warning", f"{foreign[0].category.__name__}: {foreign[0].message}")
    return case, outcome


def compare(case: Case) -> Outcome:
    """Call `value`, then compare it with the definition and with itself."""
    valued = ls.value(*case.rows, progress=False, **case.options)
    try:
        repr(valued)
        valued.to_frame()
        TWISTS[case.twist](case, valued)
    except LocalShapleyError as error:
        raise WrongError(f"refused after it was valued ({case.twist}): {error}") from error
    method = case.options.get("method", "auto")
    if method not in (*EXACT, *EFFICIENT):
        return Outcome("equal")
    try:
        expected = values_of(case)
    except TieError:
        return Outcome("tied")
    close = tolerance(case) * max(1.0, float(np.abs(expected).max(initial=0)))
    if method in EFFICIENT:
        # A sum has the errors of all test rows: each test row's values add up to the score of everyone.
        equal("their sum is off the definition's", valued.values.sum(), expected.sum(), len(expected) * close)
    if method in EXACT and not valued.stderr.any():
        equal("values differ from the definition's", valued.values, expected.sum(axis=0), close)
        if valued.per_test is not None:
            equal("per_test differs from the definition's", valued.per_test.toarray(), expected, close)
    return Outcome("equal")


def tolerance(case: Case) -> float:
    """How far solvers may be apart: those of scikit-learn compute in float32 where the rows are."""
    return 2e-4 if np.float32 in dtypes_of(case.rows[0]) else 2e-6


def equal(what: str, one: Any, other: Any, close: float = 0.0) -> None:
    """Raise `WrongError` where arrays differ; by more than `close`, where that is given."""
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        raise WrongError(f"{what}: shapes {one.shape} and {other.shape}")
    same = np.array_equal(one, other, equal_nan=True) if not close else bool((np.abs(one - other) <= close).all())
    if not same:
        raise WrongError(f"{what}: {np.round(one, 6).tolist()} and {np.round(other, 6).tolist()}")


# Twists: what a call is compared with


def again(case: Case, **changed: Any) -> ls.Valuation:
    return ls.value(*case.rows, progress=False, **case.options | changed)


def repeat(case: Case, valued: ls.Valuation) -> None:
    second = again(case)
    equal("a second call gives other values", second.values, valued.values)
    equal("a second call gives other errors", second.stderr, valued.stderr)


def store(case: Case, valued: ls.Valuation) -> None:
    """With a store, and from the store."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        for what in ("with a store", "from a store"):
            found = again(case, store=path)
            equal(f"other values {what}", found.values, valued.values)
            equal(f"other errors {what}", found.stderr, valued.stderr)


def saved(case: Case, valued: ls.Valuation) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.parquet"
        valued.save(path)
        loaded = ls.load(path)
    for name in ("values", "stderr", "support_sizes", "n_tests"):
        equal(f"{name} differ after loading", getattr(loaded, name), getattr(valued, name))
    if repr(loaded) != repr(valued):
        raise WrongError(f"another text after loading: {loaded!r} and {valued!r}")


def frame(case: Case, valued: ls.Valuation) -> None:
    """The same numbers as a DataFrame."""
    X, y, X_test, y_test = case.rows
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return
    columns = [f"x{i}" for i in range(X.shape[1])]
    frames = [None if one is None else pd.DataFrame(one, columns=columns) for one in (table(X), X_test)]
    found = ls.value(frames[0], np.ravel(np.asarray(y)), frames[1], y_test, progress=False, **case.options)
    # A note says so where one of the two is trained by scikit-learn's own solver.
    is_alike = X.dtype.itemsize == 8 and found.notes == valued.notes
    close = (1e-9 if is_alike else tolerance(case)) * (1 + np.abs(valued.values).max())
    equal("other values for a DataFrame", found.values, valued.values, close)


def per_test(case: Case, valued: ls.Valuation) -> None:
    """Values to each test row add up to the values."""
    if case.options.get("method", "auto") not in ("auto", "exact", "subset-centric", "baseline"):
        return
    found = again(case, per_test=True)
    close = 1e-9 * (1 + np.abs(valued.values).max())
    equal("other values with per_test", found.values, valued.values, close)
    equal("per_test does not add up", found.per_test.sum(axis=0), valued.values, close)


def n_jobs(case: Case, valued: ls.Valuation) -> None:
    found = again(case, n_jobs=2)
    equal("other values with n_jobs=2", found.values, valued.values)


def plan(case: Case, valued: ls.Valuation) -> None:
    options = {name: value for name, value in case.options.items() if name not in ("per_test",)}
    repr(ls.plan(*case.rows, **options))


TWISTS = {one.__name__: one for one in (repeat, store, saved, frame, per_test, n_jobs, plan)}


# The command


def numbers(first: int, cases: int | None, seconds: float | None) -> Iterator[int]:
    """The numbers of cases, until there are enough or the time is over."""
    end, number = time.monotonic() + (seconds or np.inf), first
    while time.monotonic() < end and (cases is None or number < first + cases):
        yield number
        number += 1


def main() -> int:
    """Play cases and say how they ended; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--cases", type=int, help="stop after this many cases")
    parser.add_argument("--case", type=int, help="play this case alone, and show it")
    parser.add_argument("--refusals", action="store_true", help="list what was refused, too")
    given = parser.parse_args()
    if given.case is not None:
        case, outcome = play(given.case)
        print(f"case {given.case}: {case}\n{outcome.kind}: {outcome.what}")
        return outcome.kind in FAILURES
    # scikit-learn looks up the signatures of its classes for each copy and each text of a model: a tenth of the time.
    BaseEstimator._get_param_names = classmethod(cache(BaseEstimator._get_param_names.__func__))
    cases = given.cases if given.cases or given.seconds else 1000
    kinds, began = Counter[str](), time.process_time()
    for number in numbers(given.seed, cases, given.seconds):
        case, outcome = play(number)
        kinds[outcome.kind] += 1
        if outcome.kind in FAILURES or (given.refusals and outcome.kind == "refused"):
            print(f"case {number}: {outcome.kind}: {outcome.what}\n    {case}", flush=True)
    each = 1000 * (time.process_time() - began) / max(1, kinds.total())
    print(f"{kinds.total()} cases, {each:.0f} ms each: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
    return any(kinds[kind] for kind in FAILURES)


if __name__ == "__main__":
    sys.exit(main())
