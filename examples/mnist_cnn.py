"""What MNIST's training images are worth to the head of a small convolutional network.

The network is trained on images that are not valued and then frozen. Its embeddings decide which images can matter to a
test image, and heads on them are what is trained on coalitions. Some labels are made wrong to see where they end up.

    python examples/mnist_cnn.py                  # under two minutes on two cores; writes mnist_cnn.png
    python examples/mnist_cnn.py --out elsewhere.png

The data files are read from the folder that LOCALSHAPLEY_DATA names, or downloaded.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

import localshapley as ls

N_VALUED, N_ENCODER, N_TESTS, N_WRONG = 1000, 5000, 300, 30


def train_encoder(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> nn.Module:
    """Train a network on images, print its accuracy, and return it without its last layer."""
    torch.manual_seed(0)
    encoder = nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 64),
        nn.ReLU(),
    )
    network = nn.Sequential(encoder, nn.Linear(64, 10))
    images, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    adam = torch.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(3):
        for batch in torch.randperm(len(images)).split(64):
            adam.zero_grad()
            nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            adam.step()
    with torch.no_grad():
        predicted = network(torch.tensor(X_test, dtype=torch.float32)).argmax(dim=1).numpy()
    print(f"Accuracy of the network on {len(y_test)} test images: {(predicted == y_test).mean():.1%}")
    return encoder


def draw(path: Path, X: np.ndarray, y: np.ndarray, truth: np.ndarray, values: np.ndarray) -> None:
    """Draw the ten best images above the twenty worst, each with its label and value; wrong labels are red."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    order = np.argsort(values)
    figure, axes = plt.subplots(3, 10, figsize=(12, 4.8), layout="constrained")
    for axis, row in zip(axes.ravel(), [*order[::-1][:10], *order[:20]], strict=True):
        axis.imshow(X[row].reshape(28, 28), cmap="gray_r")
        axis.set_title(f"{y[row]}: {values[row]:.2f}", color="black" if y[row] == truth[row] else "red", fontsize=10)
        axis.axis("off")
    figure.suptitle("Best ten images, then the worst twenty, with label and value; red labels were made wrong")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train the encoder, value the images, print and draw the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("mnist_cnn.png"))
    out = parser.parse_args().out

    data = ls.datasets.load("mnist", n_train=N_VALUED + N_ENCODER, n_test=N_TESTS)
    encoder = train_encoder(data.X[N_VALUED:], data.y[N_VALUED:], data.X_test, data.y_test)
    X, truth = data.X[:N_VALUED], data.y[:N_VALUED]
    rng = np.random.default_rng(0)
    wrong = rng.choice(N_VALUED, N_WRONG, replace=False)
    y = truth.copy()
    y[wrong] = (y[wrong] + rng.integers(1, 10, N_WRONG)) % 10

    valuation = ls.value(
        X,
        y,
        data.X_test,
        data.y_test,
        model=ls.models.Head(epochs=50, lr=0.05, encoder=encoder),
        support=ls.supports.Embedding(encoder, 10),
    )
    print(f"{valuation}\n")
    worst = valuation.bottom(10).round(3)
    worst.insert(0, "label", y[worst.index])
    worst.insert(1, "true label", truth[worst.index])
    print(f"{worst}\n")
    found = np.isin(valuation.bottom(N_WRONG).index, wrong).sum()
    print(f"Of the {N_WRONG} images of lowest value {found} are among the {N_WRONG} with a wrong label.")
    draw(out, X, y, truth, valuation.values)
    print(f"Wrote {out}.")


if __name__ == "__main__":
    main()
