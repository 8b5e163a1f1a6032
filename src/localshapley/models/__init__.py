"""Models: train many coalitions, each scored on the test rows where it counts."""

from localshapley.coalitions.batch import Coalitions
from localshapley.inputs.task import Task
from localshapley.models.estimator import Estimator, EstimatorTrainer
from localshapley.models.gcn import GCN, GCNTrainer
from localshapley.models.head import Head, HeadTrainer
from localshapley.models.named import NAMES, named
from localshapley.models.utility import UtilityTrainer

__all__ = [
    "GCN",
    "NAMES",
    "Coalitions",
    "Estimator",
    "EstimatorTrainer",
    "GCNTrainer",
    "Head",
    "HeadTrainer",
    "Task",
    "UtilityTrainer",
    "named",
]
