"""What the audit asks of values, if it is given some, and what each kind of finding answers."""

from __future__ import annotations

from typing import Any, Protocol

import pandas as pd

from localshapley.arrays import AnyArray, Floats, Ints, Singles
from localshapley.errors import InvalidArgumentError
from localshapley.models.skill import Skill


class RowValues(Protocol):
    """Values of the rows, as a `Valuation` has them. The audit knows them by this protocol alone, and needs none."""

    @property
    def values(self) -> Floats: ...

    @property
    def stderr(self) -> Floats: ...

    @property
    def spread(self) -> Singles | None: ...

    @property
    def score(self) -> str: ...

    @property
    def skill(self) -> Skill | None: ...

    def to_frame(self) -> pd.DataFrame: ...

    def in_order(self, X: Any, y: Any) -> tuple[Any, AnyArray]: ...

    def below_zero(self, errors: str = "all") -> AnyArray: ...

    def companions(self, n: int, rows: Ints | None = None) -> list[Ints]: ...


def check_values(values: Any) -> None:
    """Refuse anything else in the place of a valuation: its values, say."""
    if not hasattr(values, "in_order"):
        kind = type(values).__name__
        raise InvalidArgumentError(f"values must be what value() returned, or load() read; got {kind}.")
