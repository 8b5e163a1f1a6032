"""Which device computes: what `device=` means, and whether there is a GPU."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from localshapley.errors import InvalidArgumentError

GPUS = ("/dev/nvidia0", "/dev/dxg", "/dev/kfd")
"""Where Linux shows the GPUs that PyTorch calls CUDA devices: NVIDIA's, those behind Windows, AMD's."""


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
            f"device {device!r} cannot be used ({error}); give 'auto', 'cpu', 'cuda' or 'mps'."
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


def find_gpu() -> Any:
    """The torch device of a CUDA GPU, None if there is none; PyTorch is not imported just to see that."""
    if "torch" not in sys.modules and not (find_spec("torch") and any(Path(gpu).exists() for gpu in GPUS)):
        return None
    found = find_device("auto")
    return found if found.type == "cuda" else None
