"""Many copies of one PyTorch module, each trained on rows of its own, all in the same steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.functional import cross_entropy

from localshapley.arrays import AnyArray, Ints
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.torch.placement import find_device

if TYPE_CHECKING:
    from localshapley.torch.network import Network

Weights: TypeAlias = dict[str, Tensor]
"""Tensors by name; stacked ones have a first axis for the networks."""

OPTIMIZERS = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop")
"""Optimisers that treat each weight on its own, so that the weights of many networks can be one tensor."""
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
"""Those of them that PyTorch can run as one kernel."""
TRIED = 3
"""Rows that a module is tried with before it is trained."""


class NetworkBatch:
    """Trains networks on sets of the same rows, all from the same initial weights.

    Parameters
    ----------
    settings : Network
    rows : array of shape (n_rows, ...)
    targets : array of shape (n_rows,)
        Class codes, or numbers.
    n_classes : int
        0 where numbers are predicted.
    seed : int
        Decides the initial weights and the order of the rows, the same on every device.
    """

    def __init__(self, settings: Network, rows: AnyArray, targets: AnyArray, n_classes: int, seed: int) -> None:
        self.device = find_device(settings.device)
        self._settings, self._n_classes, self._seed = settings, n_classes, seed
        self.module = made(settings, seed).to(self.device)
        self._optimizer = _optimizer(settings, may_fuse=self.device.type in ("cpu", "cuda"))
        self.dtype = _check_parameters(self.module)
        self._rows = self.as_rows(rows)
        self._targets = torch.tensor(targets, dtype=torch.int64 if n_classes else self.dtype, device=self.device)
        self._start = {name: p.detach() for name, p in self.module.named_parameters() if p.requires_grad}
        self._per_row = self._try_out()

    def as_rows(self, rows: AnyArray) -> Tensor:
        """Put rows where networks are trained, as numbers of the module's type."""
        return torch.tensor(rows, dtype=self.dtype, device=self.device)

    def n_numbers(self, n_rows: int) -> int:
        """Numbers that a network takes while it is trained: what its layers give, weights, gradients and moments."""
        return n_rows * self._per_row + 4 * sum(weights.numel() for weights in self._start.values())

    def train(self, members: Ints, sizes: Ints) -> Weights:
        """Train a network on each set of rows; all sets have minibatches of the same number.

        Parameters
        ----------
        members : array of shape (n_networks, n_places)
            Row numbers; places from `sizes` on are ignored.
        sizes : array of shape (n_networks,)

        Returns
        -------
        dict of tensors of shape (n_networks, ...)
        """
        module = self._own_module()
        # Gradients of a linear layer come transposed; numbers in their layout save a copy of them in each step.
        begin = [_turned(weights, weights.ndim) for weights in self._start.values()]
        stacked = [weights.repeat(len(members), *[1] * weights.ndim).requires_grad_() for weights in begin]
        optimizer = self._optimizer(stacked)
        for rows, targets, share in self._minibatches(members, sizes):
            outputs = self._outputs(module, self._named(stacked), rows)
            loss = (self._losses(outputs, targets) * share).sum()
            gradients = torch.autograd.grad(loss, stacked, materialize_grads=True)
            for weights, gradient in zip(stacked, gradients, strict=True):
                weights.grad = gradient.contiguous()  # fused optimisers read memory as it lies
            optimizer.step()
        return {name: weights.detach() for name, weights in self._named(stacked).items()}

    @torch.no_grad()
    def predict(self, weights: Weights, rows: Tensor) -> Tensor:
        """Predictions of networks for rows of shape (n_networks, n_rows, ...): probabilities, or numbers."""
        outputs = self._outputs(self._own_module().eval(), weights, rows).double()
        return outputs.softmax(dim=2) if self._n_classes else outputs

    def trained_module(self, weights: Weights) -> nn.Module:
        """The module of the first network, on the CPU."""
        module = copy.deepcopy(self.module)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if name in weights:
                    parameter.copy_(weights[name][0])
        return module.cpu()

    def _own_module(self) -> nn.Module:
        """A copy of the module that shares its tensors: `functional_call` changes modules, and threads share none."""
        tensors = [*self.module.parameters(), *self.module.buffers()]
        return copy.deepcopy(self.module, {id(tensor): tensor for tensor in tensors})

    def _named(self, stacked: list[Tensor]) -> Weights:
        own = zip(self._start.items(), stacked, strict=True)
        return {name: _turned(weights, begin.ndim) for (name, begin), weights in own}

    def _minibatches(self, members: Ints, sizes: Ints) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows and targets of each step, and the weight of each row in the loss."""
        epochs, batch = self._settings.epochs, self._settings.batch or int(sizes.max())
        n_places, n_steps = members.shape[1], -(-int(sizes.max()) // batch)
        if n_steps == 1:
            yield from [self._minibatch(members, sizes, 0, n_places)] * epochs
            return
        for epoch in range(epochs):
            ordered = np.take_along_axis(members, self._order(n_places, sizes, epoch), axis=1)
            for start in range(0, n_steps * batch, batch):
                yield self._minibatch(ordered, sizes, start, batch)

    def _order(self, n_places: int, sizes: Ints, epoch: int) -> Ints:
        """Places of each set in the order of an epoch, which depends on the seed and the set's size alone."""
        key = np.arange(n_places, dtype=np.float64)
        if self._settings.shuffle:
            key = np.random.default_rng([self._seed, epoch]).random(n_places)
        order: Ints = np.where(np.arange(n_places) < sizes[:, None], key, np.inf).argsort(axis=1, kind="stable")
        return order

    def _minibatch(self, members: Ints, sizes: Ints, start: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """Rows from a place on; where a set has no more, its first one there fills up, without weight."""
        places = np.arange(start, start + width)
        there = places < sizes[:, None]
        chosen = torch.as_tensor(np.take_along_axis(members, np.where(there, places, start), axis=1))
        share = torch.as_tensor(there / there.sum(axis=1, keepdims=True), dtype=self.dtype, device=self.device)
        chosen = chosen.to(self.device)
        return self._rows[chosen], self._targets[chosen], share

    def _outputs(self, module: nn.Module, weights: Weights, rows: Tensor) -> Tensor:
        """Outputs for rows of shape (n_networks, n_rows, ...): a column for each class, or a number."""
        if len(rows) == 1:
            only = {name: stacked[0] for name, stacked in weights.items()}
            found = functional_call(module, only, (rows[0],))[None]
        else:
            found = vmap(lambda own, seen: functional_call(module, own, (seen,)))(weights, rows)
        outputs: Tensor = found.reshape(*rows.shape[:2], -1)
        if not self._n_classes:
            return outputs[:, :, 0]
        if outputs.shape[2] == 1:  # one number is the logit of the second class
            outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=2)
        return outputs[:, :, : self._n_classes]

    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of each row."""
        if self._n_classes:
            return cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
        return (outputs - targets).square()

    def _try_out(self) -> int:
        """Refuse a module that cannot be trained in this way; gives the numbers that it makes of a row."""
        rows = self._rows[torch.arange(TRIED) % len(self._rows)]
        module = copy.deepcopy(self.module)
        sizes: list[int] = [rows[0].numel()]
        for layer in module.modules():
            layer.register_forward_hook(lambda layer, given, found: sizes.append(_numel(found) // TRIED))
        with torch.random.fork_rng(devices=[self.device] if rows.is_cuda else []), torch.no_grad():
            try:
                outputs = module(rows)
            except Exception as error:
                raise InvalidArgumentError(
                    f"Network(module=...) cannot be called with rows of shape {tuple(rows.shape[1:])}: "
                    f"{_brief(error)}. If it needs another shape, begin it with torch.nn.Unflatten."
                ) from error
            _check_outputs(outputs, self._n_classes)
            _check_independence(copy.deepcopy(self.module), rows)
            twice = {name: weights.expand(2, *weights.shape) for name, weights in self._start.items()}
            try:
                self._outputs(self._own_module(), twice, rows.expand(2, *rows.shape))
            except Exception as error:
                raise InvalidArgumentError(
                    "Network(module=...) cannot be trained for many coalitions at once, which torch.func.vmap does: "
                    f"{_brief(error)}."
                ) from error
        return sum(sizes)


def made(settings: Network, seed: int) -> nn.Module:
    """The module with its initial weights, on the CPU."""
    given = settings.module
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if not isinstance(given, nn.Module):
            return _called(given)
        module = copy.deepcopy(given)
        if settings.initial == "seed":
            _draw(module)
    return module


def _called(make: Callable[[], Any]) -> nn.Module:
    found = make() if callable(make) else make
    if not isinstance(found, nn.Module):
        raise InvalidArgumentError(
            f"Network(module=...) must be a torch.nn.Module, or a class or function that makes one; got {found!r}."
        )
    return found


def _draw(module: nn.Module) -> None:
    """Draw all weights that are trained anew, as each layer does when it is made."""
    for name, layer in module.named_modules():
        if not any(p.requires_grad for p in layer.parameters(recurse=False)):
            continue
        reset = getattr(layer, "reset_parameters", None) or getattr(layer, "_reset_parameters", None)
        if reset is None:
            raise InvalidArgumentError(
                f"Network(module=...): {_named_layer(name, layer)} has no reset_parameters(), so its weights cannot be "
                "drawn from the seed; give it this method, give the class or a function that makes the module instead "
                "of the module, or initial='module' to start from the weights that it has."
            )
        reset()


def _optimizer(settings: Network, *, may_fuse: bool) -> Callable[[list[Tensor]], torch.optim.Optimizer]:
    """What makes the optimiser of some weights."""
    given, more = settings.optimizer, settings.optimizer_settings or {}
    names = {name.lower(): name for name in OPTIMIZERS}
    name = names.get(given.lower()) if isinstance(given, str) else getattr(given, "__name__", None)
    kind = None if name not in OPTIMIZERS else getattr(torch.optim, name)
    if kind is None or not (isinstance(given, str) or given is kind):
        if isinstance(given, str):
            raise unknown_name("Network(optimizer=...)", given, sorted(names))
        raise InvalidArgumentError(
            "Network(optimizer=...) must be an optimiser that treats each weight on its own, one of "
            f"{', '.join(OPTIMIZERS)} of torch.optim; got {given!r}."
        )
    may_fuse = may_fuse and name in FUSED and not {"foreach", "fused", "differentiable"} & set(more)
    try:
        kind([torch.zeros(1)], lr=settings.lr, **more)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"Network(optimizer_settings=...) is not for {name}: {error}.") from None
    return partial(kind, lr=settings.lr, **({"fused": True} if may_fuse else {}), **more)


def _check_parameters(module: nn.Module) -> torch.dtype:
    """The type of the weights; there must be some, of one type."""
    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in module.parameters()):
        raise InvalidArgumentError(
            "Network(module=...) has lazy layers, which get their weights with the first rows that they see; give "
            "layers of known sizes, or call the module once before."
        )
    found = {p.dtype for p in module.parameters() if p.requires_grad}
    if len(found) != 1:
        wrong = f"weights of different types ({', '.join(sorted(map(str, found)))})" if found else "no weights to train"
        raise InvalidArgumentError(f"Network(module=...) has {wrong}; it needs weights of one type, such as float32.")
    return found.pop()


def _check_outputs(outputs: Any, n_classes: int) -> None:
    """Refuse a module whose outputs are not a column for each class, or a number."""
    if not isinstance(outputs, Tensor) or outputs.shape[:1] != (TRIED,):
        got = (
            f"shape {tuple(outputs.shape)} for {TRIED} rows" if isinstance(outputs, Tensor) else type(outputs).__name__
        )
        raise InvalidArgumentError(f"Network(module=...) must give one tensor, with a row for each row; got {got}.")
    n_outputs = outputs[0].numel()
    if n_outputs < n_classes and (n_classes, n_outputs) != (2, 1):
        raise InvalidArgumentError(
            f"Network(module=...) gives {n_outputs} outputs for {n_classes} classes; its last layer needs one output "
            "for each class."
        )
    if not n_classes and n_outputs != 1:
        raise InvalidArgumentError(
            f"Network(module=..., loss='squared_error') gives {n_outputs} outputs; its last layer needs one."
        )


def _check_independence(module: nn.Module, rows: Tensor) -> None:
    """Refuse modules that remember rows, draw random numbers, or mix rows."""
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    first, second = module(rows), module(rows)
    changed = [name for name, buffer in module.named_buffers() if not torch.equal(buffer, before[name])]
    if changed:
        raise InvalidArgumentError(
            f"Network(module=...) changes {changed[0]!r} whenever it sees rows{_culprit(module, _remembers)}; what it "
            "remembers would mix coalitions. Use GroupNorm or LayerNorm instead of batch normalisation, or freeze the "
            "layer with its eval()."
        )
    if not torch.allclose(first, second, rtol=1e-4, atol=0, equal_nan=True):
        raise InvalidArgumentError(
            f"Network(module=...) draws random numbers while it is trained{_culprit(module, _draws)}; a coalition must "
            "give the same network whatever is trained beside it. Take the layer out, set its p to 0, or turn it off "
            "with its eval()."
        )
    if not torch.allclose(module(rows[:2]), first[:2], rtol=1e-3, atol=1e-4 * float(first.abs().max()), equal_nan=True):
        raise InvalidArgumentError(
            f"Network(module=...) mixes the rows of a minibatch{_culprit(module, _mixes)}: what it says of a row "
            "depends on the others, also on those that only fill up a minibatch. GroupNorm and LayerNorm, unlike batch "
            "normalisation, treat each row on its own."
        )


def _remembers(layer: nn.Module) -> bool:
    return bool(getattr(layer, "track_running_stats", False)) and layer.training


def _draws(layer: nn.Module) -> bool:
    return "dropout" in type(layer).__name__.lower() and layer.training


def _mixes(layer: nn.Module) -> bool:
    return "batchnorm" in type(layer).__name__.lower()


def _culprit(module: nn.Module, is_it: Callable[[nn.Module], bool]) -> str:
    """The first layer of a kind, in brackets; empty if there is none."""
    return next((f" ({_named_layer(name, layer)})" for name, layer in module.named_modules() if is_it(layer)), "")


def _named_layer(name: str, layer: nn.Module) -> str:
    return f"layer {name!r}, {type(layer).__name__}" if name else type(layer).__name__


def _numel(found: Any) -> int:
    return found.numel() if isinstance(found, Tensor) else 0


def _brief(error: Exception) -> str:
    """The first sentence of an error of PyTorch."""
    return str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__


def _turned(weights: Tensor, ndim: int) -> Tensor:
    """Matrices transposed, everything else as it is."""
    return weights.mT if ndim == 2 else weights


class BeforeLast(nn.Module):
    """What the last layer with weights of its own is given: the embedding of a network.

    Parameters
    ----------
    module : torch.nn.Module
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, rows: Tensor) -> Tensor:
        """Run the module, and give what its last layer was given."""
        seen: list[Tensor] = []
        layers = [layer for layer in self.module.modules() if any(True for _ in layer.parameters(recurse=False))]
        hooks = [layer.register_forward_pre_hook(lambda layer, given: seen.append(given[0])) for layer in layers]
        try:
            self.module(rows)
        finally:
            for hook in hooks:
                hook.remove()
        return seen[-1]


class Logarithm(nn.Module):
    """The logarithm of probabilities, kept finite."""

    def forward(self, probabilities: Tensor) -> Tensor:
        """Logarithms, not below that of the smallest difference between numbers of the type."""
        return torch.log(probabilities + torch.finfo(probabilities.dtype).eps)


def repeatable() -> AbstractContextManager[None]:
    """A context in which a GPU computes convolutions the same way each time, and does not round them more than sums."""
    flags: AbstractContextManager[None] = torch.backends.cudnn.flags(
        enabled=torch.backends.cudnn.enabled, benchmark=False, deterministic=True, allow_tf32=False
    )
    return flags
