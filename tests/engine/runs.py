"""A run on the Iris data with a model that is never compiled, for tests of where coalitions are trained."""

from __future__ import annotations

import os
import signal

from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.engine.executor import Executor
from localshapley.engine.loop import play
from localshapley.engine.run_store import opened
from playing import pose, read_limits

X, Y, X_TEST, Y_TEST, _ = ls.datasets.load("iris")
X_TEST, Y_TEST = X_TEST[:8], Y_TEST[:8]
SUPPORT = ls.supports.Nearest(7)


class Tree(DecisionTreeClassifier):
    """A tree that is never compiled."""


class MortalTree(DecisionTreeClassifier):
    """A tree that kills its process as often as the folder has files, or always if one says so."""

    def __init__(self, folder="", random_state=0):
        super().__init__(random_state=random_state)
        self.folder = folder

    def fit(self, X, y):
        for name in sorted(os.listdir(self.folder)) if len(y) < len(X_TEST) else []:
            if name != "always":
                try:
                    os.remove(os.path.join(self.folder, name))
                except FileNotFoundError:  # another process was faster, and is the one that dies
                    continue
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


def run(**settings):
    about = {"model": Tree(random_state=0), "support": SUPPORT, "method": "exact", **settings}
    return ls.value(X, Y, X_TEST, Y_TEST, **about)


def run_with(limits, store=None, progress=None, **settings):
    """The same, exact, with limits of the executor."""
    problem = pose(X, Y, X_TEST, Y_TEST, **{"model": Tree(random_state=0), "support": SUPPORT, **settings})
    with opened(store, problem.contents) as known:
        executor = Executor(problem.trainer, known, **limits)
        return play(problem.graph, executor, read_limits("exact", progress=progress))


def same_bits(a, b):
    return (a.values == b.values).all() and (a.stderr == b.stderr).all()
