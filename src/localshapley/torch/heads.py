"""Heads on frozen embeddings: the last layers of a network, trained for thousands of coalitions at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.coalitions.batch import Coalitions
from localshapley.data.network_embedding import encode
from localshapley.errors import InvalidArgumentError
from localshapley.models.compiled import CompiledTrainer, plain
from localshapley.models.task import Task
from localshapley.models.trainer import TrainingOutcome
from localshapley.runtime.argument_checks import check_number, check_whole
from localshapley.torch.placement import find_device, one_thread_each, torch_threads

if TYPE_CHECKING:
    from torch import Tensor

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's default settings."""
TOGETHER = 128
"""Fewer coalitions than this are not worth a thread."""
SMALL = 16
"""Coalitions of up to this many rows are padded to the largest and trained together, larger ones up to twice."""


class Head(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier, or one with a hidden layer, on frozen embeddings: the head of a deep network.

    Adam takes `epochs` steps on the cross-entropy, averaged over the rows of the coalition; weight decay is added to
    the gradient. The output layer begins at zero and the hidden layer with weights that depend on the seed alone:
    every coalition starts from the same place. `value` trains many coalitions in parallel, on a GPU if there is one.
    Numbers have double precision: Adam divides gradients by their own size, and in single precision it would turn
    rounding errors into steps.

    Parameters
    ----------
    hidden : int, optional
        Units of a hidden layer (rectified linear); None for no hidden layer.
    epochs : int, default=100
    lr : float, default=0.01
    weight_decay : float, default=1e-4
    encoder : torch.nn.Module, optional
        Maps rows to embeddings. It is frozen, and runs in evaluation mode, once for each row. With None the rows
        themselves are the embeddings.
    random_state : int, optional
        Seed of the hidden layer.
    device : str, default="auto"
        Where heads are trained: ``"cpu"``, ``"cuda"``, or ``"auto"``, which is a GPU if there is one.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    layers_ : list of arrays
        Weights and biases in turn.

    Examples
    --------
    >>> import localshapley as ls
    >>> X, y, X_test, y_test, _ = ls.datasets.load("iris")
    >>> float(ls.models.Head(lr=0.1).fit(X, y).score(X_test, y_test)) > 0.9
    True
    """

    def __init__(
        self,
        hidden: int | None = None,
        *,
        epochs: int = 100,
        lr: float = 0.01,
        weight_decay: float = 1e-4,
        encoder: Any = None,
        random_state: int | None = None,
        device: str = "auto",
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.encoder = encoder
        self.random_state = random_state
        self.device = device

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Settings other than the default ones; the encoder by its name."""
        defaults = inspect.signature(type(self)).parameters
        shown = {name: repr(value) for name, value in self.get_params(deep=False).items()}
        shown["encoder"] = repr(None) if self.encoder is None else type(self.encoder).__name__
        changed = [f"{name}={text}" for name, text in shown.items() if text != repr(defaults[name].default)]
        return f"{type(self).__name__}({', '.join(changed)})"[:N_CHAR_MAX]

    def fit(self, X: Any, y: Any) -> Head:
        """Train on rows and their labels."""
        _check_settings(self)
        X, y = validate_data(self, X, y, dtype=np.float64, allow_nd=self.encoder is not None)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        heads = Heads(self, _embedded(self, X), codes, len(self.classes_), self.random_state)
        layers, _ = heads.train(np.arange(len(codes))[None])
        self.layers_ = [layer[0].numpy() for layer in layers]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, allow_nd=self.encoder is not None, reset=False)
        units = _embedded(self, X)
        for weights, bias in zip(self.layers_[:-2:2], self.layers_[1:-2:2], strict=True):
            units = np.maximum(units @ weights + bias, 0)
        outputs = units @ self.layers_[-2] + self.layers_[-1]
        weight = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        share: Floats = weight / weight.sum(axis=1, keepdims=True)
        return share

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""
        probability = self.predict_proba(X)
        labels: AnyArray = self.classes_[probability.argmax(axis=1)]
        return labels


