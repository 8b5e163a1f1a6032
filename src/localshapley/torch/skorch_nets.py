"""Nets of skorch, read as networks; skorch itself is not needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from localshapley.errors import InvalidArgumentError

NET = ("module", "criterion", "optimizer", "lr", "max_epochs", "batch_size", "train_split", "get_params")
"""What every net of skorch has."""
CRITERIA = {
    "CrossEntropyLoss": "cross_entropy",
    "NLLLoss": "cross_entropy",
    "BCEWithLogitsLoss": "cross_entropy",
    "MSELoss": "squared_error",
}
OF_NO_MATTER = ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "timeout")
"""Settings of an iterator over rows that do not change what it gives."""


def is_net(value: Any) -> bool:
    """Whether something looks like a net of skorch."""
    return all(hasattr(value, name) for name in NET)


def settings_of(net: Any) -> dict[str, Any]:
    """Settings of the network that does what a net does."""
    given = net.get_params(deep=False)
    criterion = getattr(net.criterion, "__name__", type(net.criterion).__name__)
    unknown = (
        [f"criterion={criterion}"] if criterion not in CRITERIA else [n for n in given if n.startswith("criterion__")]
    )
    unknown += [name for name in _prefixed(given, "iterator_train") if name not in ("shuffle", *OF_NO_MATTER)]
    if unknown:
        raise InvalidArgumentError(
            f"{type(net).__name__} of skorch has a setting that models.Network does not have: {unknown[0]}; leave it "
            "out, or train one coalition after the other by models.Estimator(net)."
        )
    optimizer = _prefixed(given, "optimizer")
    return {
        **_module(net.module, _prefixed(given, "module"), criterion == "NLLLoss"),
        "epochs": net.max_epochs,
        "lr": optimizer.pop("lr", net.lr),
        "batch": None if net.batch_size == -1 else net.batch_size,
        "loss": CRITERIA[criterion],
        "optimizer": net.optimizer,
        "optimizer_settings": optimizer or None,
        "shuffle": bool(given.get("iterator_train__shuffle", False)),
        "classes": given.get("classes"),
    }


def _prefixed(given: dict[str, Any], part: str) -> dict[str, Any]:
    """Settings of a part of the net, by their own names."""
    return {name.removeprefix(f"{part}__"): value for name, value in given.items() if name.startswith(f"{part}__")}


def _module(module: Any, settings: dict[str, Any], gives_probabilities: bool) -> dict[str, Any]:
    """The module, and where its weights come from: an instance without settings keeps those that it has."""
    is_instance = hasattr(module, "parameters") and not isinstance(module, type)
    if is_instance and not settings:
        return {"module": _with_logarithm(module) if gives_probabilities else module, "initial": "module"}
    return {"module": ModuleMaker(type(module) if is_instance else module, settings, gives_probabilities)}


@dataclass(frozen=True)
class ModuleMaker:
    """Makes the module of a net.

    Attributes
    ----------
    kind : class or function
    settings : dict
        Its arguments.
    gives_probabilities : bool
        Whether it gives probabilities, of which the logarithm is to be taken.
    """

    kind: Any
    settings: dict[str, Any]
    gives_probabilities: bool = False

    def __call__(self) -> Any:
        """Make the module."""
        module = self.kind(**self.settings)
        return _with_logarithm(module) if self.gives_probabilities else module

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{getattr(self.kind, '__name__', type(self.kind).__name__)}({settings})"


def _with_logarithm(module: Any) -> Any:
    """A module that gives logarithms of probabilities, which are logits, as skorch takes them for this loss."""
    from torch import nn

    from localshapley.torch.batched_networks import Logarithm

    return nn.Sequential(module, Logarithm())
