"""Models: train many coalitions, each scored on its test rows."""

from localshapley.coalitions.batch import Coalitions
from localshapley.inputs.graphs import NodeData, read_graph
from localshapley.inputs.named import NAMES, named
from localshapley.inputs.task import Task
from localshapley.models.boosted import BoostedTrainer
from localshapley.models.compiled import CompiledTrainer, Usable
from localshapley.models.dispatch import register
from localshapley.models.estimator import Estimator, EstimatorTrainer, Refit
from localshapley.models.fixed import Fixed, FixedTrainer
from localshapley.models.gcn import GCN, GCNTrainer
from localshapley.models.graph_model import GIN, GraphSAGE
from localshapley.models.head import Head, HeadTrainer
from localshapley.models.model import Model
from localshapley.models.network import Network, NetworkTrainer
from localshapley.models.trainer import Counts, Trained, Trainer
from localshapley.models.utility import UtilityTrainer

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
    "Trained",
    "Trainer",
    "Usable",
    "UtilityTrainer",
    "named",
    "read_graph",
    "register",
]
