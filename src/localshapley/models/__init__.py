"""Models: train many coalitions, each scored on the test rows where it counts."""

from localshapley.coalitions.batch import Coalitions
from localshapley.models.estimator import Estimator, EstimatorTrainer
from localshapley.models.named import NAMES, named
from localshapley.models.task import Task
from localshapley.models.utility import UtilityTrainer

__all__ = ["NAMES", "Coalitions", "Estimator", "EstimatorTrainer", "Task", "UtilityTrainer", "named"]
