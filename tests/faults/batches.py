"""Trials in other processes, some at a time, so that one that brings its process down is seen and counted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

SIZE = 50


def run_batches(script: str, n_trials: int) -> Counter[str]:
    """Run the trials of a script from 0 to `n_trials`, and count how they ended."""
    ended: Counter[str] = Counter()
    for start in range(0, n_trials, SIZE):
        numbers = [str(start), str(min(start + SIZE, n_trials))]
        done = subprocess.run([sys.executable, script, "--trials", *numbers], capture_output=True, text=True)
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        ended.update(how for _, how in found)
        if done.returncode:
            last = found[-1][0] + 1 if found else start
            ended[f"CRASHED: trial {last}, status {done.returncode}: {done.stderr[-300:]}"] += 1
    return ended


def main(script: str, trial: Callable[[int], str], n_trials: int) -> None:
    """Run trials here (`--trials FROM TO`, a line for each), or all of them in batches, and print the counts."""
    if "--trials" in sys.argv:
        first, last = map(int, sys.argv[sys.argv.index("--trials") + 1 :][:2])
        for number in range(first, last):
            print(json.dumps([number, trial(number)]), flush=True)
        return
    n_trials = int(sys.argv[1]) if len(sys.argv) > 1 else n_trials
    print(report(Path(script).stem, run_batches(script, n_trials)))


def report(name: str, ended: Counter[str]) -> str:
    """The counts in lines."""
    lines = [f"  {count:5} {how}" for how, count in sorted(ended.items())]
    return "\n".join([f"{name}: {sum(ended.values())} trials", *lines])


def ended_well(name: str, n_trials: int) -> Counter[str]:
    """Run the trials of a script of this folder, print how they ended, and see that none went wrong."""
    ended = run_batches(str(Path(__file__).with_name(f"{name}.py")), n_trials)
    print(report(name, ended))
    wrong = [how for how in ended if how.startswith(("WRONG", "CRASHED"))]
    assert not wrong, "\n".join(wrong)
    assert sum(ended.values()) == n_trials
    return ended
