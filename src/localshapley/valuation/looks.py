"""What is kept of the looks at a sampled run."""

from __future__ import annotations

import numpy as np

from localshapley.arrays import singles
from localshapley.stopping import Look
from localshapley.valuation.parts import History

MAX_LOOKS = 32
"""Maximum number of rounds kept as the history of a run."""
MAX_HISTORY = 2**23
"""Maximum size of a history, in numbers; a larger one is not kept."""


class Looks:
    """The looks of a run, thinned out when there are many."""

    def __init__(self) -> None:
        self._kept: list[Look] = []

    @property
    def last(self) -> Look | None:
        """The last look, if there was one."""
        return self._kept[-1] if self._kept else None

    def add(self, look: Look) -> Look:
        """Keep a look."""
        self._kept = [*(self._kept[1::2] if len(self._kept) >= MAX_LOOKS else self._kept), look]
        return look

    def history(self) -> History | None:
        """What is kept of them in a result."""
        if not self._kept or len(self._kept) * len(self._kept[0].values) > MAX_HISTORY:
            return None
        return History(
            np.array([look.trainings for look in self._kept]),
            singles(np.array([look.values for look in self._kept])),
            singles(np.array([look.stderr for look in self._kept])),
        )
