"""Write `golden.json`: what the code as it is gives for every run of `runs.py`.

    python tests/golden/make.py            # all runs
    python tests/golden/make.py NAME ...   # some of them; the others stay as they are

A number that changes on purpose is written anew, and the commit says which and why.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from environment import environment
from runs import RUNS, result_of

FILE = Path(__file__).parent / "golden.json"


def main(names: list[str]) -> None:
    """Play runs and keep what came of them."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if names else {}
    results = {name: result for name, result in before.get("runs", {}).items() if name in RUNS}
    for name in names or RUNS:
        print(name)
        results[name] = result_of(name)
    FILE.write_text(_as_text({name: results[name] for name in RUNS if name in results}), encoding="utf-8")


def _as_text(results: dict[str, dict[str, object]]) -> str:
    """JSON with a line for each part of a result, so that a change shows where it is."""
    runs = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(part, ensure_ascii=False)}" for key, part in result.items())
        + "\n}"
        for name, result in results.items()
    ]
    return f'{{"environment": {json.dumps(environment())},\n"runs": {{\n' + ",\n".join(runs) + "\n}}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