class HeadTrainer(CompiledTrainer):
    """Trains heads of coalitions of similar size together; rows are embedded once.

    Parameters
    ----------
    estimator : Head
    task : Task
    n_jobs : int, optional
    room : int
        Numbers that the rows and weights of heads trained together may take.
    """

    is_quick = False
    may_refuse = True
    least_at_once = TOGETHER
    settings: ClassVar[Mapping[str, Callable[[Any], bool]]] = dict.fromkeys(
        ("hidden", "epochs", "lr", "weight_decay", "encoder", "random_state", "device"), lambda value: True
    )

    def __init__(self, estimator: Head, task: Task, n_jobs: int | None = None, *, room: int = 2**22) -> None:
        super().__init__(estimator, task, n_jobs)
        self._room = room
        self.is_random = estimator.hidden is not None
        assert task.classes is not None
        seed = task.seed if estimator.random_state is None else estimator.random_state
        self._heads = Heads(estimator, _embedded(estimator, task.X), self._codes, len(task.classes), seed)
        self._test_rows = _embedded(estimator, task.X_test)
        self.name = f"Head (batched, {self._heads.device})"
        if self._heads.device.type != "cpu":
            self._n_threads = 1

    def train(self, coalitions: Coalitions) -> TrainingOutcome:
        """Train and score coalitions in this process."""
        with one_thread_each():
            return super().train(coalitions)

    def _in_own_threads(self, work: Callable[[Ints], None], parts: list[Ints]) -> None:
        with torch_threads(self._n_threads) as threads:
            list(threads.map(work, parts))

    def _train(self, coalitions: Coalitions, todo: Ints, out: Floats) -> None:
        import torch

        sizes = np.diff(coalitions.indptr)[todo]
        order = np.argsort(sizes, kind="stable")
        for some in _similar(sizes[order], self._heads.n_numbers, self._room):
            chosen = todo[order[some]]
            layers, classes = self._heads.train(_padded([coalitions.coalition(c) for c in chosen]))
            for i, c in enumerate(chosen):
                rows = torch.from_numpy(self._test_rows[coalitions.tests_of(c)])[None]
                outputs = _outputs(rows, [layer[i : i + 1] for layer in layers], classes[i : i + 1])[0]
                known = classes[i] >= 0
                where = slice(coalitions.test_indptr[c], coalitions.test_indptr[c + 1])
                out[where] = 0
                out[where, classes[i, known].numpy()] = outputs[:, known].softmax(dim=1).numpy()


class Heads:
    """Trains heads on sets of the same rows.

    Parameters
    ----------
    settings : Head
    rows : array of shape (n_rows, n_units)
    codes : int array of shape (n_rows,)
    n_classes : int
    seed : int, RandomState or None
    """

    def __init__(self, settings: Head, rows: Floats, codes: Ints, n_classes: int, seed: Any) -> None:
        self.device = find_device(settings.device)
        self._settings, self._n_classes = settings, n_classes
        self._rows, self._codes = self.as_tensor(rows), self.as_tensor(codes)
        widths = [rows.shape[1], *([] if settings.hidden is None else [settings.hidden]), n_classes]
        draw = check_random_state(seed).uniform
        self._start: list[Floats] = []
        for n_in, n_out in pairwise(widths[:-1]):
            bound = np.sqrt(6 / (n_in + n_out))
            self._start += [draw(-bound, bound, (n_in, n_out)), np.zeros((1, n_out))]
        self._start += [np.zeros((widths[-2], n_classes)), np.zeros((1, n_classes))]

    def as_tensor(self, array: AnyArray) -> Tensor:
        """Put an array where heads are trained."""
        import torch

        return torch.as_tensor(array, device=self.device)

    def n_numbers(self, n_rows: int) -> int:
        """Numbers that the head of a coalition takes while it is trained: rows, weights, gradients and moments."""
        return int(n_rows * self._rows.shape[1] + 4 * sum(layer.size for layer in self._start))

    def train(self, members: Ints) -> tuple[list[Tensor], Tensor]:
        """Train a head on each set of rows.

        Parameters
        ----------
        members : array of shape (n_heads, n_rows)
            Row numbers; −1 where a set has fewer rows.

        Returns
        -------
        layers : list of tensors
            Weights of shape (n_heads, n_in, n_out) and biases of shape (n_heads, 1, n_out), in turn.
        classes : tensor of shape (n_heads, n_outputs)
            Class of each output, −1 for none: a head knows only the classes of its rows.
        """
        import torch

        chosen = self.as_tensor(members)
        is_row, chosen = chosen >= 0, chosen.clamp(min=0)
        rows, codes = self._rows[chosen], self._codes[chosen]
        classes, codes = self._own_classes(codes, is_row)
        share = is_row / is_row.sum(dim=1, keepdim=True)
        *inner, last, last_bias = self._start
        begin = [*inner, last[:, : classes.shape[1]], last_bias[:, : classes.shape[1]]]
        layers = [self.as_tensor(layer).repeat(len(members), 1, 1).requires_grad_() for layer in begin]
        adam = Adam(layers, self._settings.lr, self._settings.weight_decay)
        for _ in range(self._settings.epochs):
            probability = _outputs(rows, layers, classes).log_softmax(dim=2)
            own = probability.gather(2, codes[:, :, None])[:, :, 0].masked_fill(~is_row, 0)
            adam.step(torch.autograd.grad(-(share * own).sum(), layers))
        return [layer.detach().cpu() for layer in layers], classes.cpu()

    def _own_classes(self, codes: Tensor, is_row: Tensor) -> tuple[Tensor, Tensor]:
        """Classes that each head has rows of, ascending, and the rows' codes into them."""
        from torch.nn.functional import one_hot

        present = (one_hot(codes, self._n_classes) * is_row[:, :, None]).sum(dim=1) > 0
        place = present.cumsum(dim=1) - 1
        classes = codes.new_full((len(codes), int(present.sum(dim=1).max())), -1)
        head, code = present.nonzero(as_tuple=True)
        classes[head, place[head, code]] = code
        return classes, place.gather(1, codes).clamp(min=0)


