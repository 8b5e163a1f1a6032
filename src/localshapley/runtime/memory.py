"""How much memory there is, and the refusal of what would not fit into it."""

from __future__ import annotations

import os
from pathlib import Path

from localshapley.errors import TooLargeError

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much a container may use, in its two versions."""


LITTLE = 2**20
"""Bytes that are always there."""


def check_memory(what: str, n_bytes: int, advice: str) -> None:
    """Refuse, before it is made, what would take more memory than the machine has.

    >>> check_memory("per_test=True", 2 * 10**17, "use a smaller support")
    Traceback (most recent call last):
    localshapley.errors.TooLargeError: per_test=True would take 200,000,000 GB of memory, and there are ...; use a ...
    """
    if n_bytes < LITTLE:
        return
    there = memory_size()
    if there is not None and n_bytes > there:
        raise TooLargeError(f"{what} would take {_size(n_bytes)} of memory, and there are {_size(there)}; {advice}.")


def memory_size() -> int | None:
    """Bytes of memory that the machine has, or that its container allows; None where the system does not say."""
    try:
        sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, OSError, ValueError):
        return None
    for limit in LIMITS:
        try:
            sizes.append(int(Path(limit).read_text()))
        except (OSError, ValueError):  # not in a container, or without a limit
            continue
    return min(sizes)


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.0f} GB" if n_bytes >= 1e10 else f"{n_bytes / 1e9:.1f} GB"
