"""What values are good for: finding and mending wrong labels, copies, choosing rows, paying owners, explaining."""

from localshapley.tasks.apply import Applied, apply, contents
from localshapley.tasks.copies import Copies, copies
from localshapley.tasks.curves import Curves, curves
from localshapley.tasks.explain import explain
from localshapley.tasks.mending import Mending, mending, worth_mending
from localshapley.tasks.owners import owners
from localshapley.tasks.score_change import ScoreChange
from localshapley.tasks.select import select
from localshapley.tasks.suspects import suspects
from localshapley.tasks.verdict import Verdict, verdict

__all__ = [
    "Applied",
    "Copies",
    "Curves",
    "Mending",
    "ScoreChange",
    "Verdict",
    "apply",
    "contents",
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
