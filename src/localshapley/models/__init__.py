"""Models: train many coalitions, each scored on its test rows."""

from localshapley.coalitions.batch import Coalitions
from localshapley.models.boosted_trees import BoostedTrainer
from localshapley.models.compiled import CompiledTrainer, Usable
from localshapley.models.dispatch import register
from localshapley.models.estimator import Estimator, EstimatorTrainer, Refit
from localshapley.models.fixed_trees import Fixed, FixedTrainer
from localshapley.models.named_models import NAMES, named
from localshapley.models.task import Task
from localshapley.models.trainer import Counts, Model, Trainer, TrainingOutcome
from localshapley.models.utility import UtilityTrainer
from localshapley.torch.gcn import GCN, GCNTrainer
from localshapley.torch.graph_data import NodeData, read_graph
from localshapley.torch.graph_models import GIN, GraphSAGE
from localshapley.torch.heads import Head, HeadTrainer
from localshapley.torch.network import Network, NetworkTrainer

__all__ = [
    "GCN",
    "GIN",
    "NAMES",
    "BoostedTrainer",
    "Coalitions",
    "CompiledTrainer",
    "Counts",
    "Estimator",
    "EstimatorTrainer",
    "Fixed",
    "FixedTrainer",
    "GCNTrainer",
    "GraphSAGE",
    "Head",
    "HeadTrainer",
    "Model",
    "Network",
    "NetworkTrainer",
    "NodeData",
    "Refit",
    "Task",
    "Trainer",
    "TrainingOutcome",
    "Usable",
    "UtilityTrainer",
    "named",
    "read_graph",
    "register",
]
