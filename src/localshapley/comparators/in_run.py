"""In-Run Data Shapley: values of the rows along one run of stochastic gradient descent.

A step on the batch `B` moves the parameters by `−ε Σ_{i∈B} g_i`: `g_i` is the gradient of row i's loss, `ε` the
learning rate over the size of the batch. A coalition of the batch is worth the decrease of the test loss L after a
step with its rows alone. To first order that is `ε ∇L·Σ g_i`, to second order `−(ε²/2) (Σ g_i)ᵀ H (Σ g_i)` is added,
with the Hessian H of L. The Shapley value shares the product of two rows equally between them, so that

    φ_i = g_i · (ε ∇L − (ε²/2) H Σ_{j∈B} g_j),

one inner product for each row. Those of all rows are one derivative of their losses in one direction: forward-mode
differentiation gives them in one pass, and no gradient of a single row is ever formed, whatever the layers are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.data.indexes import check_order
from localshapley.errors import InvalidArgumentError, unknown_name
from localshapley.notes import Note
from localshapley.runtime.argument_checks import check_number, check_whole
from localshapley.runtime.progress import Progress, ProgressSetting
from localshapley.torch.placement import find_device
from localshapley.valuation import Cost, Digests, Facts, FinalEstimate, GameCounts, Players, Valuation
from localshapley.valuation.provenance import recorded

Params: TypeAlias = dict[str, Tensor]
"""Tensors by name, as in `torch.func`."""


def in_run_values(
    params: Params,
    losses: Callable[[Params, Ints], Tensor],
    test_loss: Callable[[Params], Tensor],
    n_rows: int,
    *,
    order: int = 1,
    epochs: int = 200,
    batch_size: int = 64,
    lr: float = 0.01,
    seed: int = 0,
    progress: ProgressSetting = None,
) -> tuple[Floats, Params]:
    """Values of the rows along one run of gradient descent on any losses (Wang et al., 2024).

    Parameters
    ----------
    params : dict of tensors
        Where the run begins; not changed.
    losses : callable
        `losses(params, batch) -> tensor of shape (len(batch),)`: the loss of each of some rows. `batch` is an array
        of row numbers.
    test_loss : callable
        `test_loss(params) -> tensor with one number`: what the rows should reduce.
    n_rows : int
    order : {1, 2}, default=1
        Order of the expansion of the test loss after a step; 2 accounts for rows of a batch that do the same work.
    epochs : int, default=200
    batch_size : int, default=64
    lr : float, default=0.01
        Learning rate, for the mean loss of a batch.
    seed : int, default=0
        Seed of the batches.
    progress : bool or callable, optional
        As in `value`; it counts steps.

    Returns
    -------
    values : array of shape (n_rows,)
        How much each row reduced the test loss; they add up to nearly its decrease over the run.
    params : dict of tensors
        Where the run ended.

    Examples
    --------
    Two rows pull one number to 1 and to −1; the test wants it at 1.

    >>> import torch
    >>> rows = torch.tensor([1.0, -1.0])
    >>> start = {"number": torch.tensor(0.0)}
    >>> values, _ = in_run_values(
    ...     start, lambda p, batch: (p["number"] - rows[batch]) ** 2, lambda p: (p["number"] - 1) ** 2, 2, epochs=1
    ... )
    >>> values.round(3)
    array([ 0.02, -0.02])
    """
    _check_settings("in_run_values", order, epochs, batch_size, lr)
    params = {name: tensor.detach().clone() for name, tensor in params.items()}
    values = torch.zeros(n_rows, dtype=torch.float64, device=next(iter(params.values())).device)
    n_steps = epochs * -(-n_rows // batch_size)
    with Progress(progress, n_steps, "gradient steps") as bar:
        for batch in _batches(n_rows, epochs, batch_size, seed):
            gained, params = _step(params, _of(losses, batch), test_loss, lr / len(batch), order)
            values[batch] += gained
            bar.advance(1)
    found: Floats = values.cpu().numpy()
    if not np.isfinite(found).all():
        raise InvalidArgumentError(f"lr={lr!r} is too large: the losses became NaN or infinite; give a smaller one.")
    return found, params


@recorded
def in_run_shapley(
    module: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    order: int = 1,
    epochs: int = 200,
    batch_size: int = 64,
    lr: float = 0.01,
    seed: int = 0,
    device: str = "auto",
    progress: ProgressSetting = None,
) -> Valuation:
    """Values of training rows along one run of gradient descent on a network (Wang et al., 2024).

    The run begins with the parameters that the network has, and does not change them. Values are in units of log loss,
    summed over the test rows, and add up to nearly its decrease over the run.

    Parameters
    ----------
    module : torch.nn.Module
        Maps rows to one number for each class. It runs in evaluation mode, without dropout; its operations must support
        forward-mode differentiation, as the usual layers do.
    X, X_test : array of shape (n_rows, ...)
        Rows in the form that the network takes.
    y, y_test : array of shape (n_rows,)
        Labels; the outputs of the network are the classes in sorted order.
    order, epochs, batch_size, lr, seed, progress
        As in `in_run_values`.
    device : str, default="auto"
        Where to compute: ``"cpu"``, ``"cuda"``, or ``"auto"``, which is a GPU if there is one.

    Returns
    -------
    Valuation

    References
    ----------
    J. T. Wang, P. Mittal, D. Song, R. Jia, Data Shapley in one training run, arXiv:2406.11011 (2024).
    """
    if not isinstance(module, nn.Module):
        raise InvalidArgumentError(f"module must be a torch.nn.Module; got {type(module).__name__}.")
    params = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    if not params:
        raise InvalidArgumentError("module has no parameters to train; give one with requires_grad=True.")
    where, dtype = find_device(device), next(iter(params.values())).dtype
    rows, test_rows = (torch.tensor(_as_array(table), dtype=dtype, device=where) for table in (X, X_test))
    notes = check_order("y", y, "X", X) + check_order("y_test", y_test, "X_test", X_test)
    labels, test_labels = np.asarray(y), np.asarray(y_test)
    for name, given, table in (("y", labels, rows), ("y_test", test_labels, test_rows)):
        if given.shape != (len(table),):
            raise InvalidArgumentError(
                f"{name} must have one label for each of the {len(table)} rows; got shape {given.shape}."
            )
    classes, codes = np.unique(labels, return_inverse=True)
    test_codes = _codes_of(test_labels, classes)
    truth, test_truth = (torch.as_tensor(found, device=where) for found in (codes, test_codes))
    fixed = {name: tensor.detach().to(where) for name, tensor in (*module.named_parameters(), *module.named_buffers())}

    def outputs(p: Params, table: Tensor) -> Tensor:
        found: Tensor = functional_call(module, {**fixed, **p}, (table,))
        return found

    was_training = module.training
    module.eval()
    try:
        shape = tuple(outputs({}, rows[:1]).shape)
        if len(shape) != 2 or shape[1] < len(classes):
            raise InvalidArgumentError(
                f"module must give one number for each of the {len(classes)} classes of y; one row gave shape {shape}."
            )
        found = value_run(
            "in_run_shapley",
            {name: fixed[name] for name in params},
            lambda p, batch: log_losses(outputs(p, rows[batch]), truth[batch]),
            lambda p: log_losses(outputs(p, test_rows), test_truth).sum(),
            (len(rows), len(test_rows)),
            type(module).__name__,
            Players(digests=Digests.of(X if sparse.issparse(X) else np.asarray(X), labels)),
            order=order,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            seed=seed,
            progress=progress,
            notes=notes,
        )
        return found
    finally:
        module.train(was_training)


def value_run(
    owner: str,
    params: Params,
    losses: Callable[[Params, Ints], Tensor],
    test_loss: Callable[[Params], Tensor],
    sizes: tuple[int, int],
    model: str,
    players: Players,
    *,
    order: int,
    epochs: int,
    batch_size: int,
    lr: float,
    seed: int,
    progress: ProgressSetting,
    notes: Sequence[Note] = (),
) -> Valuation:
    """Run, and make the valuation; `sizes` are the numbers of training and test rows."""
    _check_settings(owner, order, epochs, batch_size, lr)
    started = perf_counter()
    n_rows, n_tests = sizes
    values, end = in_run_values(
        params,
        losses,
        test_loss,
        n_rows,
        order=order,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        seed=seed,
        progress=progress,
    )
    before, after = (float(test_loss(p)) / n_tests for p in (params, end))
    ended = f"after {epochs} epochs; mean test loss from {before:.4g} to {after:.4g}"
    one_run = "the values belong to this one run; another seed gives others, and stderr does not say how different."
    return Valuation(
        estimate=FinalEstimate(values, np.zeros(n_rows)),
        players=players,
        counts=GameCounts(np.full(n_tests, n_rows), np.full(n_rows, n_tests)),
        facts=Facts(model=model, score="log_loss", support="Everything()", method=f"in-run, order {order}"),
        cost=Cost("stochastic gradient descent", 1, 0, 0, 0, 0, perf_counter() - started),
        stopped=Note("epochs-over", ended, epochs=epochs, loss_before=before, loss_after=after),
        notes=[*notes, Note("one-run-only", one_run)],
    )


def _step(
    params: Params, losses: Callable[[Params], Tensor], test_loss: Callable[[Params], Tensor], size: float, order: int
) -> tuple[Tensor, Params]:
    """Take a gradient step of `size` on the sum of the losses; returns each row's value, and the new parameters."""
    total = grad(lambda p: losses(p).sum())(params)
    if order == 1:
        slope = grad(test_loss)(params)
        direction = {name: size * slope[name] for name in params}
    else:
        slope, bend = _derivative(grad(test_loss), params, total)
        direction = {name: size * slope[name] - size**2 / 2 * bend[name] for name in params}
    _, gained = _derivative(losses, params, direction)
    return gained, {name: tensor - size * total[name] for name, tensor in params.items()}


