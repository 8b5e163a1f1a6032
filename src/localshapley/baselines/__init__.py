"""Other people's estimators, for comparison."""

from localshapley.baselines.knn import knn_shapley, threshold_knn_shapley

__all__ = ["knn_shapley", "threshold_knn_shapley"]
