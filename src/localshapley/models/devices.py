"""Where PyTorch computes, and in how many threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from localshapley.inputs.devices import find_device

__all__ = ["find_device", "one_thread_each", "torch_threads"]


@contextmanager
def one_thread_each() -> Iterator[None]:
    """While many models are trained in several threads, PyTorch uses no further ones."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_threads(n_threads: int) -> ThreadPoolExecutor:
    """Threads that each let PyTorch use no further ones; a new thread does not know what others have set."""
    import torch

    return ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
