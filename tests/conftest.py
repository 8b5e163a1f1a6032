"""Settings shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("default")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the larger real data sets; tests that need it are skipped where it is not there."""
    folder = os.environ.get("LOCALSHAPLEY_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LOCALSHAPLEY_DATA does not name a folder with the real data sets")
    return Path(folder)
