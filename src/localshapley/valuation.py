"""The result of a valuation."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from localshapley.arrays import Floats, Ints, Masks, Singles
from localshapley.errors import InvalidArgumentError, LocalShapleyError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from localshapley.plots import Plots

FORMAT = "localshapley valuation 1"


@dataclass(frozen=True)
class Cost:
    """What a valuation took.

    Attributes
    ----------
    trainer : str
        What trained the coalitions.
    trainings : int
        Coalitions trained; 0 where the model has a closed form.
    draws : int
        Coalitions scored, over all test rows (or classes of them, in a closed form); without reuse each would have
        been trained.
    distinct : int
        Distinct coalitions among them.
    reused : int
        Draws that needed no training of their own.
    trivial : int
        Trainings whose outcome was known: no row, or one class.
    seconds : float
    stored : int
        Coalitions that a store knew, and that needed no training.
    """

    trainer: str
    trainings: int
    draws: int
    distinct: int
    reused: int
    trivial: int
    seconds: float
    stored: int = 0


@dataclass(frozen=True)
class Origin:
    """What a valuation is of, by contents: enough to tell which of its games are still the same.

    Attributes
    ----------
    fingerprint : bytes
        Digest of model, score and conventions.
    rows, tests : uint64 arrays of shape (n_rows, 2) and (n_tests, 2)
        Digests of training and test rows with their labels.
    nothing : array of shape (n_tests,)
        Score of the empty coalition.
    """

    fingerprint: bytes
    rows: Masks
    tests: Masks
    nothing: Floats

    def to_text(self) -> bytes:
        """The origin as a text for the header of a file."""
        arrays = (self.rows.astype("<u8"), self.tests.astype("<u8"), self.nothing.astype("<f8"))
        parts = [self.fingerprint, *(array.tobytes() for array in arrays)]
        return json.dumps([b64encode(part).decode() for part in parts]).encode()

    @classmethod
    def from_text(cls, text: bytes) -> Origin:
        """Read what `to_text` wrote."""
        fingerprint, rows, tests, nothing = (b64decode(part, validate=True) for part in json.loads(text))
        return cls(
            fingerprint,
            np.frombuffer(rows, dtype="<u8").astype(np.uint64).reshape(-1, 2),
            np.frombuffer(tests, dtype="<u8").astype(np.uint64).reshape(-1, 2),
            np.frombuffer(nothing, dtype="<f8").astype(np.float64),
        )


@dataclass(frozen=True)
class History:
    """How a sampled run came to its values, round by round.

    Attributes
    ----------
    trainings : array of shape (n_rounds,)
        Coalitions trained by the end of each round.
    values, stderr : arrays of shape (n_rounds, n_rows)
    """

    trainings: Ints
    values: Singles
    stderr: Singles

    @property
    def relative_error(self) -> Floats:
        """`‖stderr‖ / ‖values‖` at the end of each round."""
        size, out = np.linalg.norm(self.values, axis=1), np.zeros(len(self.values))
        np.divide(np.linalg.norm(self.stderr, axis=1), size, out=out, where=size > 0)
        return out


@dataclass(frozen=True, repr=False)
class Valuation:
    """What each training row is worth: the sum over the test rows of its local Shapley value.

    Attributes
    ----------
    values : array of shape (n_rows,)
    stderr : array of shape (n_rows,)
        Standard error of each value; 0 where it is exact.
    cost : Cost
    support_sizes : array of shape (n_tests,)
    n_tests : array of shape (n_rows,)
        Number of test rows that the row can matter to.
    method, model, score, support : str
    stopped : str
        What ended the run, and what was reached.
    notes : list of str
        What a reader of the values should know.
    per_test : sparse array of shape (n_tests, n_rows) or None
        `φ_z(v_t)`, where it was asked for.
    ids : pandas Index or None
        The index of the user's table.
    origin : Origin or None
        What `update` needs to know; kept along with `per_test`.
    spread : array of shape (n_rows, 64) or None
        Errors of sampled values belong together: the covariance of rows `i` and `j` is about
        ``spread[i] @ spread[j]``, the variance of row `i` is ``spread[i] @ spread[i]``.
    history : History or None
        The rounds of a sampled run.
    unit : str
        What is valued: ``"row"``, ``"owner"`` or ``"node"``.
    is_random : bool
        Whether the model draws random numbers: another seed gives other values.
    """

    values: Floats
    stderr: Floats
    cost: Cost
    support_sizes: Ints
    n_tests: Ints
    method: str
    model: str
    score: str
    support: str
    stopped: str
    notes: list[str] = field(default_factory=list)
    per_test: sparse.csr_array | None = None
    ids: pd.Index | None = None
    origin: Origin | None = None
    spread: Singles | None = None
    history: History | None = None
    unit: str = "row"
    is_random: bool = False

    @property
    def relative_error(self) -> float:
        """Standard errors of all values together, `‖stderr‖ / ‖values‖`."""
        size = float(np.linalg.norm(self.values))
        return float(np.linalg.norm(self.stderr)) / size if size > 0 else 0.0

    def to_frame(self) -> pd.DataFrame:
        """Values as a table with the index of the user's rows: value, stderr, n_tests."""
        import pandas as pd

        index = pd.RangeIndex(len(self.values), name="row") if self.ids is None else self.ids
        return pd.DataFrame({"value": self.values, "stderr": self.stderr, "n_tests": self.n_tests}, index=index)

    def to_polars(self) -> pl.DataFrame:
        """The same as a polars DataFrame, with the index as its first column."""
        try:
            import polars as pl
        except ModuleNotFoundError:
            raise LocalShapleyError("to_polars() needs polars: pip install polars.") from None
        return pl.from_pandas(self.to_frame().reset_index())

    def top(self, n: int = 10) -> pd.DataFrame:
        """The `n` most valuable rows, best first."""
        return self.to_frame().iloc[np.argsort(-self.values, kind="stable")[:n]]

    def bottom(self, n: int = 10) -> pd.DataFrame:
        """The `n` least valuable rows, worst first."""
        return self.to_frame().iloc[np.argsort(self.values, kind="stable")[:n]]

    @property
    def plot(self) -> Plots:
        """Pictures of the valuation: ``plot.ranking()``, ``plot.distribution()``, ... (needs matplotlib)."""
        from localshapley.plots import Plots

        return Plots(self)

    def _repr_html_(self) -> str:
        from localshapley.notebook import to_html

        return to_html(self)

    def save(self, path: str | Path) -> None:
        """Write the valuation to a `.parquet` file; `localshapley.load` reads it back."""
        _save(self, _parquet(path))

    def __repr__(self) -> str:
        best, worst = int(np.argmax(self.values)), int(np.argmin(self.values))
        name = (lambda i: i) if self.ids is None else (lambda i: self.ids[i])
        what = self.unit if self.unit == "owner" else f"training {self.unit}"
        tests = "node" if self.unit == "node" else "row"
        lines = [
            f"Valuation of {len(self.values)} {what}s over {len(self.support_sizes)} test {tests}s",
            f"  model    {self.model}",
            f"  score    {self.score}, summed over the test {tests}s",
            f"  support  {self.support}: {_range(self.support_sizes)} {self.unit}s",
            f"  method   {self.method}: {_cost_in_words(self.cost)}",
            f"  stopped  {self.stopped}",
            f"  values   sum {self.values.sum():.4g}; best {self.values[best]:.4g} ({self.unit} {name(best)}), "
            f"worst {self.values[worst]:.4g} ({self.unit} {name(worst)}); {int((self.values < 0).sum())} below zero",
        ]
        return "\n".join(lines + [f"  note     {note}" for note in self.notes])


