"""Data sets that scikit-learn ships, split and standardised the same way every time."""

from __future__ import annotations

from typing import Any

from localshapley.datasets.dataset import Dataset


def load_bundled(name: str, *, test_size: float = 0.3, seed: int = 0) -> Dataset:
    """Load one of them, with classes in proportion in both parts."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    bunch: Any = getattr(datasets, f"load_{name}")()
    classes = bunch.target if name != "diabetes" else None
    X, X_test, y, y_test = train_test_split(
        bunch.data, bunch.target, test_size=test_size, random_state=seed, stratify=classes
    )
    scaler = StandardScaler().fit(X)
    return Dataset(scaler.transform(X), y, scaler.transform(X_test), y_test, list(map(str, bunch.feature_names)))
