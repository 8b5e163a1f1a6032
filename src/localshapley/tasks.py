"""What values are good for: finding and mending wrong labels, copies, choosing rows, paying owners, explaining."""

from localshapley.audit.apply_decisions import Applied, apply, contents
from localshapley.audit.copies import Copies, copies
from localshapley.audit.label_errors import suspects
from localshapley.audit.mending import Mending, mending, worth_mending
from localshapley.audit.score_change import ScoreChange
from localshapley.audit.verdict import Verdict, verdict
from localshapley.owners.shares import owners
from localshapley.selection.learning_curves import Curves, curves
from localshapley.selection.top_rows import select
from localshapley.valuation.explain import explain

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
