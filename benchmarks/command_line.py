"""From the shell to the report: a CSV of 10,000 rows and 20 columns with 2,000 test rows, nearest neighbours.

    python benchmarks/command_line.py

The first run may compile; the second is what a user sees from then on.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd


def main() -> None:
    """Write the tables, run the command twice, print seconds and sizes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 20))
    table = pd.DataFrame(X, columns=[f"f{i}" for i in range(20)])
    table["label"] = (X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=len(X)) > 0).astype(int)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table[:10_000].to_csv(folder / "train.csv", index=False)
        table[10_000:].to_csv(folder / "test.csv", index=False)
        words = ["value", "train.csv", "--test", "test.csv", "--target", "label", "--report", "report.html"]
        for attempt in ("first", "second"):
            started = perf_counter()
            subprocess.run(
                [sys.executable, "-m", "localshapley", *words], cwd=folder, check=True, capture_output=True, text=True
            )
            print(f"{attempt} run: {perf_counter() - started:.1f} s from the shell to the report")
        print(f"report: {(folder / 'report.html').stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
