"""What a notebook shows: each picture once and with its contents, and how far a run is while it goes on."""

from __future__ import annotations

from typing import Any

import pytest

REASON = "notebooks need nbclient and ipykernel: pip install nbclient ipykernel"
CELLS = """\
import sys
import numpy as np
import localshapley as ls
v = ls.shapley([range(4)], lambda coalition, tests: [float(len(coalition))], progress=False)
print("matplotlib.pyplot" in sys.modules)
---
v.plot.ranking()
---
import matplotlib.pyplot as plt
plt.figure()
v.plot.ranking()
---
v.plot.ranking(), v.plot.distribution()
---
left, right = plt.subplots(1, 2)[1]
v.plot.ranking(ax=left)
v.plot.distribution()
---
from time import sleep
def slowly(coalition, tests):
    sleep(0.02)
    return [1.0]
ls.shapley([range(7)], slowly)
print(plt.get_fignums())
"""


@pytest.mark.slow
def test_pictures_and_progress_are_shown():
    nbformat = pytest.importorskip("nbformat", reason=REASON)
    nbclient = pytest.importorskip("nbclient", reason=REASON)
    pytest.importorskip("ipykernel", reason=REASON)

    class Client(nbclient.NotebookClient):
        """Keeps what outputs looked like before they were replaced."""

        def process_message(self, msg: dict[str, Any], *others: Any) -> Any:
            if msg["msg_type"] == "update_display_data":
                looks.append(msg["content"]["data"]["text/plain"])
            return super().process_message(msg, *others)

    looks: list[str] = []
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.split("---\n")]
    Client(nbformat.v4.new_notebook(cells=cells), timeout=300, kernel_name="python3").execute()
    pictures = [
        [output.data["text/plain"] for output in cell.outputs if "image/png" in output.get("data", {})]
        for cell in cells
    ]
    assert cells[0].outputs[0].text == "False\n"
    assert pictures[1] == ["<Figure size 640x188 with 1 Axes>"]
    assert pictures[2] == ["<Figure size 640x480 with 1 Axes>"]  # the user's, and no empty one
    assert [picture.split()[-2] for picture in pictures[3]] == ["1", "1"]
    assert [picture.split()[-2] for picture in pictures[4]] == ["2"]
    assert cells[5].outputs[-1].text == "[]\n"
    assert looks[0].startswith("training coalitions: ")
    assert " of 128, " in looks[0]
    assert looks[-1] == ""
