"""MNIST as features of a small convolutional network, as in the paper's experiments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from localshapley.arrays import AnyArray, Floats
from localshapley.datasets.dataset import Dataset
from localshapley.datasets.mnist import load_mnist

N_FEATURES = 1024
N_ENCODER = 12_000
"""Images that the encoder is trained on; none of them is valued."""
VERSION = 1  # of the features in the cache


class EncodedImages(NamedTuple):
    """A data set of features, with the accuracy of the network that they come from.

    `data` unpacks in the order of the arguments of `value`; `accuracy` is that of the whole network, on test images.
    """

    data: Dataset
    accuracy: float


def mnist_features(
    *,
    n_train: int = 1000,
    n_test: int = 1000,
    seed: int = 0,
    data_home: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    n_encoder: int = N_ENCODER,
) -> EncodedImages:
    """Features of MNIST images: the 1,024 outputs of a small network's last layer but one.

    The network is trained on images outside the sampled rows, once; the features are kept in a file.

    Parameters
    ----------
    n_train, n_test, seed, data_home
        As in `load_mnist`.
    cache : path, optional
        Folder for the features; by default ``localshapley`` in the user's cache folder.
    n_encoder : int, default=12000
        Images that the network is trained on.

    Returns
    -------
    Encoded
    """
    folder = Path(cache or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "localshapley").expanduser()
    of = "" if n_encoder == N_ENCODER else f"-{n_encoder}"
    path = folder / f"mnist_features-{VERSION}-{n_train}-{n_test}-{seed}{of}.npz"
    if path.is_file():
        with np.load(path, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in ("X", "y", "X_test", "y_test", "accuracy")}
    else:
        arrays = _encode(n_train, n_test, seed, data_home, n_encoder)
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.stem}.{os.getpid()}.npz")
        np.savez(part, **arrays)  # type: ignore[arg-type]
        part.replace(path)
    names = [f"feature {i}" for i in range(arrays["X"].shape[1])]
    rows: tuple[Floats, Floats] = (arrays["X"].astype(np.float64), arrays["X_test"].astype(np.float64))
    return EncodedImages(Dataset(rows[0], arrays["y"], rows[1], arrays["y_test"], names), float(arrays["accuracy"]))


def _encode(n_train: int, n_test: int, seed: int, data_home: Any, n_encoder: int) -> dict[str, AnyArray]:
    """Train the network on images beyond the first `n_train`, and run all rows through it."""
    import torch

    data = load_mnist(n_train=n_train + n_encoder, n_test=n_test, seed=seed, data_home=data_home)
    images, labels = torch.tensor(data.X, dtype=torch.float32), torch.tensor(data.y)
    tests = torch.tensor(data.X_test, dtype=torch.float32)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder, network = _network()
        adam = torch.optim.Adam(network.parameters(), lr=1e-3)
        outside = torch.arange(n_train, len(labels))
        for _ in range(3):
            for batch in torch.split(outside[torch.randperm(len(outside))], 64):
                adam.zero_grad()
                loss: Any = torch.nn.functional.cross_entropy(network(images[batch]), labels[batch])
                loss.backward()
                adam.step()
    with torch.no_grad():
        network.eval()
        accuracy = (network(tests).argmax(1).numpy() == data.y_test).mean()
        features = [encoder(rows).numpy() for rows in (images[:n_train], tests)]
    return {
        "X": features[0],
        "y": data.y[:n_train],
        "X_test": features[1],
        "y_test": data.y_test,
        "accuracy": np.array(accuracy),
    }


def _network() -> tuple[Any, Any]:
    """Two convolutions and a layer of features; with a last layer on top."""
    from torch import nn

    encoder = nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, N_FEATURES),
        nn.ReLU(),
    )
    return encoder, nn.Sequential(encoder, nn.Linear(N_FEATURES, 10))
