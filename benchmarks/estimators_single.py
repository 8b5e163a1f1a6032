"""Our estimator beside those of shapiq and pyDVL, on the same local games and with the same number of trainings.

    python benchmarks/estimators_single.py [--shapiq PYTHON] [--pydvl PYTHON] [--quick] [--only NAME] [--sizes 8 14]
                                           [--seeds 40] [--bias] [--alone]

PYTHON is the interpreter of an environment with the peer (peers/shapiq_games.py and peers/pydvl_games.py say how to
make one). Each line is a model, a number of players and a number of trainings: the relative error `‖error‖/‖values‖`
of every estimator, as root mean square over games and seeds, the best of the peers, and the ratio of ours to it (below
1, ours is best).

A game belongs to a test row whose nearest training rows have both classes in balance; for the graph network, to a test
node of a small random graph. Games of up to 14 players have exact values as reference, and so have those of nearest
neighbours, in closed form. For the others it is the mean over many permutations and their reverses, which no estimator
here has a part in. The reference has an error of its own, `reference`, in the same unit: its square, known from the
differences between permutations, is taken from the squared errors.

In the last lines 24 games overlap: ours plays them together, the peers each alone with its share of the trainings;
`--alone` leaves these out. With `--bias` a second line has the error that the mean of many seeds would still have.

Scores are kept in a folder for temporary files, with the references, where the next run finds them.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.models import Coalitions, GCNTrainer
from localshapley.problem.build import build_problem
from localshapley.question import Question
from localshapley.torch.graph_data import read_graph

FOLDER = Path(tempfile.gettempdir()) / "localshapley-games"
SIZES = 8, 14, 20, 40, 100
PER_PLAYER = 10, 50
EXACT = 14
REFERENCE = 1_000_000  # trainings of a game's reference, a fifth of it for graph networks
AT_ONCE = 100_000  # trainings whose coalitions are in memory together
N_OVERLAPPING = 24


@dataclass
class Game:
    """A game whose scores are kept.

    Attributes
    ----------
    n : int
    train : callable
        Scores of lists of players.
    scores : dict
        Known scores, by packed mask.
    closed_form : callable, optional
        Exact values, where there is a formula.
    """

    n: int
    train: Callable[[list[np.ndarray]], np.ndarray]
    scores: dict[bytes, float] = field(default_factory=dict)
    closed_form: Callable[[], np.ndarray] | None = None
    name = "remembered"

    def worth(self, masks: np.ndarray) -> np.ndarray:
        """Scores of coalitions, given as rows of a matrix of members."""
        keys = [row.tobytes() for row in np.packbits(masks, axis=1)]
        new = {key: i for i, key in enumerate(keys) if key not in self.scores}
        if new:
            found = self.train([np.flatnonzero(masks[i]) for i in new.values()])
            self.scores.update(zip(new, found.tolist(), strict=True))
        return np.array([self.scores[key] for key in keys])

    def evaluate(self, coalitions: Coalitions) -> np.ndarray:
        """The same for `ls.shapley`."""
        masks = np.zeros((len(coalitions), self.n), dtype=bool)
        masks[np.repeat(np.arange(len(coalitions)), np.diff(coalitions.indptr)), coalitions.players] = True
        return self.worth(masks)

    def play(self, **how: object) -> np.ndarray:
        """Values by one of our methods."""
        return ls.shapley([np.arange(self.n)], self, self.n, progress=False, **how).values


@dataclass
class Reference:
    """Values to compare with, and the variance of each."""

    values: np.ndarray
    variance: np.ndarray


def reference(game: Game, name: str) -> Reference:
    """Exact values, or those of many permutations."""
    if game.n <= EXACT:
        return Reference(game.play(method="exact"), np.zeros(game.n))
    if name.startswith("KNN"):
        return Reference(game.closed_form(), np.zeros(game.n))
    return by_permutations(game, REFERENCE // (5 if name.startswith("GCN") else 1))


def by_permutations(game: Game, trainings: int, seed: int = 12345) -> Reference:
    """Mean marginal differences over permutations, each with its reverse; the scores are not kept."""
    rng, n = np.random.default_rng(seed), game.n
    total, squares, count = np.zeros(n), np.zeros(n), 0
    nothing = float(game.train([np.array([], dtype=int)])[0])
    while 2 * n * count < trainings:
        some = min(AT_ONCE // (2 * n), trainings // (2 * n) - count + 1)
        orders = rng.permuted(np.tile(np.arange(n), (some, 1)), axis=1)
        gains = np.zeros((some, n))
        for way in (orders, orders[:, ::-1]):
            worth = game.train([np.sort(order[: i + 1]) for order in way for i in range(n)]).reshape(some, n)
            np.put_along_axis(
                gains, way, np.take_along_axis(gains, way, 1) + np.diff(worth, axis=1, prepend=nothing) / 2, axis=1
            )
        total, squares, count = total + gains.sum(axis=0), squares + (gains**2).sum(axis=0), count + some
    mean = total / count
    return Reference(mean, (squares / count - mean**2) / (count - 1))


def of_rows(model: object, score: str) -> Callable[[int, int], list[Game]]:
    """Games of a model on Breast Cancer, with supports of nearest rows."""

    def make(n: int, n_games: int) -> list[Game]:
        data = ls.datasets.load("breast_cancer")
        tests = data.X_test[:100], data.y_test[:100]
        problem = build_problem(
            Question.of_rows(data.X, data.y, *tests, model=model, support=ls.supports.Nearest(n), score=score)
        )
        supports = [problem.graph.support(t) for t in range(100)]
        balance = [abs(np.mean(data.y[s] == data.y[s[0]]) - 0.5) for s in supports]
        chosen = np.argsort(balance, kind="stable")[:n_games]
        games = []
        for t in chosen.tolist():
            one = data.X[supports[t]], data.y[supports[t]], data.X_test[t : t + 1], data.y_test[t : t + 1]

            def closed_form(one: tuple = one) -> np.ndarray:
                about = {"model": model, "support": ls.supports.Everything(), "score": score, "empty": None}
                return ls.value(*one, method="closed-form", progress=False, **about).values

            games.append(Game(n, training(problem.trainer, supports[t], t), closed_form=closed_form))
        return games

    return make


def of_nodes(n: int, n_games: int) -> list[Game]:
    """Games of a graph network: three communities, and a test node with all training nodes as players."""
    games = []
    for seed in range(n_games):
        rng = np.random.default_rng(seed)
        y = np.arange(n + 3) % 3
        near = rng.random((n + 3, n + 3)) < np.where(y[:, None] == y, 6, 2) / n
        X = np.eye(3)[y] + rng.normal(size=(n + 3, 3))
        near[n, :3] = True
        data = read_graph(np.argwhere(np.triu(near | near.T, 1)), X, y, np.arange(n), np.arange(n, n + 3))
        task, _ = data.task(score="confidence", empty=None, seed=0)
        scored = sparse.eye_array(3, format="csr")
        trainer = GCNTrainer(ls.models.GCN(hidden=8), task, data, scored, graph="induced", device="cpu")
        games.append(Game(n, training(trainer, np.arange(n), 0)))
    return games


def training(trainer: object, support: np.ndarray, test: int) -> Callable[[list[np.ndarray]], np.ndarray]:
    """Scores of coalitions of a support on a test row."""

    def train(coalitions: list[np.ndarray]) -> np.ndarray:
        parts = [coalitions[i : i + 4096] for i in range(0, len(coalitions), 4096)]
        found = [
            trainer.evaluate(Coalitions.from_lists([np.sort(support[c]) for c in part], [[test]] * len(part)))
            for part in parts
        ]
        return np.concatenate(found)

    return train


FAMILIES: dict[str, Callable[[int, int], list[Game]]] = {
    "SVM, accuracy": of_rows(SVC(), "accuracy"),
    "tree, accuracy": of_rows(DecisionTreeClassifier(random_state=0), "accuracy"),
    "tree, confidence": of_rows(DecisionTreeClassifier(min_samples_leaf=3, random_state=0), "confidence"),
    "logistic, confidence": of_rows(LogisticRegression(), "confidence"),
    "KNN, confidence": of_rows(KNeighborsClassifier(5), "confidence"),
    "GCN, confidence": of_nodes,
}

OVERLAPPING = {
    "SVM, accuracy": (SVC(), "accuracy"),
    "tree, accuracy": (DecisionTreeClassifier(random_state=0), "accuracy"),
    "logistic, confidence": (LogisticRegression(), "confidence"),
}


class Peer:
    """A process in another environment that estimates values of our games."""

    def __init__(self, python: str, script: str) -> None:
        path = Path(__file__).parent / "peers" / script
        alone = {"OMP_NUM_THREADS": "1", **os.environ}
        self._process = subprocess.Popen(
            [python, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=alone
        )
        self.estimators: list[str] = self._read()

    def _read(self) -> object:
        return json.loads(self._process.stdout.readline())

    def _write(self, what: object) -> None:
        print(json.dumps(what), file=self._process.stdin, flush=True)

    def values(self, estimator: str, game: Game, budget: int, seed: int) -> np.ndarray:
        """Values of a game; not a number where the estimator refuses."""
        self._write({"estimator": estimator, "n": game.n, "budget": budget, "seed": seed})
        while "ask" in (answer := self._read()):
            packed = np.frombuffer(bytes.fromhex("".join(answer["ask"])), dtype=np.uint8)
            masks = np.unpackbits(packed.reshape(len(answer["ask"]), -1), axis=1, count=game.n).astype(bool)
            self._write(game.worth(masks).tolist())
        return np.array(answer.get("values", np.full(game.n, np.nan)))


def kept(name: str, make: Callable[[], list[Game]]) -> list[Game]:
    """Games with the scores of the runs before."""
    games = make()
    for game, scores in zip(games, load(name, []), strict=False):
        game.scores = scores
    return games


def load(name: str, otherwise: object) -> object:
    """What an earlier run kept under a name."""
    path = FOLDER / f"{name.replace(' ', '_')}.pickle"
    return pickle.loads(path.read_bytes()) if path.exists() else otherwise


def keep(name: str, what: object) -> None:
    """Keep it for the next run."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name.replace(' ', '_')}.pickle").write_bytes(pickle.dumps(what))


