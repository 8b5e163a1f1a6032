"""The public names: these, and no others."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import pytest

import localshapley as ls

pytestmark = pytest.mark.quick

PUBLIC = [
    "CleanClassifier",
    "CleanRegressor",
    "Cost",
    "History",
    "InvalidArgumentError",
    "LocalShapleyError",
    "LocalShapleyWarning",
    "LocalityGap",
    "Plan",
    "Pruning",
    "Selection",
    "Store",
    "StoreError",
    "SupportGraph",
    "TooLargeError",
    "TrainingError",
    "Valuation",
    "audit",
    "comparators",
    "datasets",
    "load",
    "locality_gap",
    "locality_gap_nodes",
    "methods",
    "models",
    "plan",
    "prune",
    "report",
    "scoring",
    "select",
    "shapley",
    "stopping",
    "supports",
    "tasks",
    "theory",
    "update",
    "value",
    "value_nodes",
    "warm_up",
]
NEED_TORCH = {"in_run_nodes", "in_run_shapley", "in_run_values"}


def test_the_public_names_are_these():
    assert set(ls.__all__) == set(PUBLIC)
    assert len(ls.__all__) == len(set(ls.__all__))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_with_its_own_name_and_a_docstring(name):
    thing = getattr(ls, name)
    assert thing.__name__.split(".")[-1] == name
    assert thing.__doc__.strip()


def test_dir_lists_the_public_names_and_no_other_name_is_there():
    assert set(PUBLIC) <= set(dir(ls))
    assert ls.__version__
    with pytest.raises(AttributeError, match="no attribute 'valeu'"):
        ls.valeu  # noqa: B018


@pytest.mark.parametrize(
    "module",
    ["audit", "comparators", "datasets", "methods", "models", "scoring", "stopping", "supports", "tasks", "theory"],
)
def test_modules_list_their_public_names(module):
    listed = importlib.import_module(f"localshapley.{module}").__all__
    assert len(listed) == len(set(listed))
    for name in listed:
        if name in NEED_TORCH and find_spec("torch") is None:
            continue
        assert getattr(getattr(ls, module), name).__doc__.strip()


def test_errors_are_one_family():
    assert issubclass(ls.InvalidArgumentError, ls.LocalShapleyError)
    assert issubclass(ls.TooLargeError, ls.LocalShapleyError)
    assert issubclass(ls.TrainingError, ls.LocalShapleyError)
    assert issubclass(ls.InvalidArgumentError, ValueError)
    assert issubclass(ls.TooLargeError, ValueError)
    assert not issubclass(ls.TrainingError, ValueError)
    assert issubclass(ls.LocalShapleyWarning, UserWarning)
