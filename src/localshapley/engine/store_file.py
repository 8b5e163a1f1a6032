"""The SQLite file of a store: how it is opened, shared between threads and processes, and its errors in plain words."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from localshapley.errors import InvalidArgumentError, LocalShapleyError

APPLICATION = 0x6C6F7368  # "losh": what makes an SQLite file ours
FORMAT = 1
LAYOUT = (
    "CREATE TABLE fingerprints (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, about TEXT NOT NULL, "
    "created REAL NOT NULL, updated REAL NOT NULL)",
    "CREATE TABLE tests (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, crc INTEGER NOT NULL)",
    "CREATE TABLE coalitions (id INTEGER PRIMARY KEY, fingerprint INTEGER NOT NULL, key BLOB NOT NULL, "
    "scores BLOB NOT NULL, crc INTEGER NOT NULL, UNIQUE (fingerprint, key))",
    f"PRAGMA user_version = {FORMAT}",
    f"PRAGMA application_id = {APPLICATION}",
)
TABLES = LAYOUT[:3]
ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the latter where an error quotes damaged text


class StoreError(LocalShapleyError):
    """A store cannot be opened, read or written; the message says why and what to do."""


class Connection(sqlite3.Connection):
    """A connection, and the numbers of the test rows that were read over it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.tests: dict[bytes, int] = {}