def compare(name: str, games: list[Game], peers: list[Peer], n_seeds: int, *, with_bias: bool) -> None:
    """Print a line for each budget, and one of the error that the mean of many seeds would still have."""
    n = games[0].n
    budgets = [min(each * n, int(0.8 * 2**n)) for each in PER_PLAYER]
    about = f"{name}, {n}, reference of {len(games)}"
    truths = load(about, None) or [reference(game, name) for game in games]
    keep(about, truths)
    own = sum(float(truth.variance.sum()) for truth in truths)
    size = np.sqrt(sum(float(truth.values @ truth.values) for truth in truths) - own)
    for budget in budgets:
        errors, biases = {}, {}
        for estimator, play in [("ours", None)] + [(e, peer) for peer in peers for e in peer.estimators]:
            squares = systematic = 0.0
            for game, truth in zip(games, truths, strict=True):
                found = np.array(
                    [
                        game.play(method="sample", budget=budget, seed=seed)
                        if play is None
                        else play.values(estimator, game, budget, seed)
                        for seed in range(n_seeds)
                    ]
                )
                squares += np.sum((found - truth.values) ** 2)
                # The mean over seeds is off by chance as well, which is known from how they differ.
                by_chance = found.var(axis=0, ddof=1) / n_seeds if n_seeds > 1 else np.nan
                systematic += np.sum((found.mean(axis=0) - truth.values) ** 2 - by_chance)
            errors[estimator] = np.sqrt(max(squares / n_seeds - own, 0.0)) / size
            biases[estimator] = np.sqrt(max(systematic - own, 0.0)) / size
        line = f"{name} | {n} | {budget:,} | {np.sqrt(own) / size:.3f}"
        show(line, errors)
        if with_bias:
            print(f"| {line}, bias | {' | '.join(f'{bias:.3f}' for bias in biases.values())} | | |", flush=True)


