"""The leaf that each row reaches in each tree, of forests and boosted trees of all libraries."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from localshapley.arrays import Ints
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.boosting_libraries import library_of

HISTOGRAMS = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)


def has_leaves(model: Any) -> bool:
    """Whether `leaf_numbers` can say which leaves the rows reach, once the model is fitted."""
    library = library_of(model)
    if library == "xgboost":
        return getattr(model, "booster", None) != "gblinear"
    return bool(library) or isinstance(model, HISTOGRAMS) or hasattr(model, "apply")


def leaf_numbers(model: Any, X: Any) -> Ints:
    """A number for the leaf of each row in each tree; a tree's numbers start at 0 and may leave some out.

    Parameters
    ----------
    model : fitted forest or boosted trees
    X : table of shape (n_rows, n_features)

    Returns
    -------
    array of shape (n_rows, n_trees)
        With several trees for each round of boosting, one for each class, those of a round are side by side.
    """
    if isinstance(model, HISTOGRAMS):
        return _of_histograms(model, X)
    library = library_of(model)
    if not has_leaves(model):
        raise InvalidArgumentError(
            f"{type(model).__name__} with booster='gblinear' has no trees, whose leaves are needed here."
        )
    if library == "lightgbm":
        found = model.predict(X, pred_leaf=True)
    elif library == "catboost":
        found = model.calc_leaf_indexes(X)
    else:
        found = model.apply(X)
    return np.asarray(found).reshape(X.shape[0], -1).astype(np.int64)


def _of_histograms(model: Any, X: Any) -> Ints:
    """Leaves of histogram-based boosting, which has no `apply`.

    Its trees are copied with the number of each node in the place of what it predicts; then they predict the leaf.
    """
    try:
        table = model._preprocess_X(X, reset=False)
        known, columns = model._bin_mapper.make_known_categories_bitsets()
        trees = [tree for of_round in model._predictors for tree in of_round]
        found = np.empty((table.shape[0], len(trees)), dtype=np.int64)
        for b, tree in enumerate(trees):
            numbered = copy(tree)
            numbered.nodes = tree.nodes.copy()
            numbered.nodes["value"] = np.arange(len(tree.nodes))
            found[:, b] = numbered.predict(table, known, columns, 1)
            if not tree.nodes["is_leaf"][found[:, b]].all():
                raise TypeError("a row ends in a node that is no leaf")
    except (AttributeError, TypeError, KeyError, IndexError) as error:
        raise InvalidArgumentError(
            f"the leaves of {type(model).__name__} cannot be read with this version of scikit-learn ({error}); give "
            "another support, such as supports.Nearest(20, standardise=True)."
        ) from error
    return found
