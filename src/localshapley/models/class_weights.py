"""Class weights, as estimators have them and as kernels take them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from localshapley.arrays import Floats
from localshapley.models.task import Task


def are_class_weights(value: Any) -> bool:
    """Whether class weights are reproduced: none, balanced, or positive numbers by class."""
    if isinstance(value, Mapping):
        return all(isinstance(weight, Real) and 0 < float(weight) < np.inf for weight in value.values())
    return value is None or (isinstance(value, str) and value == "balanced")


def cover_coalitions(value: Mapping[Any, float], task: Task) -> bool:
    """Whether class weights are enough for every coalition.

    Scikit-learn refuses rows that have none of the classes with a weight and others besides. Coalitions that are
    trained have two classes at least, so that cannot happen where there are only two, or all have a weight.
    """
    if task.classes is None:
        return True
    classes = task.classes.tolist()
    named = len(classes) == 2 and all(label in classes for label in value)
    return named or all(label in value for label in classes)


def class_weights(value: Any, task: Task) -> tuple[bool, Floats]:
    """Whether weights are balanced, and the weight of each class, for kernels; numbers to predict are one class."""
    classes = [None] if task.classes is None else task.classes.tolist()
    given = value if isinstance(value, Mapping) else {}
    return isinstance(value, str), np.array([float(given.get(label, 1)) for label in classes])
