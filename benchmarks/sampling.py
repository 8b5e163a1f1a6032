"""Cost of drawing, deduplicating, fitting and accumulating, with a trainer that costs nothing.

    python benchmarks/sampling.py [--million]

Prints microseconds per draw beyond the training, for games of 20, 100 and 1,000 players; `--million` draws a million
distinct subsets of games of 100 players and prints the memory that the process took at its peak.
"""

from __future__ import annotations

import argparse
import resource
from time import perf_counter

import numpy as np

import localshapley as ls


class Free:
    """Scores in no time: a smooth function of the sizes."""

    name = "free"

    def evaluate(self, coalitions: ls.models.Coalitions) -> np.ndarray:
        sizes = np.diff(coalitions.indptr)
        return np.repeat(np.sqrt(sizes), np.diff(coalitions.test_indptr)) + 0.1 * np.sin(coalitions.tests)


def games(n: int, n_games: int, n_players: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.choice(n_players, n, replace=False) for _ in range(n_games)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", action="store_true", help="draw a million subsets and print the peak memory")
    million = parser.parse_args().million
    ls.shapley(games(10, 5, 30), Free(), 30, method="sample", budget=500, progress=False)  # compile
    print(f"{'games':<32}{'draws':>12}{'seconds':>10}{'µs per draw':>13}")
    for n, n_games, n_players, budget in ((20, 200, 400, 50_000), (100, 200, 2000, 100_000), (1000, 20, 5000, 20_000)):
        supports = games(n, n_games, n_players)
        for _ in range(2):  # the second time is counted
            started = perf_counter()
            v = ls.shapley(supports, Free(), n_players, method="sample", budget=budget, progress=False)
            seconds = perf_counter() - started
        name = f"{n_games} of {n} players"
        print(f"{name:<32}{v.cost.distinct:>12,}{seconds:>10.2f}{1e6 * seconds / v.cost.distinct:>13.2f}")
    if million:
        started = perf_counter()
        v = ls.shapley(games(100, 200, 2000), Free(), 2000, method="sample", budget=1_000_000, progress=False)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{v.cost.distinct:,} distinct subsets in {perf_counter() - started:.1f} s, peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()
