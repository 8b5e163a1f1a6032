from __future__ import annotations

import pytest

import localshapley as ls


@pytest.fixture
def store(tmp_path):
    """A store that is used however quick the trainings are."""
    with ls.Store(tmp_path / "run.db", fastest=0) as file:
        yield file
