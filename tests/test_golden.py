"""Small runs of everything give what they gave before: a redesign changes no bit.

On another processor the linear algebra, NumPy, PyTorch and the compiler use other instructions. Last bits may differ
then, and only they: exact runs keep even these wherever our own kernels add up in one order.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from golden.environment import environment
from golden.runs import NEED_TORCH, REASSOCIATED, ROUNDED, RUNS, result_of

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
        # float32 of PyTorch, through some epochs of training: 3e-6 between processors with and without AVX-512
        assert_same_up_to_rounding(found, expected, 2e-5 if name in NEED_TORCH else 1e-9)


def is_exact(name):
    """Whether nothing but our own kernels made a run's numbers, without drawing, and in one order of sums."""
    run = GOLDEN["runs"][name]
    return name not in NEED_TORCH | ROUNDED | REASSOCIATED and "cost" in run and not _numbers(run["stderr"]).any()


def assert_same_up_to_rounding(found, expected, close):
    """All that is said and counted is the same, and numbers are as `close` as a share of the largest."""
    assert found.keys() == expected.keys()
    for key, was in expected.items():
        if key in NUMBERS and was is not None:
            largest = np.abs(_numbers(was)).max(initial=0)
            np.testing.assert_allclose(_numbers(found[key]), _numbers(was), rtol=0, atol=close * largest, err_msg=key)
        elif key in DIGESTED and was is not None:
            for now, before in zip(found[key], was, strict=True):  # digests of single precision, with their sizes
                assert now[1:] == pytest.approx(before[1:], rel=max(1e-6, close)), key
        else:
            assert found[key] == was, key


def _numbers(texts):
    return np.array([float.fromhex(text) for text in texts])


def test_every_run_has_a_result():
    assert set(GOLDEN["runs"]) == set(RUNS)
    assert set(RUNS) >= NEED_TORCH | ROUNDED | REASSOCIATED
