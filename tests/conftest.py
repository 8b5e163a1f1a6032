"""Settings shared by all tests, and one line at the end about what was not run."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# Tests run side by side: one thread each, or the threads of BLAS and PyTorch wait for each other. NumPy reads this when
# it is first imported, which no plugin of pytest does.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("default")

WAYS = {
    "LOCALSHAPLEY_DATA": "the real data sets: set LOCALSHAPLEY_DATA to the folder that holds them",
    "chromium": "a browser: install chromium",
    "playwright": "a browser: install chromium",
    "CUDA": "a GPU: run where PyTorch finds CUDA",
    "torch_geometric": "PyTorch Geometric: pip install torch_geometric",
    "torch": "PyTorch: pip install 'localshapley[torch]'",
    **dict.fromkeys(("xgboost", "lightgbm", "catboost"), "boosting libraries: pip install 'localshapley[boosting]'"),
    "faiss": "faiss: pip install 'localshapley[approximate]'",
    "dask": "Dask: pip install 'localshapley[dask]'",
}
"""What a skipped test needs and how to get it, by a word of its reason."""


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the larger real data sets; tests that need it are skipped where it is not there."""
    folder = os.environ.get("LOCALSHAPLEY_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LOCALSHAPLEY_DATA does not name a folder with the real data sets")
    return Path(folder)


def pytest_runtest_setup(item) -> None:
    """Skip what needs a GPU where there is none."""
    if item.get_closest_marker("gpu"):
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("no CUDA device")


@pytest.fixture
def few_trees(monkeypatch) -> None:
    """Few trees judge the labels: for tests of everything but what the trees say."""
    monkeypatch.setattr("localshapley.audit.label_noise_models.FEW_TREES", 30)


def pytest_terminal_summary(terminalreporter) -> None:
    """Say in one line what was skipped, and how to get it."""
    line = about_skipped([str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])])
    if line:
        terminalreporter.write_line(line)


def about_skipped(reasons: list[str]) -> str:
    """One line about the tests that were skipped for these reasons.

    >>> about_skipped(["no CUDA device", "no CUDA device", "the system has no fork"])
    'Skipped: 2 tests need a GPU: run where PyTorch finds CUDA; 1 for other reasons (pytest -rs).'
    """
    found = Counter(next((way for word, way in WAYS.items() if word in reason), "") for reason in reasons)
    parts = [f"{count} {'test needs' if count == 1 else 'tests need'} {way}" for way, count in found.items() if way]
    parts += [f"{found['']} for other reasons (pytest -rs)"] if found[""] else []
    return f"Skipped: {'; '.join(parts)}." if parts else ""
