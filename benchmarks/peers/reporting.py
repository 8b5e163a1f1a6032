"""What a peer prints: one line of JSON."""

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any


def report(packages: Sequence[str], seconds: float, values: Any, fits: int | None = None) -> None:
    """Print the versions of the packages, seconds (of the valuation alone), one number for each row, and trainings."""
    found = {"versions": {name: version(name) for name in packages}, "seconds": seconds, "fits": fits}
    print(json.dumps({"library": packages[0], **found, "values": [float(one) for one in values]}))
