"""Work on a Dask cluster, with workers that die."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import warnings

import joblib
import pytest
from sklearn.svm import SVC

import localshapley as ls
from engine.runs import run, run_with, same_bits


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("dask.distributed", reason="Dask is an extra")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_a_client_that_only_joblib_knows():  # before the others, whose client is known to all
    distributed = pytest.importorskip("dask.distributed", reason="Dask is an extra")
    one = run()
    with (
        distributed.LocalCluster(n_workers=1, dashboard_address=None, processes=False) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        joblib.parallel_config(backend="dask", client=client),
    ):
        assert same_bits(one, run())


@pytest.mark.slow
class TestDask:
    @pytest.mark.parametrize("settings", [{}, {"method": "sample", "budget": 400}], ids=["exact", "sample"])
    def test_same_bits_as_in_one_process(self, cluster, settings):
        one = run(**settings)
        with joblib.parallel_config(backend="dask"):
            other = run(**settings)
        assert same_bits(one, other)
        assert one.cost.trainings == other.cost.trainings

    def test_compiled_trainers_go_to_the_cluster_too(self, cluster):
        one = run(model=SVC())
        with joblib.parallel_config(backend="dask"):
            other = run(model=SVC())
        assert "compiled" in other.cost.trainer
        assert same_bits(one, other)

    def test_with_a_store(self, cluster, store):
        with joblib.parallel_config(backend="dask"):
            first, again = run(store=store), run(store=store)
        assert again.cost.trainings == 0
        assert same_bits(first, again)

    def test_nothing_is_left_on_the_cluster(self, cluster):
        with joblib.parallel_config(backend="dask"):
            run()
        cluster.sync(asyncio.sleep, 0)  # what is released is forgotten by another thread
        assert not cluster.futures

    @pytest.mark.slow
    def test_a_worker_that_is_killed_changes_nothing(self, cluster):
        one = run(support=ls.supports.Nearest(8))
        pids = list(cluster.run(os.getpid).values())
        killed = threading.Event()

        def kill(done, total):
            if done > 100 and not killed.is_set():
                killed.set()
                os.kill(pids[0], signal.SIGKILL)

        with joblib.parallel_config(backend="dask"):
            other = run_with({"max_batch": 32}, support=ls.supports.Nearest(8), progress=kill)
        assert killed.is_set()
        assert same_bits(one, other)

    @pytest.mark.slow
    def test_workers_that_all_die_at_once_come_back_and_change_nothing(self, cluster):
        one = run()
        killed = threading.Event()

        def kill(done, total):
            if done > 100 and not killed.is_set():
                killed.set()
                for pid in cluster.run(os.getpid).values():
                    os.kill(pid, signal.SIGKILL)

        with joblib.parallel_config(backend="dask"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it may say that it waits
            other = run_with({"max_batch": 16}, progress=kill)
        assert killed.is_set()
        assert same_bits(one, other)

    def test_a_cluster_that_is_closed_ends_the_run_in_a_sentence(self):
        distributed = pytest.importorskip("dask.distributed", reason="Dask is an extra")
        with (
            distributed.LocalCluster(n_workers=1, dashboard_address=None, processes=False) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config(backend="dask"),
        ):

            def close(done, total):
                cluster.close()

            with pytest.raises(ls.TrainingError, match="is closed; connect a new client"):
                run_with({"max_batch": 16}, progress=close)
            with pytest.raises(ls.TrainingError, match="is closed; connect a new client"):
                run()