class Adam:
    """Steps of Adam (Kingma and Ba), with weight decay added to the gradients."""

    def __init__(self, layers: list[Tensor], lr: float, weight_decay: float) -> None:
        self._layers = [layer.detach() for layer in layers]  # the same numbers, changed in place
        self._lr, self._weight_decay, self._n_steps = lr, weight_decay, 0
        self._means = [layer.new_zeros(layer.shape) for layer in layers]
        self._squares = [layer.new_zeros(layer.shape) for layer in layers]

    def step(self, gradients: tuple[Tensor, ...]) -> None:
        """Take a step against the gradients."""
        self._n_steps += 1
        size = self._lr / (1 - BETA_1**self._n_steps)
        scale = (1 - BETA_2**self._n_steps) ** -0.5
        for layer, gradient, mean, square in zip(self._layers, gradients, self._means, self._squares, strict=True):
            slope = gradient.add(layer, alpha=self._weight_decay)
            mean.lerp_(slope, 1 - BETA_1)
            square.mul_(BETA_2).addcmul_(slope, slope, value=1 - BETA_2)
            layer.addcdiv_(mean, square.sqrt().mul_(scale).add_(EPSILON), value=-size)


def _outputs(rows: Tensor, layers: list[Tensor], classes: Tensor) -> Tensor:
    """Outputs for rows, shape (n_heads, n_rows, n_outputs); −∞ where an output is not a class."""
    units = rows
    for weights, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        units = units.matmul(weights).add(bias).relu()
    return units.matmul(layers[-2]).add(layers[-1]).masked_fill(classes[:, None] < 0, -np.inf)


def _similar(sizes: Ints, n_numbers: Callable[[int], int], room: int) -> Iterator[slice]:
    """Cut ascending sizes of coalitions into slices of similar ones, as many as there is room for."""
    start = 0
    while start < len(sizes):
        stop = int(np.searchsorted(sizes, max(SMALL, 2 * sizes[start]), side="right"))
        stop = min(stop, start + max(1, room // n_numbers(int(sizes[stop - 1]))))
        yield slice(start, stop)
        start = stop


def _padded(sets: list[AnyArray]) -> Ints:
    """Sets of rows as a matrix, filled up with −1."""
    out = np.full((len(sets), max(map(len, sets))), -1, dtype=np.int64)
    for row, members in zip(out, sets, strict=True):
        row[: len(members)] = members
    return out


def _embedded(head: Head, X: Any) -> Floats:
    rows = np.asarray(X) if head.encoder is None else encode(head.encoder, X)
    return plain(rows)


def _check_settings(head: Head) -> None:
    check_whole("Head(hidden=...)", head.hidden, optional=True)
    check_whole("Head(epochs=...)", head.epochs)
    check_number("Head(lr=...)", head.lr, above=0)
    check_number("Head(weight_decay=...)", head.weight_decay, least=0)
    if head.encoder is not None and not (callable(head.encoder) and hasattr(head.encoder, "parameters")):
        raise InvalidArgumentError(f"Head(encoder=...) must be a torch.nn.Module; got {head.encoder!r}.")
