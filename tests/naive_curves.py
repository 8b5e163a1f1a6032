"""A curve over the scores of a game's surrogate, one score at a time: the twin of `kernels/link_curves.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Curve:
    """What is added to a score, as a function of it and of the size, which is on a scale from −1 to 1."""

    middle: float
    unit: float
    height: np.ndarray

    def columns(self, scores, s):
        """The score on a scale from −1 to 1, two curves of it and 1, each times powers of the size."""
        x = (scores - self.middle) / self.unit
        curves = x, 2 * x / np.hypot(1, 2 * x), 6 * x / np.hypot(1, 6 * x), np.ones_like(x)
        return np.array([curve * s**power for curve in curves for power in range(3)])

    def at(self, scores, s):
        """What is added."""
        return self.height.ravel() @ self.columns(scores, s)

    def along_orders(self, effects, middle, position, orders):
        """Shapley values as means along orders and back, and their variances, which the straight part does not have."""
        n = len(effects)
        centred = effects - effects.mean(axis=0)
        straight = Curve(self.middle, self.unit, self.height * np.array([1, 0, 0, 0])[:, None])
        bends = Curve(self.middle, self.unit, self.height * np.array([0, 1, 1, 0])[:, None])

        def score(members, curve):
            k = len(members)
            if k in (0, n):
                return 0.0
            s, (effect, slope) = position[k - 1], centred[list(members)].sum(axis=0)
            return curve.at(middle[k - 1] + effect + s * slope, s) - curve.at(middle[k - 1], s)

        slopes = [straight.at(1.0, s) - straight.at(0.0, s) for s in position]
        exact = centred @ [np.mean(slopes), np.mean(slopes * position)]
        gains = np.zeros((len(orders), n))
        for gain, order in zip(gains, orders, strict=True):
            for way in (order, order[::-1]):
                for j, z in enumerate(way):
                    gain[z] += (score(way[: j + 1], bends) - score(way[:j], bends)) / 2
        return exact + gains.mean(axis=0), gains.var(axis=0) / (len(orders) - 1)