def _cost_in_words(cost: Cost) -> str:
    done = f"{cost.trainings:,} training{'s' * (cost.trainings > 1)} in" if cost.trainings else "no training,"
    extra = [f"{n:,} {what}" for n, what in ((cost.stored, "from the store"), (cost.reused, "saved by reuse")) if n]
    return ", ".join([f"{done} {cost.seconds:.2f} s", *extra])


def _range(sizes: Ints) -> str:
    low, high = int(sizes.min(initial=2**62)), int(sizes.max(initial=0))
    return str(high) if low >= high else f"{low} to {high}"


def load(path: str | Path) -> Valuation:
    """Read a valuation that `Valuation.save` wrote.

    Nothing is unpickled: a file can give wrong numbers but cannot run code.
    """
    path = _parquet(path)
    if not path.exists():
        raise InvalidArgumentError(f"path {str(path)!r} does not exist.")
    try:
        return _load(path)
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise LocalShapleyError(
            f"{str(path)!r} is not a valuation that this version can read ({error}); it must come from Valuation.save."
        ) from error


def _parquet(path: str | Path) -> Path:
    if Path(path).suffix != ".parquet":
        raise InvalidArgumentError(f"path must end in .parquet; got {str(path)!r}. For other formats use to_frame().")
    return Path(path)


