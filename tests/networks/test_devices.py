"""Threads of PyTorch."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from localshapley.models import Head, Network
from localshapley.torch.heads import HeadTrainer
from localshapley.torch.network import NetworkTrainer
from tests.networks.test_network import mlp, small_task, some_coalitions

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("kind", [HeadTrainer, NetworkTrainer])
def test_every_thread_that_trains_is_told_to_start_no_other(kind, monkeypatch):
    """What one thread has set for PyTorch does not hold in the others."""
    told, trained = set(), set()
    set_num_threads, grad = torch.set_num_threads, torch.autograd.grad

    def tell(n):
        told.add((threading.get_ident(), n))
        set_num_threads(n)

    def watch(*args, **kwargs):
        trained.add((threading.get_ident(), 1))
        return grad(*args, **kwargs)

    monkeypatch.setattr(torch, "set_num_threads", tell)
    monkeypatch.setattr(torch.autograd, "grad", watch)
    task, model = small_task(), Head(epochs=1) if kind is HeadTrainer else Network(mlp(), epochs=1)
    trainer = kind(model, task, n_jobs=2)
    assert np.isfinite(trainer.evaluate(some_coalitions(task, 600))).all()
    assert trained
    assert trained <= told
