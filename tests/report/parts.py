"""Small valuations, all that a report can be given, and ways to read a page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd

from localshapley.audit import LabelErrors
from localshapley.audit.verdict import make_verdict
from localshapley.data.rows import are_amounts
from localshapley.locality import LocalityGap
from localshapley.report import summarise
from localshapley.valuation import Cost
from made import made

SCRIPT = "<script>alert(1)</script>"


def valuation(values, stderr=None, **fields):
    """A valuation made by hand."""
    cost = Cost("t", trainings=5, draws=9, distinct=5, reused=4, trivial=0, seconds=1.0)
    settings = {"method": "auto", "model": "M()", "score": "s", "support": "S()", "stopped": "done"} | fields
    return made(values, stderr, cost=cost, support_sizes=np.array([2, 3]), **settings)


def suspects_of(v, n=4):
    low = v.bottom(n)
    return low[["value", "stderr"]].assign(
        suspicion=1.5, label="a", suggested="b", agreement=0.25, neighbours=[list(v.top(3).index)] * len(low)
    )


def errors_of(v, table, y=None):
    """Some rows as a list of label errors, in which values decide."""
    ids = v.to_frame().index
    rows = ids.get_indexer(table.index) if ids.is_unique else np.arange(len(table))
    labels = np.repeat("a", len(ids)) if y is None else np.asarray(y)
    is_wrong = np.isin(np.arange(len(ids)), rows) & v.below_zero()
    verdict = make_verdict(labels, rows, None, is_wrong, v, regression=are_amounts(np.array(table["label"].tolist())))
    return LabelErrors(table, verdict if y is not None else replace(verdict, by_class=None))


CURVES = SimpleNamespace(
    score="accuracy",
    table=pd.DataFrame(
        [(name, share, 1, 0.5 + share / 4, 0.4, 0.8) for name in ("best first", "random") for share in (0.2, 0.6, 1.0)],
        columns=["curve", "share", "n_rows", "mean", "low", "high"],
    ),
)
OWNERS = pd.DataFrame(
    {"n_rows": [3, 1], "value": [3.0, 1.0], "stderr": [0.1, 0.2], "share": [75.0, 25.0], "share_stderr": [2.0, 2.0]},
    index=pd.Index(["north", SCRIPT], name="owner"),
)


def gap_of(v, *, enough=True):
    return LocalityGap(
        gap=0.1,
        gap_stderr=0.01,
        noise=0.05,
        rank_correlation=0.9,
        rank_correlation_stderr=0.01,
        enough=enough,
        advice="the support is large enough",
        local=v.values,
        global_=v.values + 0.01,
        tests=np.arange(3),
        permutations=7,
        trainings=99,
    )


def said(section, *arguments, **parts):
    """What a section says."""
    return summarise(*arguments, **parts)["sections"][section]


class Outline(HTMLParser):
    """Elements of a page, their ids, and the words outside of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.tags, self.words, self.open = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in ("meta", "img", "link", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag  # every element is closed, in order

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


def embedded(page):
    """The tables that the page gives to its script, by section and name."""
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    return data["tables"]
