"""What values are good for: finding label errors, choosing rows, paying owners, explaining a prediction; and copies."""

from localshapley.tasks.copies import Copies, copies
from localshapley.tasks.curves import Curves, curves
from localshapley.tasks.explain import explain
from localshapley.tasks.mending import Mending, mending, worth_mending
from localshapley.tasks.owners import owners
from localshapley.tasks.select import select
from localshapley.tasks.suspects import suspects
from localshapley.tasks.verdict import Verdict, verdict

__all__ = [
    "Copies",
    "Curves",
    "Mending",
    "Verdict",
    "copies",
    "curves",
    "explain",
    "mending",
    "owners",
    "select",
    "suspects",
    "verdict",
    "worth_mending",
]
