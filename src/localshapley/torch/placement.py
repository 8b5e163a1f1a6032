"""Where PyTorch computes, and in how many threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

from localshapley.runtime.devices import find_device
from localshapley.runtime.process_settings import SharedSetting

__all__ = ["find_device", "one_thread_each", "torch_threads"]


def one_thread_each() -> AbstractContextManager[None]:
    """While many models are trained in several threads, PyTorch uses no further ones."""
    return _one_thread_each


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


_one_thread_each = SharedSetting(_one_thread)


def torch_threads(n_threads: int) -> ThreadPoolExecutor:
    """Threads that each let PyTorch use no further ones; a new thread does not know what others have set."""
    import torch

    return ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
