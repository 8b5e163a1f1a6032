"""The support that rows are chosen with: small, so that the rows must reach every part of the space."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import is_classifier, is_regressor

from localshapley.arrays import Indices
from localshapley.supports.base import Space, Support, are_finite
from localshapley.supports.default import default_support
from localshapley.supports.embedding import Embedding
from localshapley.supports.nearest import Nearest
from localshapley.supports.tree_nodes import Leaves, TreeNode

FEWEST, MOST = 8, 15
"""Rows of a support, for classes; in between 3/4 of the root of the number of rows."""
N_NUMBERS = 20
"""Rows of a support, for numbers, which few rows predict badly."""
WIDER = (4, 2)
"""How many times as many rows the supports have that the first rows are chosen with, one after the other."""


@dataclass(frozen=True, repr=False)
class SelectionSupport(Support):
    """The rows nearest to a test row, by the distance that suits the model; of a tree, among those of its node.

    Wider ones hold the neighbours of a tree, too: with few rows it cannot cut where the tree of all rows does.

    Parameters
    ----------
    times : int, default=1
        How many times as many rows as usual.
    """

    times: int = 1
    reads_model = True  # a network's distances are those of its embedding

    def find(self, space: Space) -> list[Indices]:
        """Find them; where no distance is defined, the support of the model takes their place."""
        own = default_support(space.reference)[0]
        n = int(np.clip(round(0.75 * np.sqrt(space.X.shape[0])), FEWEST, MOST))
        n = self.times * (N_NUMBERS if is_regressor(space.reference) else n)
        if isinstance(own, TreeNode) and self.times == 1 and is_classifier(space.reference) and are_finite(space):
            return replace(own, max_size=n)(space)
        if isinstance(own, Nearest | Embedding):
            return replace(own, n=n)(space)
        any_scale = isinstance(own, TreeNode | Leaves)
        return (Nearest(n, standardise=any_scale) if are_finite(space) else own)(space)

    def larger(self) -> str:
        """A support of a size of one's own."""
        return f"supports.Nearest({2 * N_NUMBERS})"

    def __repr__(self) -> str:
        return "nearest rows"
