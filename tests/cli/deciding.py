"""Decisions on the suspects of a report, saved as its script saves them."""

from __future__ import annotations

import csv
import json
import re

from localshapley.audit.apply_decisions import COLUMNS


def decide(report, out, choose):
    """Save decisions on the suspects of a report, as its script would: ``choose(name, label, suggested)`` decides."""
    page = report.read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    bench = data["data"]["suspects"]
    assert bench["heads"] == list(COLUMNS)
    made = []
    for name, label, suggested, contents, *_ in bench["suspects"]:
        decision, new = choose(name, label, suggested)
        made.append([name, decision, label, new, contents])
    with out.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *made])
    return {line[0]: line for line in made}
