"""Every page of results from one run: what is done is kept, by the contents of code and data, and is not run again.

    python experiments/results.py                   # all experiments at full size; goes on where it was stopped
    python experiments/results.py --fresh           # from the beginning
    python experiments/results.py --only rq1_fidelity noise
    python experiments/results.py --gpu             # the graph pages, on a GPU, into docs/results/gpu
    python experiments/results.py --jobs 2          # two at a time, but for the pages that tell seconds

Each experiment is a process of its own. `made.json` says which sources, data and versions a page was made from, when,
where and in how many seconds; `log.txt` has everything that was printed, from start to end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

import index
from common import RESULTS, commit, machine
from keep import fingerprint, forget, save

HERE = Path(__file__).parent
EXPERIMENTS = ("rq1_fidelity", "rq2_selection", "rq3_cost", "scaling", "rq4_support_size", "rq5_alignment", "ablation",
               "reuse", "noise", "distribution_shift", "attempts", "beyond")  # fmt: skip
# The whole of Cora takes half an hour on two cores: its page is made on a GPU.
GRAPHS = ("cora", "rq1_fidelity", "rq5_alignment", "rq2_selection", "rq3_cost")
ALONE = ("rq1_fidelity", "rq3_cost", "scaling", "rq4_support_size", "beyond", "cora")
"""Pages that tell seconds: they come first, and nothing runs beside them."""
WRITING = Lock()


def main(argv: list[str] | None = None) -> int:
    """Run what has not been run with these sources and data; the number of experiments that failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="run everything again")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--gpu", action="store_true", help="the graph pages alone; needs a GPU")
    parser.add_argument("--only", nargs="+", choices=[*EXPERIMENTS, "cora"], metavar="NAME", help="some of them")
    parser.add_argument("--jobs", type=int, default=1, help="experiments at a time")
    parser.add_argument("--out", type=Path, help="folder for pages, tables and figures")
    args = parser.parse_args(argv)
    out = args.out or (RESULTS / "gpu" if args.gpu else RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    names = args.only or (GRAPHS if args.gpu else EXPERIMENTS)
    options = ["--quick"] * args.quick
    if args.fresh:
        forget()
        (out / "log.txt").unlink(missing_ok=True)
    if args.gpu:
        import_module("torch")  # so that `machine` can name the GPU
    say(out, f"{named(argv or [])}: commit {commit()}, {machine()}")
    make = partial(made, out=out, options=options, graphs=args.gpu, fresh=args.fresh)
    took = {name: how["seconds"] for name, how in read(out / "made.json").items()}
    together = sorted((name for name in names if name not in ALONE), key=lambda name: -took.get(name, 0))
    done = {name: make(name) for name in names if name in ALONE}
    with ThreadPoolExecutor(args.jobs) as pool:
        done |= dict(zip(together, pool.map(make, together), strict=True))
    failed = [name for name in names if not done[name]]
    if out in (RESULTS, RESULTS / "gpu") and not failed:
        index.write(RESULTS)
    say(out, f"done, {len(names) - len(failed)} of {len(names)}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return len(failed)


def named(argv: list[str]) -> str:
    """The command, as one gives it to `make`."""
    options = " ".join(word for word in argv if word != "--gpu")
    return ("make results-gpu" if "--gpu" in argv else "make results") + (f' RESULTS="{options}"' if options else "")


def made(name: str, out: Path, options: list[str], *, graphs: bool, fresh: bool) -> bool:
    """Whether the pages of an experiment are there: kept from before, or made now."""
    path = out / "made.json"
    kept = read(path)
    alone = ["--only", "GNN"] if graphs and name != "cora" else []
    key = fingerprint(name, [*options, *alone])
    if not fresh and kept.get(name, {}).get("key") == key and (out / f"{name}.md").is_file():
        say(out, f"{name}: kept, made {kept[name]['date']} at {kept[name]['commit']}")
        return True
    say(out, f"{name}: started")
    started, source = perf_counter(), commit()
    command = [sys.executable, str(HERE / f"{name}.py"), "--out", str(out), *options, *alone]
    code = run(command, out / "log.txt")
    seconds = perf_counter() - started
    say(out, f"{name}: {f'failed with exit status {code}' if code else 'made'} after {seconds:,.0f} s")
    if code:
        return False
    how = {"key": key, "commit": source, "date": today(), "machine": machine(), "seconds": round(seconds, 1)}
    with WRITING:
        save(path, dict(sorted({**read(path), name: how}.items())), indent=1)
    return True


def read(path: Path) -> dict[str, Any]:
    """What is known of the pages that are there."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def run(command: list[str], log: Path) -> int:
    """Run a command; what it prints goes to the terminal and to the log, line by line."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    assert process.stdout is not None
    with log.open("a", encoding="utf-8") as file:
        for line in process.stdout:
            sys.stderr.write(line)
            # The log lies beside the pages, for everybody: without the folders of this machine.
            file.write(line.replace(f"{log.parent}/", "").replace(f"{HERE.parent}/", ""))
            file.flush()
    return process.wait()


def say(out: Path, words: str) -> None:
    """A line of the log, with the time."""
    line = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {words}\n"
    sys.stderr.write(line)
    with (out / "log.txt").open("a", encoding="utf-8") as file:
        file.write(line)


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