def compare_overlapping(name: str, model: object, score: str, n: int, peers: list[Peer], n_seeds: int) -> None:
    """Print a line for each budget, with the games of test rows that are near each other."""
    data = ls.datasets.load("breast_cancer")
    tests = data.X_test[:100], data.y_test[:100]
    problem = build_problem(
        Question.of_rows(data.X, data.y, *tests, model=model, support=ls.supports.Nearest(n), score=score)
    )
    supports = [problem.graph.support(t) for t in range(100)]
    middle = min(range(100), key=lambda t: abs(np.mean(data.y[supports[t]] == 1) - 0.5))
    chosen = np.argsort(np.linalg.norm(data.X_test[:100] - data.X_test[middle], axis=1))[:N_OVERLAPPING].tolist()
    held = [supports[t] if t in chosen else supports[t][:0] for t in range(100)]
    games = kept(f"{name}, overlapping", lambda: [Game(n, training(problem.trainer, supports[t], t)) for t in chosen])

    def play(**how: object) -> np.ndarray:
        return ls.shapley(held, problem.trainer, len(data.X), progress=False, **how).values

    def alone(peer: Peer, estimator: str, budget: int, seed: int) -> np.ndarray:
        values = np.zeros(len(data.X))
        for test, game in zip(chosen, games, strict=True):
            values[supports[test]] += peer.values(estimator, game, budget, seed)
        return values

    truth = play(method="exact")
    for each in PER_PLAYER:
        budget = each * n * len(chosen)
        found = {"ours": [play(method="sample", budget=budget, seed=seed) for seed in range(n_seeds)]}
        for peer in peers:
            for e in peer.estimators:
                found[e] = [alone(peer, e, each * n, seed) for seed in range(n_seeds)]
        errors = {
            e: np.sqrt(np.mean(np.sum((v - truth) ** 2, axis=1))) / np.linalg.norm(truth) for e, v in found.items()
        }
        show(f"{name}, {N_OVERLAPPING} overlapping games | {n} | {budget:,} | exact", errors)
    keep(f"{name}, overlapping", [game.scores for game in games])