def _of(losses: Callable[[Params, Ints], Tensor], batch: Ints) -> Callable[[Params], Tensor]:
    return lambda p: losses(p, batch)


def _derivative(function: Callable[[Params], Any], params: Params, direction: Params) -> tuple[Any, Any]:
    """A function's value and its derivative in a direction."""
    value, change = jvp(function, (params,), (direction,))  # type: ignore[misc]
    return value, change


def _batches(n_rows: int, epochs: int, batch_size: int, seed: int) -> Iterator[Ints]:
    """Row numbers of each step: every row once per epoch, in a new order each time."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(n_rows)
        yield from (order[start : start + batch_size] for start in range(0, n_rows, batch_size))


def log_losses(outputs: Tensor, codes: Tensor) -> Tensor:
    """Log loss of each row, from one number for each class."""
    return -outputs.log_softmax(dim=1).gather(1, codes[:, None])[:, 0]


def _as_array(table: Any) -> AnyArray:
    return table.toarray() if sparse.issparse(table) else np.asarray(table)


def _codes_of(labels: AnyArray, classes: AnyArray) -> Ints:
    """Codes of the test labels, all of which must be classes."""
    found = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    strange = labels[classes[found] != labels]
    if len(strange):
        raise InvalidArgumentError(
            f"y_test holds labels that y does not have ({strange.tolist()[0]!r}) and no model can learn; drop the rows."
        )
    return found


def _check_settings(owner: str, order: Any, epochs: Any, batch_size: Any, lr: Any) -> None:
    if order not in (1, 2):
        raise unknown_name("order", order, ("1", "2"))
    check_whole("epochs", epochs)
    check_whole("batch_size", batch_size)
    check_number("lr", lr, above=0)
