"""The files that a command writes: refused before any work where they would destroy others, and told if they fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from localshapley.cli.options import RunOptions
from localshapley.errors import InvalidArgumentError, LocalShapleyError
from localshapley.io.tables import kind_of

Named = Mapping[str, Path | None]
"""Files by the option or argument that names them; None where it is not given."""


def check_files(*, read: Named, written: Named) -> None:
    """Refuse to write over what the command reads, to write two results to one file, and into a missing folder."""
    taken = {name: path for name, path in read.items() if path is not None}
    for name, path in written.items():
        if path is None:
            continue
        check_folder(path)
        for other, there in taken.items():
            if _is_in(path, there):
                which = f"in {other}, the folder {there}" if there.is_dir() else f"also {other}"
                raise InvalidArgumentError(f"{name} {path} is {which}, and would overwrite it; give another file.")
        taken[name] = path


def check_run(run: RunOptions, *, out: Path | None, report: Path | None = None, values: Path | None = None) -> None:
    """The same for a command that values rows; the endings of its results must be right, too."""
    check_files(
        read={"the table": run.train, "--test": run.test, "--values": values},
        written={"--out": out, "--report": report, "--store": run.store},
    )
    if out is not None:
        kind_of(out)
    check_page("--report", report)


def check_folder(path: Path | None) -> None:
    """Refuse a file in a folder that does not exist, before anything is trained."""
    if path is not None and not path.absolute().parent.is_dir():
        raise InvalidArgumentError(f"{path} cannot be written: the folder {path.parent} does not exist.")


def check_page(option: str, path: Path | None) -> None:
    """Refuse a report under a name that no browser opens."""
    if path is None:
        return
    from localshapley.report.page import PAGES  # heavy

    if path.suffix.lower() not in PAGES:
        raise InvalidArgumentError(f"{option} must end in .html, as a report is a page for a browser; got {path}.")


def _is_in(path: Path, there: Path) -> bool:
    """Whether a path is that of another file, by whatever name, or of a file in a folder."""
    if path.exists() and there.exists() and path.samefile(there):
        return True
    return path.resolve().is_relative_to(there.resolve())


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file that the system refuses to write."""
    try:
        yield
    except OSError as error:
        raise LocalShapleyError(_in_words(path, error)) from error


class Writing:
    """Writes files after the work is done: what goes wrong is told after the answer, which would be lost otherwise."""

    def __init__(self) -> None:
        self._failed: list[tuple[Path, Exception]] = []

    @contextmanager
    def to(self, path: Path) -> Iterator[None]:
        """Write a file."""
        try:
            yield
        except Exception as error:  # a run of hours is behind it, whatever went wrong
            self._failed.append((path, error))

    def wrote(self, path: Path | None) -> bool:
        """Whether a file was asked for and is there."""
        return path is not None and path not in [failed for failed, _ in self._failed]

    def end(self) -> None:
        """Say what could not be written."""
        if self._failed:
            text = "; ".join(_in_words(path, error) for path, error in self._failed)
            raise LocalShapleyError(text) from self._failed[0][1]


def _in_words(path: Path, error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return reason if str(path) in reason else f"{path} cannot be written: {reason}"
