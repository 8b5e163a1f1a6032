"""Texts of several words as a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse.linalg import svds
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer

from localshapley.arrays import AnyArray, Floats

MAX_DIRECTIONS = 10
"""Numbers that a column of texts becomes, at most: many columns that tell little hide others that tell much."""
WEIGHT = 2.0
"""Standard deviation of all of them together: texts weigh as much as four columns of numbers."""
MAX_WORDS = 5_000
"""Different words that are looked at, the most frequent ones."""
MANY_WORDS = 3
"""A column is free text if half of its cells have so many words at least."""


class LatentSemantics(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The directions in which the words of texts differ most, rare words counting more than frequent ones.

    Words are weighted by how few texts have them, and the largest singular directions are kept (latent semantic
    analysis), at one scale for all, so that weak ones stay weak.
    """

    def fit(self, texts: Any, y: Any = None) -> LatentSemantics:
        """Learn the words and the directions."""
        self.counter_ = counter(len(texts)).fit(texts)
        weights = self.counter_.transform(texts)
        self.directions_ = _directions(weights)
        found = weights @ self.directions_
        self.middle_ = found.mean(axis=0)
        self.scale_ = WEIGHT / (float(np.sqrt(found.var(axis=0).sum())) or 1.0)
        return self

    def transform(self, texts: Any) -> Floats:
        """Where each text is in these directions."""
        found: Floats = (self.counter_.transform(texts) @ self.directions_ - self.middle_) * self.scale_
        return found

    def get_feature_names_out(self, names: Any = None) -> AnyArray:
        """Numbers from 1."""
        return np.array([str(i + 1) for i in range(len(self.middle_))], dtype=object)


def _directions(weights: Any) -> Floats:
    """The largest singular directions of a matrix of texts and words, as columns; those of nothing are left out."""
    n = min(MAX_DIRECTIONS, min(weights.shape) - 1)
    if n < 1:
        return np.eye(weights.shape[1])
    _, sizes, found = svds(weights, k=n, v0=np.ones(min(weights.shape)))  # exact, so the order of rows is no matter
    found = found[::-1][sizes[::-1] > 1e-6 * sizes.max()]
    largest = found[np.arange(len(found)), np.abs(found).argmax(axis=1)]
    kept: Floats = (found * np.sign(largest)[:, None]).T
    return kept


def are_texts(column: pd.Series) -> bool:
    """Whether most cells are texts of several words, some of which come again."""
    cells = column.dropna().astype(str)
    if np.median([len(cell.split()) for cell in cells]) < MANY_WORDS:
        return False
    try:
        counter(len(column)).fit(cells)
    except ValueError:  # no word comes again
        return False
    return True


def counter(n_rows: int) -> TfidfVectorizer:
    """The words that at least 1 % of the texts have."""
    return TfidfVectorizer(sublinear_tf=True, max_features=MAX_WORDS, min_df=max(2, n_rows // 100))