class StoreFile:
    """A store's file, created if it does not exist; a copy (forked, pickled) reopens it when it is first used."""

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        try:
            self.path, self.timeout = Path(os.path.realpath(path)), timeout
        except (TypeError, ValueError):  # the latter for a character that no path may have
            raise InvalidArgumentError(f"store must be a path such as 'run.db'; got {path!r}.") from None
        self.closed = False
        with _LOCK, self._explained():
            _disconnect_all()
            self._connection: Connection | None = _open(self.path, timeout, create=not _is_there(self.path))
            _FILES.add(self)

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """The connection, for one thread at a time."""
        with _LOCK, self._explained():
            if self.closed:
                raise StoreError(f"{self.path} was closed; open it again with Store({str(self.path)!r}).")
            if not _is_writable(self.path):  # read-only, see `_open`, or gone
                self.disconnect()
            if self._connection is None:
                self._connection = _open(self.path, self.timeout)
            yield self._connection

    @contextmanager
    def transaction(self, write: bool = False) -> Iterator[Connection]:
        """The connection inside a transaction: the file stays in one state, and an error rolls back all changes."""
        with self.connected() as connection:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield connection
                if write:
                    connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def size(self) -> int:
        """Bytes on disk, with the log of changes that SQLite keeps beside the file."""
        return sum(os.path.getsize(file) for file in (self.path, _log(self.path)) if os.path.exists(file))

    def close(self) -> None:
        """Close the file for good."""
        with _LOCK:
            self.closed = True
            self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; the next use opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into ones that say what to do."""
        try:
            yield
        except ERRORS as error:
            raise StoreError(f"{self.path} {_explanation(str(error), self.timeout)}") from error

    def __getstate__(self) -> tuple[Path, float, bool]:
        return self.path, self.timeout, self.closed

    def __setstate__(self, state: tuple[Path, float, bool]) -> None:
        self.path, self.timeout, self.closed = state
        self._connection = None
        with _LOCK:
            _FILES.add(self)


# One lock for all stores of a process. It is held while the process forks, with every connection closed: what SQLite
# knows about its own file locks would be wrong in the child, even for a connection that the child opens itself.
_LOCK = threading.RLock()
_FILES: weakref.WeakSet[StoreFile] = weakref.WeakSet()


def _disconnect_all() -> None:
    for file in list(_FILES):
        file.disconnect()


def _before_fork() -> None:
    _LOCK.acquire()
    _disconnect_all()


def _after_fork() -> None:
    _LOCK.release()


def _after_fork_in_child() -> None:
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def _explanation(text: str, timeout: float) -> str:
    if "disk is full" in text:
        return "cannot be written: the disk is full. Free space and run again; what was stored before is still there."
    if "locked" in text:
        return f"has been locked by another process for {timeout:.0f} s; wait for it to end, or use another path."
    if "readonly" in text:
        return "is read-only: get write permission for it and for its folder, or use another path."
    if "unable to open" in text:
        return f"cannot be opened ({text}); check that it exists, and that it and its folder are writable."
    if "I/O" in text:
        return f"could not be read or written ({text}): the disk is full or failing. What was stored before is kept."
    return (
        f"is damaged ({text}). Restore a backup of it, or move it away together with its -wal file: "
        "what it held will be trained again."
    )


def _is_there(path: Path) -> bool:
    """Whether there is a store; anything else is refused before SQLite can touch it.

    No connection of this process may be open: closing the file releases the locks that SQLite holds on it.
    """
    if os.path.isdir(path):
        raise StoreError(f"{path} is a folder, but a store is a file; give a path in it, such as {path / 'scores.db'}.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise StoreError(f"{path} is not a regular file; use another path.")
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        _check_folder(path)
        return False
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); get permission, or use another path.") from error
    if not head:  # left by a process that was killed before its first write
        return False
    if not head.startswith(b"SQLite format 3\0") or len(head) < 100:
        raise StoreError(f"{path} is not a store, or its beginning was overwritten; use another path.")
    _check_origin(path, int.from_bytes(head[68:72], "big"), int.from_bytes(head[60:64], "big"))
    return True


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreError(f"{path} cannot be created: the folder {path.parent} does not exist; create it first.")
    if not os.access(path.parent, os.W_OK):
        raise StoreError(f"{path} cannot be created: the folder {path.parent} is not writable; use another path.")


def _check_origin(path: Path, application: int, version: int) -> None:
    if application != APPLICATION:
        raise StoreError(f"{path} is an SQLite database of another program; use another path.")
    if version != FORMAT:
        age = "a newer" if version > FORMAT else "an older"
        raise StoreError(
            f"{path} was made by {age} version of localshapley (format {version}, this one reads {FORMAT}); "
            "install that version, or use another path."
        )


def _open(path: Path, timeout: float, create: bool = False) -> Connection:
    """Connect to a store.

    One that is not writable is treated as immutable unless its log shows that another process is using it, so that no
    file has to be created beside it. This may change later, so each operation reopens it.
    """
    if create:
        mode = "rwc"
    elif _is_writable(path):
        mode = "rw"
    else:
        mode = "ro" if os.path.exists(_log(path)) else "ro&immutable=1"
    address = f"{path.as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        address, timeout=timeout, isolation_level=None, check_same_thread=False, factory=Connection, uri=True
    )
    try:
        if mode.startswith("rw") and _pragma(connection, "page_count") == 0:  # new, or its creator was killed
            _lay_out(connection)
        _check_origin(path, _pragma(connection, "application_id"), _pragma(connection, "user_version"))
        _check_layout(connection)
        for setting in ("synchronous = NORMAL", "cache_size = -65536", "trusted_schema = OFF", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
        if mode.startswith("rw"):
            _use_log(connection, timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_layout(connection: Connection) -> None:
    """Refuse tables of another make, whose columns could hold anything, and whatever else runs when they are used."""
    others = connection.execute("SELECT name FROM sqlite_master WHERE sql IS NOT NULL AND sql NOT IN (?, ?, ?)", TABLES)
    if (other := others.fetchone()) is not None:
        raise sqlite3.DatabaseError(f"{str(other[0])[:50]!r} is not as a store has it")


def _log(path: Path) -> str:
    return f"{path}-wal"


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _lay_out(connection: Connection) -> None:
    """Create the tables, unless another process was faster."""
    connection.execute("BEGIN IMMEDIATE")
    if _pragma(connection, "application_id") == 0:
        for statement in LAYOUT:
            connection.execute(statement)
    connection.execute("COMMIT")


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _use_log(connection: Connection, timeout: float) -> None:
    """Switch on the write-ahead log; SQLite does not wait for other processes here, so this does."""
    end = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.01)
