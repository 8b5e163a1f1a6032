"""What an experiment has computed is kept, by the contents of code and data, and is not computed again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SOURCES = HERE.parent / "src" / "localshapley"
BESIDE = ("cli", "report", "opendataval.py", "__main__.py")
"""Parts of the package that the pages of `results.py` do not use."""
NEEDS = {"beyond": ("ablation",), "reuse": ("ablation",)}
KEPT = Path("~/.cache/localshapley/results")
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


def fingerprint(name: str, options: list[str]) -> str:
    """Contents of all that a result depends on: package, experiment, data, versions, options."""
    digest = hashlib.sha256()
    for part in (*contents(name), *versions(), *options):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def contents(name: str) -> Iterator[str]:
    """A digest for each file that an experiment reads: sources of the package, its own, and the data."""
    own = [HERE / f"{module}.py" for module in (name, "common", "graph", *NEEDS.get(name, ()))]
    data = Path(os.environ["LOCALSHAPLEY_DATA"]) if os.environ.get("LOCALSHAPLEY_DATA") else None
    sources = [path for path in sorted(SOURCES.rglob("*.py")) if path.relative_to(SOURCES).parts[0] not in BESIDE]
    for path in [*sources, *own, *(sorted(data.rglob("*")) if data else [])]:
        if path.is_file():
            yield f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def versions() -> Iterator[str]:
    """Releases of what computes the numbers."""
    for package in PACKAGES:
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            yield f"{package} none"


def folder_of(name: str, options: list[str], quick: bool = False) -> Path:
    """Where an experiment keeps what it has computed; a new folder if quick."""
    if quick:
        return Path(tempfile.mkdtemp())
    return KEPT.expanduser() / f"{name}-{fingerprint(name, options)[:16]}"


def forget() -> None:
    """Forget what all experiments have kept."""
    shutil.rmtree(KEPT.expanduser(), ignore_errors=True)


def save(path: Path, found: Any, indent: int | None = None) -> None:
    """Write a file that is there as a whole, or not at all."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(found, indent=indent) + "\n", encoding="utf-8")
    unfinished.replace(path)


def kept(path: Path, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Numbers, words and arrays that were computed before, or are computed now and kept; arrays come back as lists."""
    if not path.is_file():
        found = {key: item.tolist() if isinstance(item, np.ndarray) else item for key, item in work().items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path, found)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found
