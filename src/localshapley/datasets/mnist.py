"""MNIST: handwritten digits, a sample of its rows."""

from __future__ import annotations

import gzip
import os
from typing import Any

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints
from localshapley.datasets.dataset import Dataset
from localshapley.datasets.downloads import File, read
from localshapley.errors import InvalidArgumentError

SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist"
CHECKSUMS = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}


def load_mnist(
    *, n_train: int = 1000, n_test: int = 1000, seed: int = 0, data_home: str | os.PathLike[str] | None = None
) -> Dataset:
    """Load some of the 60,000 training and 10,000 test images of MNIST, drawn at random.

    Parameters
    ----------
    n_train, n_test : int, default=1000
    seed : int, default=0
        Seed of the draw. With the same seed, a larger sample begins with the rows of a smaller one.
    data_home : path, optional
        As in `load_graph`.

    Returns
    -------
    Dataset
        Rows of 784 pixels, row by row of the image, from 0 (paper) to 1 (ink).
    """
    X, y = _sample("n_train", n_train, "train", seed, data_home)
    X_test, y_test = _sample("n_test", n_test, "t10k", seed, data_home)
    names = [f"pixel {row},{column}" for row in range(28) for column in range(28)]
    return Dataset(X, y, X_test, y_test, names)


def _sample(name: str, n: Any, part: str, seed: int, data_home: str | os.PathLike[str] | None) -> tuple[Floats, Ints]:
    """Draw `n` images of one part of the data, with their labels."""
    images = _read(f"{part}-images-idx3-ubyte.gz", data_home)
    labels = _read(f"{part}-labels-idx1-ubyte.gz", data_home)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= len(labels):
        raise InvalidArgumentError(f"{name} must be a whole number from 1 to {len(labels)}; got {n!r}.")
    chosen = np.random.default_rng(seed).permutation(len(labels))[:n]
    return images[chosen].reshape(n, -1).astype(np.float64) / 255, labels[chosen].astype(np.int64)


def _read(name: str, data_home: str | os.PathLike[str] | None) -> AnyArray:
    """Read an IDX file of bytes: two zeros, the type, the number of dimensions, their sizes, the entries."""
    contents = gzip.decompress(read(File(f"mnist/{name}", CHECKSUMS[name], f"{SOURCE}/{name}"), data_home))
    n_dimensions = contents[3]
    shape = np.frombuffer(contents, dtype=">u4", count=n_dimensions, offset=4)
    return np.frombuffer(contents, dtype=np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)
