"""A disk that is full, at any moment: what was there stays, the run ends with its bits, and one sentence says why.

No file may grow beyond a limit, which is another one in each trial. `python tests/faults/full_disk.py 60` runs so many
trials and counts how they ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls

sys.path.insert(0, str(Path(__file__).parents[1]))
from faults.batches import main

STEP = 4096
"""Bytes by which the limit grows from trial to trial."""
X, Y, X_TEST, Y_TEST, _ = ls.datasets.load("iris")


def run(store: ls.Store | None = None) -> ls.Valuation:
    model = ls.models.Estimator(DecisionTreeClassifier(random_state=0))
    return ls.value(X, Y, X_TEST[:12], Y_TEST[:12], model=model, support=ls.supports.Nearest(6), method="exact",
                    store=store, per_test=True)  # fmt: skip


@cache
def expected() -> ls.Valuation:
    return run()


def trial(number: int) -> str:
    """Run with a store, and save the result, in a process whose files may not grow."""
    import resource

    before = expected()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before.save(folder / "v.parquet")
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_FSIZE, (STEP * number, STEP * number))
            os._exit(_limited(folder, before))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status not in ENDED:
            return f"WRONG: limit {STEP * number}: status {status}"
        if not (ls.load(folder / "v.parquet").values == before.values).all() or list(folder.glob("*.part")):
            return f"WRONG: limit {STEP * number}: what was saved before has changed"
        if (folder / "s.db").exists():
            with ls.Store(folder / "s.db", fastest=0) as store:
                again = run(store)
            if not (again.values == before.values).all():
                return f"WRONG: limit {STEP * number}: the store gave other numbers"
        return ENDED[status]


ENDED = {
    10: "the store could not be made, and nothing was saved",
    11: "the run continued without its store, and nothing was saved",
    12: "the run kept its store, and nothing was saved",
    20: "the store could not be made, and all was saved",
    21: "the run continued without its store, and all was saved",
    22: "the run kept its store, and all was saved",
}


def _limited(folder: Path, before: ls.Valuation) -> int:
    try:
        kept = _run_with_store(folder / "s.db", before)
        try:
            before.save(folder / "v.parquet")
            saved = 20
        except ls.LocalShapleyError as error:
            saved = 10 if "cannot be written" in str(error) else 90
    except BaseException as error:
        print(type(error).__name__, error, file=sys.stderr)
        return 1
    return saved + kept


def _run_with_store(path: Path, before: ls.Valuation) -> int:
    with warnings.catch_warnings(record=True):
        try:
            with ls.Store(path, fastest=0) as store:
                found = run(store)
        except ls.StoreError as error:
            return 0 if "disk is full" in str(error) else 5
    assert np.array_equal(found.values, before.values)
    return 1 if any("continued without its store" in note for note in found.notes) else 2


CACHE = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
import numpy as np
from localshapley.data.row_digests import digest_cells
print(digest_cells(np.arange(6.0).reshape(3, 2)).tolist())
"""


def without_room_for_code() -> str:
    """What a process prints that has to compile, and cannot keep what it compiled."""
    with tempfile.TemporaryDirectory() as folder:
        about = {**os.environ, "NUMBA_CACHE_DIR": folder}
        done = subprocess.run([sys.executable, "-c", CACHE], capture_output=True, text=True, env=about)
    return done.stdout + done.stderr


if __name__ == "__main__":
    main(os.path.abspath(__file__), trial, 60)