def _header(v: Valuation) -> str:
    names = ("method", "model", "score", "support", "stopped", "notes", "unit", "is_random")
    return json.dumps({"format": FORMAT, "cost": asdict(v.cost), **{name: getattr(v, name) for name in names}})


def _from_header(text: str, **arrays: Any) -> Valuation:
    header = json.loads(text)
    if header.pop("format", None) != FORMAT:
        raise ValueError(f"no {FORMAT!r} header")
    return Valuation(cost=Cost(**header.pop("cost")), **header, **arrays)


def _save(v: Valuation, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(v.to_frame())
    if v.per_test is not None:
        by_row = v.per_test.tocsc()
        parts = np.asarray(by_row.indptr, dtype=np.int32)
        for name, flat in (("tests", by_row.indices), ("test_values", by_row.data)):
            table = table.append_column(name, pa.ListArray.from_arrays(pa.array(parts), pa.array(flat)))
    for name, lists in _lists(v).items():
        table = table.append_column(name, pa.FixedSizeListArray.from_arrays(pa.array(lists.ravel()), lists.shape[1]))
    extra = {
        b"localshapley": _header(v).encode(),
        b"localshapley.support_sizes": json.dumps(v.support_sizes.tolist()).encode(),
        b"localshapley.has_ids": b"1" if v.ids is not None else b"0",
    }
    if v.history is not None:
        extra[b"localshapley.trainings"] = json.dumps(v.history.trainings.tolist()).encode()
    if v.origin is not None:
        extra[b"localshapley.origin"] = v.origin.to_text()
    pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), **extra}), path)


def _lists(v: Valuation) -> dict[str, Singles]:
    """Columns of a file that hold several numbers for each row."""
    lists = {} if v.spread is None else {"spread": v.spread}
    if v.history is not None:
        lists |= {"history_values": v.history.values.T, "history_stderr": v.history.stderr.T}
    return lists


def _load(path: Path) -> Valuation:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    meta = table.schema.metadata or {}
    if b"localshapley" not in meta:
        raise ValueError("no valuation header")
    lists = ("tests", "test_values", "spread", "history_values", "history_stderr")
    frame = table.drop_columns([c for c in lists if c in table.column_names]).to_pandas()
    sizes = np.array(json.loads(meta[b"localshapley.support_sizes"]), dtype=np.int64)
    per_test = None
    if "tests" in table.column_names:
        tests, data = table["tests"].combine_chunks(), table["test_values"].combine_chunks()
        by_row = sparse.csc_array(
            (data.flatten().to_numpy(), tests.flatten().to_numpy(), tests.offsets.to_numpy()),
            shape=(len(sizes), len(frame)),
        )
        per_test = by_row.tocsr()
    several = {
        name: table[name].combine_chunks().flatten().to_numpy().reshape(len(frame), -1)
        for name in lists[2:]
        if name in table.column_names
    }
    history = None
    if "history_values" in several:
        trainings = np.array(json.loads(meta[b"localshapley.trainings"]), dtype=np.int64)
        history = History(trainings, several["history_values"].T.copy(), several["history_stderr"].T.copy())
    return _from_header(
        meta[b"localshapley"].decode(),
        values=frame["value"].to_numpy(),
        stderr=frame["stderr"].to_numpy(),
        n_tests=frame["n_tests"].to_numpy(),
        support_sizes=sizes,
        per_test=per_test,
        ids=frame.index if meta[b"localshapley.has_ids"] == b"1" else None,
        origin=Origin.from_text(meta[b"localshapley.origin"]) if b"localshapley.origin" in meta else None,
        spread=several.get("spread"),
        history=history,
    )
