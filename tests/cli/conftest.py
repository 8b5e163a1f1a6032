"""The command line as a person would use it, with real files, but in this process, which saves the imports."""

from __future__ import annotations

import json
import sys
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from localshapley.cli import checking, main
from localshapley.notes import note_of


class Done(NamedTuple):
    """A command that ended."""

    status: int
    stdout: str
    stderr: str


@pytest.fixture
def command(few_trees, monkeypatch, tmp_path, capsys):
    """Run a command in a folder of its own; what acting is worth is measured only where a test asks for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checking, "MAX_ROWS", 0)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["localshapley", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def answer(command):
    """Run a command that must succeed, and return its one JSON document."""

    def run(*words):
        done = command(*words, "--json")
        assert done.status == 0, done.stderr
        return json.loads(done.stdout, object_hook=_with_notes)

    return run


def _with_notes(found):
    """Notes read as their texts again, which is what most tests look at."""
    return note_of(found) if found.keys() == {"code", "text", "data"} else found


@pytest.fixture(scope="session")
def flowers(tmp_path_factory):
    """Iris as a person has it: names, words, gaps, an owner and three wrong labels; a part set aside."""
    folder = tmp_path_factory.mktemp("flowers")
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    table = pd.DataFrame(X[order], columns=["sepal length", "sepal width", "petal length", "petal width"])
    table["species"] = np.array(["setosa", "versicolor", "virginica"])[y[order]]
    table.insert(0, "plant", [f"p{i:03}" for i in range(150)])
    table["garden"] = np.array(["north", "south", "west"])[np.arange(150) % 3]
    table["shade"] = np.where(np.arange(150) % 4 == 0, "sun", "shade")
    table.loc[5, "petal width"] = np.nan
    table.loc[7, "shade"] = None
    wrong = [3, 20, 41]
    table.loc[wrong, "species"] = ["virginica" if s == "setosa" else "setosa" for s in table.loc[wrong, "species"]]
    table[:100].to_csv(folder / "train.csv", index=False)
    table[100:].to_csv(folder / "test.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def where(flowers):
    """What is valued: the words after the name of a command."""
    test = ["--test", flowers / "test.csv", "--target", "species", "--id", "plant", "--owner", "garden"]
    return [flowers / "train.csv", *test]
