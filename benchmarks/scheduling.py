"""Cost of enumerating, pivoting and accumulating, with a trainer that costs nothing.

    python benchmarks/scheduling.py

Prints nanoseconds per (subset, game) pair on supports of 16 rows with much, some and little overlap. The trainer
reads ready-made scores in one call per batch, so that what is left is the library's own work.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

import localshapley as ls


class Free:
    """Scores that are there already."""

    name = "free"

    def __init__(self) -> None:
        self.scores = np.random.default_rng(0).random(1 << 20)

    def evaluate(self, coalitions: ls.models.Coalitions) -> np.ndarray:
        return self.scores[: len(coalitions.tests)]


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'games of 16 players':<32}{'subsets':>12}{'pairs':>12}{'seconds':>10}{'ns per pair':>13}")
    for name, n_players in (("out of 24 (tight)", 24), ("out of 60", 60), ("out of 1,000 (loose)", 1000)):
        supports = [rng.choice(n_players, 16, replace=False) for _ in range(40)]
        ls.shapley(supports[:2], Free(), n_players, progress=False)  # compile
        started = perf_counter()
        cost = ls.shapley(supports, Free(), n_players, progress=False).cost
        seconds = perf_counter() - started
        print(f"{name:<32}{cost.trainings:>12,}{cost.draws:>12,}{seconds:>10.3f}{1e9 * seconds / cost.draws:>13.0f}")


if __name__ == "__main__":
    main()
