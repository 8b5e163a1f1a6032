"""Small runs of everything give what they gave before: a redesign changes no bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from golden.environment import environment
from golden.runs import NEED_TORCH, RUNS, result_of

pytestmark = pytest.mark.quick
GOLDEN = json.loads((Path(__file__).parent / "golden" / "golden.json").read_text(encoding="utf-8"))
NUMBERS = ("values", "stderr", "per_test", "numbers")
DIGESTS = ("spread", "history")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_gives_what_it_gave(name):
    if name in NEED_TORCH:
        pytest.importorskip("torch")
    expected, found = GOLDEN["runs"][name], json.loads(json.dumps(result_of(name)))
    if environment() == GOLDEN["environment"]:
        for key in expected:
            assert found[key] == expected[key], key
        return
    as_many_trainings = found.get("cost", {}).get("trainings") == expected.get("cost", {}).get("trainings")
    for key in NUMBERS:  # elsewhere the last bits may differ, and with them when a run stops
        if expected.get(key) is not None and as_many_trainings:
            a, b = (np.array([float.fromhex(x) for x in part[key]]) for part in (found, expected))
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * np.abs(b).max(initial=0))
    assert found.get("notes") == expected.get("notes")


def test_every_run_has_a_result():
    assert set(GOLDEN["runs"]) == set(RUNS)
    assert set(RUNS) >= NEED_TORCH
