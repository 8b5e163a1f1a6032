"""Shapley values of games by pyDVL's samplers, for `estimators_single.py`.

pyDVL 0.10 needs numpy 1, so give it an environment of its own:

    python -m venv pydvl-env
    pydvl-env/bin/pip install pydvl "numpy<2"
    python benchmarks/estimators_single.py --pydvl pydvl-env/bin/python

Antithetic permutations run until they have asked for as many distinct coalitions as the budget allows. VRDS asks for
two per sample, and is given half as many samples. Coalitions that were asked for before cost nothing.
"""

import warnings

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from asking import Ask, serve  # noqa: E402
from joblib import parallel_config  # noqa: E402
from pydvl.utils import Status  # noqa: E402
from pydvl.valuation import (  # noqa: E402
    AntitheticPermutationSampler,
    Dataset,
    NoStopping,
    ShapleyValuation,
    VRDSSampler,
)
from pydvl.valuation.stopping import StoppingCriterion  # noqa: E402
from pydvl.valuation.utility.base import UtilityBase  # noqa: E402


class Asking(UtilityBase):
    """The worth of a coalition, asked for once."""

    def __init__(self, n: int, ask: Ask) -> None:
        self.n, self.ask, self.known = n, ask, {}

    def __call__(self, sample: object) -> float:
        members = [] if sample is None else sample.subset
        mask = np.zeros(self.n, dtype=bool)
        mask[members] = True
        key = mask.tobytes()
        if key not in self.known:
            self.known[key] = float(self.ask(mask)[0])
        return self.known[key]


class Spent(StoppingCriterion):
    """Stops when the budget is spent."""

    def __init__(self, utility: Asking, budget: int) -> None:
        super().__init__()
        self.utility, self.budget = utility, budget

    def _check(self, result: object) -> Status:
        is_spent = len(self.utility.known) >= self.budget - self.utility.n
        self._converged = np.full(len(result.indices), is_spent)
        return Status.Converged if is_spent else Status.Pending

    def completion(self) -> float:
        return len(self.utility.known) / self.budget


def value(n: int, ask: Ask, sampler: object, budget: int | None) -> np.ndarray:
    """Values by a sampler, until the budget is spent or the sampler has no more samples."""
    utility = Asking(n, ask)
    done = NoStopping(sampler) if budget is None else Spent(utility, budget)
    valuation = ShapleyValuation(utility, sampler, done)
    with parallel_config(n_jobs=1):
        valuation.fit(Dataset(np.zeros((n, 1)), np.zeros(n)))
    return valuation.result.sort(key="index").values


def antithetic(n: int, budget: int, seed: int, ask: Ask) -> np.ndarray:
    return value(n, ask, AntitheticPermutationSampler(seed=seed), budget)


def stratified(n: int, budget: int, seed: int, ask: Ask) -> np.ndarray:
    return value(n, ask, VRDSSampler(max(1, budget // (2 * n)), seed=seed), None)


if __name__ == "__main__":
    serve({"pyDVL, antithetic": antithetic, "pyDVL, VRDS": stratified})
