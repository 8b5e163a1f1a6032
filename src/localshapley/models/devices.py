"""Where PyTorch computes, and in how many threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from localshapley.errors import InvalidArgumentError


def find_device(device: Any) -> Any:
    """The torch device behind a `device` argument; ``"auto"`` is the GPU if there is one."""
    try:
        import torch
    except ImportError:
        raise InvalidArgumentError("this needs PyTorch: pip install 'localshapley[torch]'.") from None
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InvalidArgumentError(
            f"device {device!r} cannot be used ({error}); give 'auto', 'cpu' or 'cuda'."
        ) from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise InvalidArgumentError(
            f"device={device!r} was asked for, but PyTorch finds no CUDA device here; use 'cpu' or 'auto'."
        )
    try:
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise InvalidArgumentError(f"device {device!r} cannot be used ({error}); use 'cpu' or 'auto'.") from error
    return found


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
