"""What is wrong with a table: wrong labels, copies, odd rows, what mending them is worth, and the mended table.

Nothing here values rows: values are an extra column of some lists, where there are any.
"""

from localshapley.audit.apply_decisions import RepairedTable, apply, contents
from localshapley.audit.base import RowValues
from localshapley.audit.copies import Copies, copies
from localshapley.audit.label_errors import LabelErrors, label_errors
from localshapley.audit.mending import Mending, ScoreChange, mending, worth_mending
from localshapley.audit.verdict import Verdict

__all__ = [
    "Copies",
    "LabelErrors",
    "Mending",
    "RepairedTable",
    "RowValues",
    "ScoreChange",
    "Verdict",
    "apply",
    "contents",
    "copies",
    "label_errors",
    "mending",
    "worth_mending",
]
