"""The same small workloads at several commits, so that a slow-down is seen.

    python benchmarks/over_commits.py HEAD~1 HEAD
    python benchmarks/over_commits.py v0.1.0..HEAD --only svm tree --out times.csv
    python benchmarks/over_commits.py --quick HEAD~1 HEAD

The sources of each commit are unpacked into a temporary folder and imported by this Python, with the dependencies that
it has. The workloads are those of this file, whatever the commit. Compiling is not counted: each workload runs once
before the clock starts. What counts are seconds of the processor with one thread, the best of the repeats, and the
commits take turns: other work on the machine matters little. The table has seconds and, in brackets, the ratio to the
first commit; the CSV file has one line for each commit and workload. A workload that a commit cannot run is shown as
failed.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
QUICK = ("import", "game", "knn", "tree")


class Commit(NamedTuple):
    """A commit, and the folder that has its sources."""

    name: str
    subject: str
    folder: Path


def main() -> None:
    """Time every workload at every commit, print the table and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="+", help="commits or ranges such as v0.1.0..HEAD, oldest first")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, help="workloads to run (default: all)")
    parser.add_argument("--quick", action="store_true", help=f"two repeats instead of five, of {', '.join(QUICK)}")
    parser.add_argument("--out", type=Path, default=Path("over_commits.csv"), help="file to write")
    given = parser.parse_args()
    names = given.only or (QUICK if given.quick else list(WORKLOADS))
    with tempfile.TemporaryDirectory(prefix="localshapley-commits-") as folder:
        commits = list(unpacked(given.commits, Path(folder)))
        seconds = best_of(2 if given.quick else 5, commits, names)
    print(as_text(commits, names, seconds))
    with given.out.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["commit", "subject", "workload", "seconds"])
        lines.writerows([c.name, c.subject, name, seconds[c, name]] for c in commits for name in names)


def unpacked(given: list[str], parent: Path) -> Iterator[Commit]:
    """The commits, each with its sources in a folder of its own."""
    hashes = [line for one in given for line in git("rev-list", "--reverse", *([] if ".." in one else ["-1"]), one)]
    for place, commit in enumerate(hashes):
        folder = parent / str(place)
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as sources:
            sources.extractall(folder, filter="data")
        yield Commit(*git("show", "--no-patch", "--format=%h%n%s", commit), folder)


def git(*words: str) -> list[str]:
    """What git says, line by line."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def best_of(repeats: int, commits: list[Commit], names: list[str]) -> dict[tuple[Commit, str], float]:
    """Least seconds of each workload at each commit; infinite where it failed."""
    best = {(commit, name): math.inf for commit in commits for name in names}
    for _ in range(repeats):
        for commit, name in best:
            best[commit, name] = min(measured(commit, name), best[commit, name])
    return best


def measured(commit: Commit, name: str) -> float:
    """Seconds of a workload in a process of its own; infinite if it failed."""
    own = {"PYTHONPATH": str(commit.folder / "src"), "NUMBA_CACHE_DIR": str(commit.folder / ".numba"), **ONE_THREAD}
    words = [sys.executable, __file__, "--measure", name]
    done = subprocess.run(words, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else math.inf


def as_text(commits: list[Commit], names: list[str], seconds: dict[tuple[Commit, str], float]) -> str:
    """One line for each commit, with seconds and the ratio to the first."""
    lines = [f"{'seconds':<10}" + "".join(f"{name:>17}" for name in names)]
    for commit in commits:
        cells = [cell(seconds[commit, name], seconds[commits[0], name]) for name in names]
        lines.append(f"{commit.name:<10}" + "".join(f"{text:>17}" for text in cells) + f"  {commit.subject:.60}")
    return "\n".join(lines)


def cell(seconds: float, first: float) -> str:
    """Seconds and their ratio to those of the first commit.

    >>> cell(0.3, 0.2)
    '0.300 (1.50)'
    >>> cell(math.inf, 0.2)
    'failed'
    """
    if math.isinf(seconds):
        return "failed"
    return f"{seconds:.3f}" if math.isinf(first) else f"{seconds:.3f} ({seconds / first:.2f})"


def start() -> None:
    """A new process that imports the package and asks for its main function."""
    subprocess.run([sys.executable, "-c", "import localshapley; localshapley.value"], check=True)


def game() -> None:
    """A game of one's own, sampled."""
    import numpy as np

    import localshapley as ls

    supports = [np.arange(3 * t, 3 * t + 18) for t in range(40)]
    ls.shapley(supports, lambda coalition, tests: np.sqrt(len(coalition)) + 0.0 * tests, method="sample", budget=5000)


def valued(data: str, *, nearest: int | None = None, **settings: Any) -> Callable[[], None]:
    """A valuation of a bundled data set."""

    def run() -> None:
        import localshapley as ls

        support = None if nearest is None else ls.supports.Nearest(nearest)
        ls.value(*ls.datasets.load(data)[:4], support=support, **settings)

    return run


WORKLOADS = {
    "import": start,
    "game": game,
    "knn": valued("digits", model="knn"),
    "tree": valued("iris", model="tree", nearest=12, method="sample", tol=0.05),
    "svm": valued("breast_cancer", model="svm", nearest=15),
    "logistic": valued("breast_cancer", model="logistic", nearest=15, budget=20_000),
    "ridge": valued("diabetes", model="ridge", nearest=15, budget=50_000),
    "global-mc": valued("iris", model="knn", method="global-mc", budget=2_000_000),
}
"""What is timed, by name; only what is public, so that old commits can run it."""


def measure(name: str) -> None:
    """Run a workload four times, and print the seconds of the quickest of the last three runs."""
    WORKLOADS[name]()  # compiles
    print(min(timed(WORKLOADS[name]) for _ in range(3)))


def timed(run: Callable[[], None]) -> float:
    """Seconds that the processor spends on a run."""
    before = processor_seconds()
    run()
    return processor_seconds() - before


def processor_seconds() -> float:
    """Seconds of the processor so far, of this process and of those that it started and that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    measure(sys.argv[2]) if sys.argv[1:2] == ["--measure"] else main()
