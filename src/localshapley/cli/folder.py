"""`localshapley value` and `plan` of a folder of files, which may be larger than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from localshapley.cli.data import NOT_PREPARED, TASKS, no_column
from localshapley.cli.options import RunOptions
from localshapley.cli.output import Output
from localshapley.cli.valuing import find_model, find_support, solution
from localshapley.errors import InvalidArgumentError, LocalShapleyError, unknown_name
from localshapley.io.tables import read_table
from localshapley.notes import Note

if TYPE_CHECKING:
    from localshapley.data.chunked_rows import ChunkedRows

NOT_HERE = (
    "test_size",
    "cv",
    "id",
    "owner",
    "drop",
    "category",
    "play_owners",
    "drop_missing_target",
    "drop_rare_classes",
)
"""Options of tables that are read into memory."""


def arguments_of_folder(run: RunOptions, output: Output) -> tuple[dict[str, Any], list[Note]]:
    """The arguments of `value` for a folder of files, and how its columns were prepared, in words."""
    from localshapley.data.out_of_core import parts_of
    from localshapley.data.rows import are_amounts

    _check(run)
    assert run.test is not None
    test = read_table(run.test, run.encoding, sep=run.sep, na=run.na)
    if run.target not in test.columns:
        raise no_column("--target", run.target, test, run.test)
    parts = parts_of(run.train, run.target)
    assert parts is not None
    labels, _ = parts.distinct_labels()
    regression = are_amounts(labels) if run.task == "auto" else run.task == "regression"
    model, steps = find_model(run.model, regression), [NOT_PREPARED]
    if not run.no_prepare:
        model, steps = _scaled(model, parts)
    output.status(f"{parts.n_rows:,} rows of {run.train}: {'; '.join(steps)}")
    given = {
        "X": run.train,
        "y": run.target,
        "X_test": test[parts.names],
        "y_test": test[run.target].to_numpy(),
        "model": model,
        "support": find_support(run.support),
        "score": run.score,
        "seed": run.seed,
        "n_jobs": run.jobs,
        **solution(run),
        "progress": not output.quiet,
    }
    return given, steps


def _check(run: RunOptions) -> None:
    """Refuse options that need a table in memory."""
    if run.task not in TASKS:
        raise unknown_name("--task", run.task, TASKS)
    wrong = [name for name in NOT_HERE if getattr(run, name)]
    if wrong:
        raise InvalidArgumentError(
            f"--{wrong[0].replace('_', '-')} needs a table in one file, but {run.train} is a folder, which is read in "
            "parts; leave it out, or join the files."
        )
    if run.test is None:
        raise InvalidArgumentError(f"{run.train} is a folder, which needs test rows in their own file: --test FILE.")


def _scaled(model: Any, parts: ChunkedRows) -> tuple[Any, list[Note]]:
    """The model behind a scaler of the numbers in all rows; the scaler is fitted, once, part by part."""
    import numpy as np
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from localshapley.supports.chunked import ChunkedMatrix

    first, _ = parts.gather(np.zeros(1, dtype=np.int64))
    words = [str(name) for name, kind in first.dtypes.items() if kind.kind not in "biuf"]
    if words:
        raise LocalShapleyError(
            f"column {words[0]!r} of the folder does not hold numbers; encode or leave out such columns beforehand, or "
            "give a pipeline with frozen steps (--model module:object --no-prepare)."
        )
    moments = ChunkedMatrix(parts, (parts.n_rows, parts.n_columns), _as_numbers).moments()
    scaler = StandardScaler().fit(first)
    scaler.mean_, scaler.var_, scaler.scale_ = moments.mean, moments.variance, moments.scale
    done = Note("numbers-scaled", f"scaled {parts.n_columns} columns of numbers", n_columns=parts.n_columns)
    return make_pipeline(FrozenEstimator(scaler), model), [done]


def _as_numbers(X: Any) -> Any:
    return X.to_numpy(dtype="float64")
