"""A cluster without workers: how long it is waited for, and what is said. Time passes only where it is let pass."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.runtime.dask_cluster import await_workers


class Cluster:
    """A backend with a client whose workers come, or which changes its status, at some time."""

    wait_for_workers_timeout = 10
    cluster = None

    def __init__(self, workers_at=float("inf"), statuses=((0.0, "running"),)):
        self.now, self.workers_at, self.statuses = 0.0, workers_at, statuses
        self.client = self

    @property
    def status(self):
        return [status for since, status in self.statuses if since <= self.now][-1]

    def ncores(self):
        if self.status != "running":
            raise AttributeError("'NoneType' object has no attribute 'ncores'")
        return {"tcp://worker": 1} if self.now >= self.workers_at else {}

    def wait(self, patience=60.0):
        def pause(seconds):
            self.now += seconds

        await_workers(self, patience, clock=lambda: self.now, pause=pause)


def test_with_workers_nothing_is_said():
    cluster = Cluster(workers_at=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cluster.wait()
    assert cluster.now == 0


@pytest.mark.parametrize("statuses", [((0.0, "running"),), ((0.0, "connecting"), (20.0, "running"))])
def test_workers_that_come_late_are_waited_for(statuses):
    cluster = Cluster(workers_at=45, statuses=statuses)
    with pytest.warns(ls.LocalShapleyWarning, match=r"no workers; waiting for one, up to 60\.0 s") as said:
        cluster.wait()
    assert len(said) == 1
    assert 45 <= cluster.now < 46


def test_patience_ends():
    cluster = Cluster()
    with (
        pytest.warns(ls.LocalShapleyWarning),
        pytest.raises(ls.TrainingError, match=r"no workers for 30\.0 s; start some"),
    ):
        cluster.wait(30)
    assert 30 <= cluster.now < 31


def test_the_setting_of_joblib_makes_it_longer():
    cluster = Cluster(workers_at=500)
    cluster.wait_for_workers_timeout = 600
    with pytest.warns(ls.LocalShapleyWarning, match=r"up to 10\.0 min"):
        cluster.wait()
    assert 500 <= cluster.now < 501


@pytest.mark.filterwarnings("ignore:the Dask cluster has no workers")
@pytest.mark.parametrize("since", [0.0, 5.0])
def test_a_closed_cluster_is_not_waited_for(since):
    cluster = Cluster(statuses=((-1.0, "connecting"), (since, "closed")))
    with pytest.raises(ls.TrainingError, match="is closed; connect a new client"):
        cluster.wait()
    assert since <= cluster.now < since + 1


def test_nor_is_one_that_the_client_still_believes_in():
    cluster = Cluster()
    cluster.cluster = SimpleNamespace(status=SimpleNamespace(name="closed"))
    with pytest.raises(ls.TrainingError, match="is closed"):
        cluster.wait()


@pytest.mark.parametrize(
    "run",
    [
        lambda: ls.shapley([range(3)], lambda coalition, tests: [0.0] * len(tests)),
        lambda: ls.value(*ls.datasets.load("iris")[:4], model=ls.models.Estimator(DecisionTreeClassifier())),
    ],
    ids=["shapley", "value"],
)
def test_a_run_begins_with_a_look_at_the_cluster(run, monkeypatch):
    cluster = Cluster(statuses=((0.0, "closed"),))
    cluster.data_futures = {}
    monkeypatch.setattr("localshapley.runtime.dask_cluster.get_active_backend", lambda: (cluster, 1))
    with pytest.raises(ls.TrainingError, match="is closed"):
        run()
