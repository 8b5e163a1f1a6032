"""Small runs of everything give what they gave before: a redesign changes no bit.

Where the linear algebra, NumPy or another package computes with other instructions, last bits may differ, and only
they: exact runs keep even these wherever our own kernels make their scores.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from golden.environment import environment
from golden.runs import NEED_TORCH, ROUNDED, RUNS, result_of

pytestmark = pytest.mark.quick
GOLDEN = json.loads((Path(__file__).parent / "golden" / "golden.json").read_text(encoding="utf-8"))
NUMBERS = ("values", "stderr", "per_test", "numbers")
DIGESTED = ("spread", "history")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_gives_what_it_gave(name):
    if name in NEED_TORCH:
        pytest.importorskip("torch")
    expected, found = GOLDEN["runs"][name], json.loads(json.dumps(result_of(name)))
    if environment() == GOLDEN["environment"] or is_exact(name):
        assert found == expected
    else:
        assert_same_up_to_rounding(found, expected)


def is_exact(name):
    """Whether nothing but our own kernels made a run's numbers, without drawing."""
    run = GOLDEN["runs"][name]
    return name not in NEED_TORCH | ROUNDED and "cost" in run and not _numbers(run["stderr"]).any()


def assert_same_up_to_rounding(found, expected):
    """All that is said and counted is the same, and numbers are to nine digits of the largest."""
    assert found.keys() == expected.keys()
    for key, was in expected.items():
        if key in NUMBERS and was is not None:
            largest = np.abs(_numbers(was)).max(initial=0)
            np.testing.assert_allclose(_numbers(found[key]), _numbers(was), rtol=0, atol=1e-9 * largest, err_msg=key)
        elif key in DIGESTED and was is not None:
            for now, before in zip(found[key], was, strict=True):  # digests of single precision, with their sizes
                assert now[1:] == pytest.approx(before[1:], rel=1e-6), key
        else:
            assert found[key] == was, key


def _numbers(texts):
    return np.array([float.fromhex(text) for text in texts])


def test_every_run_has_a_result():
    assert set(GOLDEN["runs"]) == set(RUNS)
    assert set(RUNS) >= NEED_TORCH | ROUNDED
