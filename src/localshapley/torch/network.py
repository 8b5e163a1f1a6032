"""Networks: any PyTorch module, trained end to end for thousands of coalitions at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import Pipeline
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.data.network_embedding import encode
from localshapley.data.rows import encode as encode_labels
from localshapley.errors import InvalidArgumentError, TrainingError, unknown_name
from localshapley.models.compiled import ALL, CompiledTrainer
from localshapley.models.task import Task
from localshapley.models.trainer import TrainingOutcome
from localshapley.notes import Note
from localshapley.runtime.argument_checks import check_number, check_whole
from localshapley.torch.placement import find_device, one_thread_each, torch_threads
from localshapley.torch.skorch_nets import is_net, settings_of

if TYPE_CHECKING:
    from localshapley.torch.batched_networks import NetworkBatch

LOSSES = ("cross_entropy", "squared_error")
TAKEN = {"cpu": 2**12, "cuda": 2**14}
"""Coalitions that the trainer is given at a time."""
TOGETHER = {"cpu": 2**9, "cuda": 2**12}
"""Networks that are trained together at most: on a CPU few enough to stay in the cache."""
ROOM = {"cpu": 2**24, "cuda": 2**30}
"""Numbers that networks trained together may take."""
STEP = 4
"""Coalitions are filled up to a multiple of this many rows, so that those of about the same size go together."""
SCORED = 32
"""Test rows that a network predicts at a time."""


def _classifies(network: Any) -> bool:
    return bool(network.loss == "cross_entropy")


class Network(BaseEstimator):  # type: ignore[misc]
    """A PyTorch module that every coalition trains from the same initial weights, end to end.

    As a scikit-learn estimator it has `fit`, `predict` and, with cross-entropy, `predict_proba`. `value` trains
    thousands of coalitions together, on a GPU if there is one; each gets the network that `fit` on its rows gives.

    Layers must treat every row on its own and draw nothing at random: batch normalisation and dropout are refused
    before anything is trained, unless the layer is frozen by its ``eval()``.

    Parameters
    ----------
    module : torch.nn.Module, callable, or net of skorch
        Maps rows to outputs: one per class (logits), one logit for two classes, or one number. A class or a function
        is called, without arguments, to make the module. Of a net of skorch, such as `NeuralNetClassifier`, the module
        and its parameters, `max_epochs`, `lr`, `batch_size` and the optimiser are read, and replace those given here.
    epochs : int, default=20
        How often each row is seen.
    lr : float, default=0.01
        Learning rate.
    batch : int, optional, default=32
        Rows of a minibatch; None takes all rows in each step.
    loss : {"cross_entropy", "squared_error"}, default="cross_entropy"
        With ``"squared_error"`` the network is a regressor.
    optimizer : str or class of `torch.optim`, default="adam"
        One that treats each weight on its own: SGD, Adam, AdamW, NAdam, RAdam, Adamax, Adagrad, Adadelta, RMSprop
        or Rprop.
    optimizer_settings : dict, optional
        Further arguments of the optimiser, such as ``{"momentum": 0.9}``.
    shuffle : bool, default=True
        Whether rows come in another order in each epoch. The order depends on the seed and the number of rows alone.
    initial : {"seed", "module"}, default="seed"
        Where training starts: from weights that all layers draw anew, from the seed, or from those that the module
        has, such as pretrained ones. Weights that need no gradient are never changed.
    classes : array, optional
        Labels of the outputs, in their order; by default the sorted labels of `y`. In `value` those of all rows.
    random_state : int, optional
        Seed of the initial weights and of the order of the rows.
    device : str, default="auto"
        Where networks are trained: ``"cpu"``, ``"cuda"``, or ``"auto"``, which is a GPU if there is one.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Not with ``loss="squared_error"``.
    module_ : torch.nn.Module
        The trained module, on the CPU.

    Examples
    --------
    >>> import localshapley as ls
    >>> from torch import nn
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> network = ls.models.Network(module, epochs=50, random_state=0)
    >>> float(network.fit(X, y).score(X_test, y_test)) > 0.9
    True
    """

    def __init__(
        self,
        module: Any,
        *,
        epochs: int = 20,
        lr: float = 0.01,
        batch: int | None = 32,
        loss: str = "cross_entropy",
        optimizer: Any = "adam",
        optimizer_settings: Mapping[str, Any] | None = None,
        shuffle: bool = True,
        initial: str = "seed",
        classes: Any = None,
        random_state: int | None = None,
        device: str = "auto",
    ) -> None:
        self.module = module
        self.epochs = epochs
        self.lr = lr
        self.batch = batch
        self.loss = loss
        self.optimizer = optimizer
        self.optimizer_settings = optimizer_settings
        self.shuffle = shuffle
        self.initial = initial
        self.classes = classes
        self.random_state = random_state
        self.device = device

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The module by its name, and settings other than the default ones."""
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={_shown(value)}"
            for name, value in self.get_params(deep=False).items()
            if name != "module" and repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join([_shown(self.module), *changed])})"[:N_CHAR_MAX]

    def __sklearn_tags__(self) -> Tags:
        """A classifier, or with squared error a regressor."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if _classifies(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    def fit(self, X: Any, y: Any) -> Network:
        """Train on rows and their labels or numbers."""
        if is_net(self.module):
            self.set_params(**settings_of(self.module))
        _check_settings(self)
        from localshapley.torch.batched_networks import repeatable

        X, y = validate_data(self, X, y, dtype=np.float64, allow_nd=True, y_numeric=not _classifies(self))
        if _classifies(self):
            check_classification_targets(y)
            self.classes_, y = _coded(y, self.classes)
        n_classes = len(self.classes_) if _classifies(self) else 0
        with one_thread_each(), repeatable():
            networks = _networks(self, X, y, n_classes, self.random_state)
            weights = networks.train(np.arange(len(y))[None], np.array([len(y)]))
        self.module_ = networks.trained_module(weights)
        return self

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class."""
        outputs = self._run(lambda module: module, X)
        if outputs.shape[1] == 1:
            outputs = np.concatenate([np.zeros_like(outputs), outputs], axis=1)
        outputs = outputs[:, : len(self.classes_)]
        weight = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        share: Floats = weight / weight.sum(axis=1, keepdims=True)
        return share

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row, or its number."""
        if not _classifies(self):
            return self._run(lambda module: module, X)[:, 0]
        probability = self.predict_proba(X)
        labels: AnyArray = self.classes_[probability.argmax(axis=1)]
        return labels

    def score(self, X: Any, y: Any) -> float:
        """Accuracy, or R² of a regressor."""
        return float((accuracy_score if _classifies(self) else r2_score)(y, self.predict(X)))

    def embed(self, X: Any) -> Floats:
        """What the last layer is given for each row: the output of the layers before it, shape (n_rows, n_units)."""
        from localshapley.torch.batched_networks import BeforeLast

        return self._run(BeforeLast, X)

    def deciding_settings(self) -> dict[str, Any]:
        """Settings that decide what is learnt, by which a store tells networks apart.

        A module whose weights are drawn anew counts by its layers, not by the weights that it happened to have.
        """
        from localshapley.torch.batched_networks import made

        return {**self.get_params(deep=False), "module": made(self, 0)}

    def _run(self, wrapped: Callable[[Any], Any], X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, allow_nd=True, reset=False)
        return encode(wrapped(self.module_), X)


class NetworkTrainer(CompiledTrainer):
    """Trains networks of coalitions of about the same size together.

    Parameters
    ----------
    estimator : Network
    task : Task
    n_jobs : int, optional
        Threads; their number does not change what is trained together.
    together : int, optional
        Maximum number of networks trained together; by default what suits the device.
    """

    is_quick = False
    may_refuse = True
    least_at_once = ALL  # pieces must not depend on the number of threads
    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = dict.fromkeys(
        inspect.signature(Network).parameters, lambda value: True
    )

    def __init__(
        self, estimator: Network, task: Task, n_jobs: int | None = None, *, together: int | None = None
    ) -> None:
        super().__init__(estimator, task, n_jobs)
        _check_settings(estimator)
        seed = task.seed if estimator.random_state is None else estimator.random_state
        targets, self._columns, n_classes = task.y, np.empty(0, dtype=np.int64), 0
        if task.classes is not None:
            classes, targets = _coded(task.y, task.classes if estimator.classes is None else estimator.classes)
            self._columns, _ = encode_labels(task.classes, classes)
            n_classes = len(classes)
        self._networks = _networks(estimator, task.X, targets, n_classes, seed)
        self._test_rows = self._networks.as_rows(task.X_test)
        self._batch = estimator.batch
        kind = "cpu" if self._networks.device.type == "cpu" else "cuda"
        self.name = f"Network (batched, {self._networks.device})"
        self.batch_size = TAKEN[kind]
        self._together, self._room = together or TOGETHER[kind], ROOM[kind]
        self.is_random = estimator.initial == "seed" or estimator.shuffle
        self.if_silent = "lower the lr, or scale the columns of X and, for a regressor, y"
        if kind != "cpu":
            self._n_threads = 1

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train and score coalitions in this process."""
        from localshapley.torch.batched_networks import repeatable

        with one_thread_each(), repeatable():
            return super().train(coalitions)

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        pieces = list(self._pieces(coalitions, todo))
        with torch_threads(self._n_threads) as threads:
            list(threads.map(lambda piece: self._train_together(coalitions, piece, out), pieces))

    def _pieces(self, coalitions: Coalitions, todo: Ints) -> Iterator[Ints]:
        """Coalitions that take the same steps with about the same number of rows, as many as there is room for."""
        sizes = np.diff(coalitions.indptr)[todo]
        n_steps = np.ones_like(sizes) if self._batch is None else -(-sizes // self._batch)
        widths = -(-sizes // STEP)
        for alike in np.unique(np.stack([n_steps, widths]), axis=1).T:
            some = todo[(n_steps == alike[0]) & (widths == alike[1])]
            seen = min(int(alike[1]) * STEP, self._batch or int(sizes.max()))
            most = max(1, min(self._together, self._room // self._networks.n_numbers(seen)))
            yield from (some[start : start + most] for start in range(0, len(some), most))

    def _train_together(self, coalitions: Coalitions, piece: Ints, out: Floats) -> None:
        """Train and predict; a piece that does not fit into the device's memory is halved."""
        import torch

        sizes = np.diff(coalitions.indptr)[piece]
        members = np.zeros((len(piece), -(-int(sizes.max()) // STEP) * STEP), dtype=np.int64)
        for row, c in zip(members, piece, strict=True):
            own = coalitions.coalition(c)
            row[: len(own)] = own
        try:
            self._predict(self._networks.train(members, sizes), coalitions, piece, out)
            return
        except torch.cuda.OutOfMemoryError as error:
            if len(piece) == 1:
                raise TrainingError(f"the GPU has too little memory to train one coalition: {error}") from error
        torch.cuda.empty_cache()
        for half in np.array_split(piece, 2):
            self._train_together(coalitions, half, out)

    def _predict(self, weights: dict[str, Any], coalitions: Coalitions, piece: Ints, out: Floats) -> None:
        """Predict the test rows of each coalition, some at a time."""
        starts, counts = coalitions.test_indptr[piece], np.diff(coalitions.test_indptr)[piece]
        for first in range(0, int(counts.max(initial=0)), SCORED):
            some = np.flatnonzero(counts > first)
            width = min(SCORED, int(counts.max()) - first)
            places = starts[some, None] + first + np.arange(width)
            there = np.arange(first, first + width) < counts[some, None]
            tests = coalitions.tests[np.where(there, places, starts[some, None])]
            own = weights if len(some) == len(piece) else {name: stacked[some] for name, stacked in weights.items()}
            found = self._networks.predict(own, self._test_rows[tests]).cpu().numpy()[there]
            out[places[there]] = found[:, self._columns] if found.ndim == 2 else found


def without_skorch(estimator: Any) -> tuple[Any, list[Note]]:
    """The estimator with a net of skorch as a `Network`, and what the user should know.

    The net is the estimator itself, the module of a `Network`, or the last step of a pipeline.
    """
    if type(estimator) is Pipeline:
        *steps, (name, last) = estimator.steps
        found, notes = without_skorch(last)
        return (Pipeline([*steps, (name, found)]) if found is not last else estimator), notes
    inside = isinstance(estimator, Network) and is_net(estimator.module)
    if not inside and (isinstance(estimator, type) or not is_net(estimator)):
        return estimator, []
    net = estimator.module if inside else estimator
    own = {name: getattr(estimator, name) for name in ("random_state", "device")} if inside else {"device": net.device}
    network = Network(**{**settings_of(net), **own})
    text = (
        f"{type(net).__name__} of skorch was read as {network!r}: coalitions train on all of their rows, without its "
        "callbacks, its train_split and what a subclass has changed."
    )
    return network, [Note("read-from-skorch", text, net=type(net).__name__, network=repr(network))]


def _networks(network: Network, X: AnyArray, targets: AnyArray, n_classes: int, seed: Any) -> NetworkBatch:
    from localshapley.torch.batched_networks import NetworkBatch

    whole = seed if isinstance(seed, int | np.integer) else check_random_state(seed).randint(2**31 - 1)
    return NetworkBatch(network, np.asarray(X), targets, n_classes, int(whole))


def _coded(y: AnyArray, classes: Any) -> tuple[AnyArray, Ints]:
    """Classes in the order of the outputs, and the codes of labels into them."""
    if classes is None:
        found, codes = np.unique(y, return_inverse=True)
        return found, codes
    given = np.asarray(classes)
    codes, unseen = encode_labels(y, given)
    if len(unseen):
        raise InvalidArgumentError(
            f"Network(classes=...) lacks labels of y, such as {unseen.tolist()[0]!r}; give the labels of all outputs."
        )
    return given, codes


def _shown(value: Any) -> str:
    """A setting in a description; modules, classes and functions by their names."""
    if hasattr(value, "parameters") and not isinstance(value, type):
        return type(value).__name__
    return str(getattr(value, "__name__", None) or repr(value))


def _check_settings(network: Network) -> None:
    check_whole("Network(epochs=...)", network.epochs)
    check_number("Network(lr=...)", network.lr, above=0)
    check_whole("Network(batch=...)", network.batch, optional=True)
    for name, value, known in (("loss", network.loss, LOSSES), ("initial", network.initial, ("seed", "module"))):
        if value not in known:
            raise unknown_name(f"Network({name}=...)", value, known)
    find_device(network.device)  # also says how to install PyTorch
