"""What would not fit in memory is refused with its size, before it starts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import localshapley as ls
from localshapley.runtime import memory

N_ROWS, N_TESTS = 2_000_000, 20_000
RNG = np.random.default_rng(0)
X, X_TEST = RNG.random((N_ROWS, 1)), RNG.random((N_TESTS, 1))
DATA = X, (X[:, 0] > 0.5).astype(int), X_TEST, (X_TEST[:, 0] > 0.5).astype(int)
PER_TEST = r"per_test=True on 4\.0e10 pairs of rows would take 800 GB of memory, and there are 16 GB; leave it out"


@pytest.fixture(autouse=True)
def sixteen(monkeypatch):
    """A machine with 16 GB."""
    monkeypatch.setattr(memory, "memory_size", lambda: 16 * 10**9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "settings", "text"),
    [
        (ls.value, {"per_test": True}, PER_TEST),
        (ls.value, {"per_test": True, "method": "sample"}, PER_TEST),
        (ls.plan, {"per_test": True}, PER_TEST),
        (ls.value, {"support": ls.supports.Nearest(10**6)}, "1000000 nearest rows would take 320 GB of memory"),
        (ls.value, {"support": ls.supports.Radius(2.0)}, "supports within 2 would take 320 GB of memory"),
        (ls.value, {"support": ls.supports.Random(10**6)}, r"Random\(n=1000000\) would take 80 GB of memory"),
    ],
)
def test_two_million_rows_and_twenty_thousand_test_rows(call, settings, text):
    with pytest.raises(ls.TooLargeError, match=text):
        call(*DATA, **{"model": "knn", "support": ls.supports.Everything(), **settings})


def test_the_closed_form_of_too_many_pairs():
    half = tuple(part[: len(part) // 4] for part in DATA)
    model = KNeighborsClassifier(1)
    with pytest.raises(ls.TooLargeError, match=r"the closed form on 2\.5e9 pairs of rows would take 70 GB of memory"):
        ls.value(*half, model=model, support=ls.supports.Everything(), method="closed-form")


def test_what_fits_is_not_refused(monkeypatch):
    few = tuple(part[:30] for part in DATA)
    settings = {"model": "tree", "support": ls.supports.Everything(), "method": "loo"}
    assert ls.value(*few, **settings).n_tests.tolist() == [30] * 30
    small = {"model": "knn", "support": ls.supports.Nearest(4), "per_test": True}
    expected = ls.value(*few, **small).per_test.toarray()
    monkeypatch.setattr(memory, "memory_size", lambda: None)  # a system that does not say
    assert (ls.value(*few, **small).per_test.toarray() == expected).all()


def test_the_memory_of_the_machine_is_that_of_its_container_where_there_is_one(monkeypatch, tmp_path):
    monkeypatch.undo()
    whole = memory.memory_size()
    assert whole is None or whole > 10**8
    (tmp_path / "memory.max").write_text("123456789\n")
    (tmp_path / "other").write_text("max\n")
    monkeypatch.setattr(memory, "LIMITS", (str(tmp_path / "memory.max"), str(tmp_path / "other"), "/not/there"))
    assert whole is None or memory.memory_size() == 123456789
