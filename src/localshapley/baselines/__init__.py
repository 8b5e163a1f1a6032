"""Other people's estimators, for comparison."""

from localshapley.baselines.pivot import PivotSampler

__all__ = ["PivotSampler"]
