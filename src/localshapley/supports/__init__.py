"""Supports: which training rows can matter to a test row."""

from localshapley.supports.base import Space, Support
from localshapley.supports.default import default_support
from localshapley.supports.dual import Dual
from localshapley.supports.embedding import Embedding
from localshapley.supports.given import Everything, Given, Random
from localshapley.supports.hops import Hops
from localshapley.supports.kernel import CompactKernel, Kernel
from localshapley.supports.nearest import Nearest, Radius
from localshapley.supports.tree_nodes import Leaves, TreeNode

__all__ = [
    "CompactKernel",
    "Dual",
    "Embedding",
    "Everything",
    "Given",
    "Hops",
    "Kernel",
    "Leaves",
    "Nearest",
    "Radius",
    "Random",
    "Space",
    "Support",
    "TreeNode",
    "default_support",
]
