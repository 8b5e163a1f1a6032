"""Shared parameters are explained in every docstring, in the same words."""

from __future__ import annotations

import inspect
import pydoc

import pytest

import localshapley as ls
from localshapley.parameter_docs import SHARED, _entries, documented

TAKE_ARGUMENTS = (
    ls.value, ls.plan, ls.update, ls.select, ls.prune, ls.locality_gap, ls.value_nodes, ls.locality_gap_nodes,
    ls.shapley, ls.CleanClassifier,
)  # fmt: skip


def headings(doc):
    """The names that a section of parameters explains, in their order."""
    section = doc.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return [name for line in lines for name in line.partition(" : ")[0].split(", ")]


@pytest.mark.parametrize("function", TAKE_ARGUMENTS, ids=lambda function: function.__name__)
def test_each_parameter_is_explained_once_and_in_its_order(function):
    told, taken = headings(inspect.getdoc(function)), list(inspect.signature(function).parameters)
    assert sorted(told) == sorted(taken)
    firsts = [name for name in told if name not in ("X_test", "y_test")]
    assert [name for name in firsts if name in ("model", "score", "seed", "n_jobs")] == [
        name for name in taken if name in ("model", "score", "seed", "n_jobs")
    ]


def test_help_shows_the_shared_text():
    shown = pydoc.render_doc(ls.value, renderer=pydoc.plaintext)
    assert "Stop sampling when the standard errors of all values together" in shown
    assert shown.index("Parameters") < shown.index("tol : float, optional") < shown.index("Returns")
    assert "Returns ------- Valuation Examples" in " ".join(shown.split())


def test_every_shared_text_is_used():
    docs = "".join(inspect.getdoc(function) for function in TAKE_ARGUMENTS)
    for entry in set(_entries(SHARED).values()):
        assert entry.rstrip() in docs


def test_a_text_of_its_own_comes_first():
    assert "As in `value`; the plan is that of one seed." in inspect.getdoc(ls.plan)
    assert "value with so many seeds" not in inspect.getdoc(ls.plan)


def test_a_parameter_that_nobody_explains_is_an_error():
    def function(other):
        """Do it."""

    with pytest.raises(KeyError, match="other"):
        documented(function)