def show(line: str, errors: dict[str, float]) -> None:
    """Print a line: errors, the best peer, and the ratio to it."""
    others = {name: e for name, e in errors.items() if name != "ours" and np.isfinite(e)}
    best = min(others, key=others.get, default="none")
    ratio = f"{errors['ours'] / others[best]:.2f}" if others else ""
    print(f"| {line} | {' | '.join(f'{e:.3f}' for e in errors.values())} | {best} | {ratio} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapiq", metavar="PYTHON")
    parser.add_argument("--pydvl", metavar="PYTHON")
    parser.add_argument("--quick", action="store_true", help="fewer games and seeds, up to 20 players")
    parser.add_argument("--only", metavar="NAME", default="", help="families whose name has this in it")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=None, help="numbers of players; with 14, games that overlap, too"
    )
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--bias", action="store_true", help="also what the mean of many seeds would be off by")
    parser.add_argument("--alone", action="store_true", help="no games that overlap")
    arguments = parser.parse_args()
    peers = [
        Peer(python, script)
        for python, script in ((arguments.shapiq, "shapiq_games.py"), (arguments.pydvl, "pydvl_games.py"))
        if python
    ]
    n_games, n_seeds = (1, arguments.seeds or 2) if arguments.quick else (2, arguments.seeds or 5)
    sizes = arguments.sizes or SIZES[: 3 if arguments.quick else None]
    names = ["ours"] + [e for peer in peers for e in peer.estimators]
    print(f"| game | players | trainings | reference | {' | '.join(names)} | best peer | ours / best |")
    print(f"|---|---:|---:|---:|{'---:|' * len(names)}---|---:|")
    for n in sizes:
        for name, make in FAMILIES.items():
            if arguments.only in name:
                games = kept(f"{name}, {n}", lambda make=make, n=n: make(n, n_games))
                compare(name, games, peers, n_seeds, with_bias=arguments.bias)
                keep(f"{name}, {n}", [game.scores for game in games])
    for name, (model, score) in OVERLAPPING.items():
        if arguments.only in name and EXACT in sizes and not (arguments.quick or arguments.alone):
            compare_overlapping(name, model, score, EXACT, peers, n_seeds)


if __name__ == "__main__":
    main()
