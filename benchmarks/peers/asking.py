"""What the peers of `estimators_single.py` share: they are told a game's size, and ask for the worth of coalitions.

Both sides write lines of JSON. The benchmark sends `{"estimator", "n", "budget", "seed"}`; the peer answers with
`{"ask": [...]}`, coalitions as hexadecimal masks, as often as it likes, is sent a list of scores for each, and ends
with `{"values": [...]}`.
"""

import json
import sys
from collections.abc import Callable

import numpy as np

Ask = Callable[[np.ndarray], np.ndarray]


def serve(estimators: dict[str, Callable[[int, int, int, Ask], np.ndarray]]) -> None:
    """Answer requests until there are no more; an estimator takes `n`, `budget`, `seed` and a function to ask."""
    out, sys.stdout = sys.stdout, sys.stderr  # what libraries print must not get into the answers
    print(json.dumps(list(estimators)), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        n = request["n"]

        def ask(masks: np.ndarray, n: int = n) -> np.ndarray:
            packed = np.packbits(np.atleast_2d(masks).reshape(-1, n).astype(bool), axis=1)
            print(json.dumps({"ask": [mask.tobytes().hex() for mask in packed]}), file=out, flush=True)
            return np.array(json.loads(sys.stdin.readline()))

        try:
            values = estimators[request["estimator"]](n, request["budget"], request["seed"], ask)
            answer = {"values": np.asarray(values, dtype=float).tolist()}
        except Exception as error:  # an estimator may refuse a game or a budget: the others go on
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)
