"""Bits of words, against whole numbers of Python."""

from __future__ import annotations

import numpy as np
import pytest

from doors import door
from localshapley.kernels.bits import bits_between, bits_set, lowest_bit


def test_the_lowest_bit():
    rng = np.random.default_rng(11)
    for place in range(64):
        above = int(rng.integers(2**62)) * 4 + 3
        assert door(lowest_bit)(np.uint64((above << place) % 2**64 | 1 << place)) == place


def test_bits_are_counted():
    words = [0, 1, 2**63, 2**64 - 1, *np.random.default_rng(12).integers(2**64, size=100, dtype=np.uint64).tolist()]
    assert [door(bits_set)(np.uint64(word)) for word in words] == [bin(word).count("1") for word in words]


@pytest.mark.parametrize("n", [1, 2, 31, 62, 63, 64])
def test_bits_between_two_places(n):
    for place in range(n):
        assert int(door(bits_between)(place, n)) == sum(1 << i for i in range(place + 1, n))
