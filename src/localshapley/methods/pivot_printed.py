"""LSMR-A as the paper prints it: biased where supports differ in size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localshapley.errors import warn
from localshapley.games import SupportGraph
from localshapley.methods.base import CoalitionScorer, Method
from localshapley.methods.pivot import PivotRun
from localshapley.methods.settings import Settings


@dataclass(frozen=True)
class PivotPrinted(Method):
    """The paper's LSMR-A with its printed weights, which divide by a probability other than that of the draw."""

    name = "pivot-printed"
    keeps_tests = False

    def start(self, graph: SupportGraph, executor: CoalitionScorer, settings: Settings) -> PivotRun:
        """Begin a run; warns where it will be biased."""
        if len(np.unique(graph.sizes)) > 1:
            warn(
                "method='pivot-printed' is biased where supports differ in size, as they do here; use 'sample', or "
                "'pivot' for the paper's estimator with corrected weights."
            )
        return PivotRun(graph, executor, settings, self.title, printed=True)
