"""Runs that stop too early because a rare event has not been drawn yet; and what it costs to wait for it.

    python benchmarks/rare_events.py [--runs 600]

Every run values one made-up problem of 1 to 50 games of 6 to 16 players. The score is about 0.99, 0.5 without any
player, and 0 in a rare event: a coalition that holds some players, or none of some, or both, or any one at random.
Events have 0.5 % to 20 % of the Shapley weight of their game. A run fails if its true error is over twice `tol`.
`drawn` stops as soon as the standard errors of what was drawn are small enough; `RelativeError` (the default rule) also
waits until what was not drawn cannot matter. The second table has ordinary problems, with the trainings of both rules.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.models.trainer import Trainer, TrainingOutcome
from localshapley.stopping import Estimate, RelativeError

TOL = 0.1
MIXED = {0.005: (3, 3), 0.01: (2, 3), 0.05: (1, 3), 0.1: (1, 2), 0.2: (1, 1)}
"""Players that an event of about each weight needs, and those that it must not have: `a! b! / (a + b + 1)!`."""


class DrawnError(RelativeError):
    """Stops when the standard errors of what was drawn are small enough."""

    def holds(self, estimate: Estimate) -> bool:
        """Whether they are."""
        return estimate.relative_parts[0] <= self.tol


class RareEvent(Trainer):
    """Games that are nearly certain.

    Parameters
    ----------
    needs, lacks : bool arrays of shape (n_tests, n_players)
        Players that the event of each game needs, and those that it must not have.
    chance : float
        Chance of a random event besides, for each coalition and test row.
    salt : int
        Which events are random, and which noise there is.
    """

    name = "rare event"

    def __init__(self, needs: np.ndarray, lacks: np.ndarray, chance: float, salt: int) -> None:
        self.needs, self.lacks, self.chance = needs, lacks, chance
        self.words = np.random.default_rng(salt).integers(2**63, size=(3, needs.shape[1]), dtype=np.uint64)

    def train(self, coalitions: ls.models.Coalitions) -> TrainingOutcome:
        """The scores."""
        n, sizes = len(coalitions.indptr) - 1, np.diff(coalitions.indptr)
        held = np.zeros((n, self.needs.shape[1]), dtype=bool)
        held[np.repeat(np.arange(n), sizes), coalitions.players] = True
        row, test = np.repeat(np.arange(n), np.diff(coalitions.test_indptr)), coalitions.tests
        event = ~(self.needs[test] & ~held[row]).any(axis=1) & ~(self.lacks[test] & held[row]).any(axis=1)
        event &= self.needs[test].any(axis=1) | self.lacks[test].any(axis=1)
        event |= self._uniform(held, row, test, 0) < self.chance
        scores = np.where(event, 0.0, 0.99) + 0.01 * self._uniform(held, row, test, 1)
        return TrainingOutcome(np.where(sizes[row] == 0, 0.5, scores))

    def _uniform(self, held: np.ndarray, row: np.ndarray, test: np.ndarray, which: int) -> np.ndarray:
        """A number from 0 to 1 for each coalition and test row, always the same one."""
        bits = (held * self.words[which]).sum(axis=1, dtype=np.uint64)[row] + test.astype(np.uint64) * self.words[2, 0]
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        return (bits >> np.uint64(11)) / 2.0**53


def problem(seed: int, n_games: tuple[int, ...] = (1, 1, 2, 5, 50)) -> tuple[list[np.ndarray], RareEvent, int]:
    """Supports, trainer and number of players of a made-up problem."""
    rng = np.random.default_rng(seed)
    n, games, weight = int(rng.choice([6, 8, 10, 12, 16])), int(rng.choice(n_games)), rng.choice(list(MIXED))
    n_players = n if games == 1 else int(n * rng.choice([1.5, 3]))
    kind = rng.choice(["holds", "lacks", "both", "random"])
    some = min(n, round(1 / weight) - 1)
    n_needed, n_lacked = {"holds": (some, 0), "lacks": (0, some), "both": MIXED[weight], "random": (0, 0)}[kind]
    supports = [np.sort(rng.choice(n_players, n, replace=False)) for _ in range(games)]
    needs, lacks = np.zeros((2, games, n_players), dtype=bool)
    for game, support in enumerate(supports):
        players = rng.choice(support, n_needed + n_lacked, replace=False)
        needs[game, players[:n_needed]] = lacks[game, players[n_needed:]] = True
    return supports, RareEvent(needs, lacks, weight if kind == "random" else 0.0, seed), n_players


def true_error(v: ls.Valuation, exact: np.ndarray) -> float:
    """Distance to the exact values, in units of their size."""
    return float(np.linalg.norm(v.values - exact) / max(np.linalg.norm(exact), 0.01))


def ordinary() -> dict[str, tuple[int, int]]:
    """Trainings of both rules on real data, over two seeds."""
    found = {}
    for name in ("iris", "breast_cancer", "wine", "digits"):
        d = ls.datasets.load(name)
        for model in (DecisionTreeClassifier(random_state=0), SVC(), LogisticRegression()):
            for n_tests in (3, 20):
                data = d.X[:150], d.y[:150], d.X_test[:n_tests], d.y_test[:n_tests]
                how = {"model": model, "method": "sample", "support": ls.supports.Nearest(14), "progress": False}
                found[f"{name}, {type(model).__name__}, {n_tests} test rows"] = tuple(
                    sum(ls.value(*data, stop=rule, seed=seed, **how).cost.distinct for seed in (0, 1))
                    for rule in (DrawnError(TOL), RelativeError(TOL))
                )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=600)
    runs = parser.parse_args().runs
    rules = {"drawn": DrawnError(TOL), "RelativeError": RelativeError(TOL)}
    failed, trainings = dict.fromkeys(rules, 0), dict.fromkeys(rules, 0)
    for seed in range(runs):
        supports, trainer, n_players = problem(seed)
        exact = ls.shapley(supports, trainer, n_players, method="exact", progress=False).values
        for name, rule in rules.items():
            v = ls.shapley(supports, trainer, n_players, method="sample", stop=rule, seed=seed, progress=False)
            failed[name] += true_error(v, exact) > 2 * TOL
            trainings[name] += v.cost.distinct
    print(f"{'rare events, ' + str(runs) + ' runs':<44}{'error over 2 tol':>18}{'trainings per run':>20}")
    for name in rules:
        print(f"{name:<44}{failed[name] / runs:>18.1%}{trainings[name] / runs:>20,.0f}")
    print(f"\n{'ordinary games, trainings':<44}{'drawn':>12}{'RelativeError':>16}")
    found = ordinary()
    for name, (before, after) in found.items():
        print(f"{name:<44}{before:>12,}{after:>16,}")
    before, after = np.sum(list(found.values()), axis=0)
    print(f"{'all of them':<44}{before:>12,}{after:>16,}   {after / before - 1:+.1%}")


if __name__ == "__main__":
    main()
