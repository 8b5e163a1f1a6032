"""What each owner of rows has contributed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from localshapley.arrays import AnyArray, Floats
from localshapley.errors import InvalidArgumentError
from localshapley.valuation import Valuation
from localshapley.valuation.intervals import check_errors
from localshapley.valuation.row_names import column, ids_of


def owners(valuation: Valuation, owner: Any = None, *, errors: str = "all") -> pd.DataFrame:
    """Add up the values of the rows of each owner, with standard errors and shares of the total.

    Values of rows are estimated together and their errors are correlated, so the standard error of a sum is not the
    root of the sum of squares; it is computed from the noise that the valuation kept (`Valuation.spread`, and
    `spread_tests` and `spread_seed` for what other test rows and other seeds would change).

    Parameters
    ----------
    valuation : Valuation
    owner : array, Series or list of shape (n_rows,), optional
        The owner of each row. A Series with the index of the valuation, in whatever order, goes by it. Left out where
        owners were valued as a whole, ``value(owners=...)``.
    errors : {"all", "draws"}, default="all"
        Which errors the standard errors hold: of draws, test rows and seeds, as far as they are known, or of draws.

    Returns
    -------
    DataFrame
        One row for each owner, largest value first: `n_rows` (if `owner` is given), `value`, `stderr`, `share` and
        `share_stderr`. Shares are per cent of the sum of all values and add up to 100; an owner whose rows hurt has a
        negative share. Where the sum of all values is not positive there is nothing to share, and both columns are
        NaN; `share_stderr` alone is NaN where it is not known how errors go together (``"global-mc"`` and the like).

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> v = ls.value(X, y, X_test, y_test, model="knn")
    >>> ls.tasks.owners(v, ["north"] * 60 + ["south"] * 45)["share"].round().tolist()
    [53.0, 47.0]
    """
    check_errors(errors)
    names: Any = ids_of(valuation)
    if owner is not None:
        group, names = pd.factorize(column("owner", owner, valuation))
    elif valuation.unit == "owner":
        group = np.arange(len(names))
    else:
        raise InvalidArgumentError("owner is missing; give the owner of each row, as rows were valued and not owners.")
    values = _sums(valuation.values[:, None], group, len(names))[:, 0]
    total = values.sum()
    scale = 100 / total if total > 0 else np.nan
    if owner is None and _lacks_noise(valuation):
        stderr, share_stderr = valuation.stderr, np.full(len(values), np.nan)
    else:
        noise = _sums(_noise(valuation, errors), group, len(names))
        stderr = np.linalg.norm(noise, axis=1)
        share_stderr = np.linalg.norm(_noise_of_shares(values, noise, scale), axis=1)
    table = pd.DataFrame(
        {
            "n_rows": np.bincount(group),
            "value": values,
            "stderr": stderr,
            "share": scale * values,
            "share_stderr": share_stderr,
        },
        index=pd.Index(names, name="owner"),
    )
    table = table if owner is not None else table.drop(columns="n_rows")
    return table.sort_values("value", ascending=False, kind="stable")


def _lacks_noise(valuation: Valuation) -> bool:
    """Whether values have errors of which it is not known how they go together."""
    return valuation.spread is None and bool(valuation.stderr.any())


def _noise(valuation: Valuation, errors: str) -> Floats:
    """Noise vectors of the rows: the covariance of two estimates is the product of theirs."""
    known = [valuation.spread, *((valuation.spread_tests, valuation.spread_seed) if errors == "all" else ())]
    if _lacks_noise(valuation):
        raise InvalidArgumentError(
            "valuation has standard errors but not the covariances that sums over rows need (its spread is None); "
            'make it with value(..., method="auto") or method="sample".'
        )
    none = np.zeros((len(valuation.values), 1))
    return np.hstack([none, *(columns.astype(np.float64) for columns in known if columns is not None)])


def _sums(rows: Floats, group: AnyArray, n_groups: int) -> Floats:
    out = np.zeros((n_groups, rows.shape[1]))
    np.add.at(out, group, rows)
    return out


def _noise_of_shares(values: Floats, noise: Floats, scale: float) -> Floats:
    """Noise of `scale · values`, where `scale` is 100 over the sum: to first order in the noise of both."""
    share = values / values.sum() if np.isfinite(scale) else values
    moved: Floats = scale * (noise - share[:, None] * noise.sum(axis=0))
    return moved
