"""The store: a file that keeps the scores of trained coalitions, so that none has to be trained twice.

It knows coalitions and test rows only by their digests. A score is kept under three of them: the fingerprint of
everything besides the rows that decides it, the coalition, and the test row.
"""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from localshapley.arrays import AnyArray, Floats, Ints, Masks, offsets
from localshapley.engine.store_file import ERRORS, Connection, StoreFile
from localshapley.errors import InvalidArgumentError
from localshapley.runtime.argument_checks import check_number

AnyRow: TypeAlias = tuple[Any, ...]
RECORD = np.dtype([("test", "<i4"), ("score", "<f8")])  # of a coalition, ascending in the number of the test row
DIGEST_BYTES = 16
MOST_TESTS = 2**31  # what a record can number
CHUNK = 500  # digests in one query; old versions of SQLite take 999


class FingerprintSummary(NamedTuple):
    """What a store holds for one fingerprint, and when it was first and last added to."""

    about: str
    n_coalitions: int
    first: datetime
    last: datetime


@dataclass(frozen=True)
class StoreInfo:
    """What a store holds.

    Attributes
    ----------
    path : Path
    bytes : int
        Size on disk, with the log of changes that SQLite keeps beside the file.
    n_coalitions, n_scores : int
    contents : list of FingerprintSummary
        One for each fingerprint, oldest first.
    """

    path: Path
    bytes: int
    n_coalitions: int
    n_scores: int
    contents: list[FingerprintSummary]


class Store:
    """Scores of trained coalitions in a file, which is created if it does not exist.

    What has been added stays when the process is killed. Threads and processes may use one file at once, on a disk of
    the same machine. A store can be forked and pickled: the copy reopens the file when it is first used.

    A digest is 128 bits, as two words. Coalition `c` has the digest `keys[c]` and the test rows
    `test_keys[test_indptr[c]:test_indptr[c + 1]]`.

    Parameters
    ----------
    path : str or path
    fastest : float, default=0.0003
        Seconds. A run whose trainings are quicker does not use the store: training is faster than reading.
    timeout : float, default=60
        Seconds to wait for another process that writes.

    Examples
    --------
    >>> import tempfile
    >>> keys, test_keys = np.array([[1, 2]], dtype=np.uint64), np.array([[3, 4], [5, 6]], dtype=np.uint64)
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/scores.db") as store:
    ...     store.add(b"0123456789abcdef", "a model", keys, np.array([0, 1]), test_keys[:1], np.array([0.25]))
    ...     store.lookup(b"0123456789abcdef", keys, np.array([0, 2]), test_keys)
    array([0.25,  nan])
    """

    def __init__(self, path: str | os.PathLike[str], *, fastest: float = 300e-6, timeout: float = 60.0) -> None:
        check_number("Store(fastest=...)", fastest, least=0)
        check_number("Store(timeout=...)", timeout, least=0)
        self._file, self.fastest = StoreFile(path, float(timeout)), float(fastest)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    def lookup(self, fingerprint: bytes, keys: Masks, test_indptr: Ints, test_keys: Masks) -> Floats:
        """Find the score of each coalition on each of its test rows, NaN where it is not known.

        Parameters
        ----------
        fingerprint : bytes of length 16
        keys : array of shape (n_coalitions, 2)
        test_indptr : array of shape (n_coalitions + 1,)
        test_keys : array of shape (n_scores, 2)

        Returns
        -------
        array of shape (n_scores,)
        """
        keys, test_indptr, test_keys = _checked(fingerprint, keys, test_indptr, test_keys)
        coalition, names = _number(keys)
        test, test_names = _number(test_keys)
        scores = np.full(len(test_keys), np.nan)
        with self._file.transaction() as connection:
            found = connection.execute("SELECT id FROM fingerprints WHERE digest = ?", (fingerprint,)).fetchone()
            if found is None:
                return scores
            ids = _test_ids(connection, test_names)[test]
            pairs, known = _stored(connection, found[0], fingerprint, names)
        if len(pairs):
            asked = np.where(ids < 0, -1, _pairs(np.repeat(coalition, np.diff(test_indptr)), ids))
            place = np.minimum(np.searchsorted(pairs, asked), len(pairs) - 1)
            hit = pairs[place] == asked
            scores[hit] = known[place[hit]]
        return scores

    def add(
        self, fingerprint: bytes, about: str, keys: Masks, test_indptr: Ints, test_keys: Masks, scores: Floats
    ) -> None:
        """Keep scores: all of them or, if that fails, none. A score that is already there is not changed.

        Parameters
        ----------
        fingerprint : bytes of length 16
        about : str
            What the fingerprint stands for, in words.
        keys : array of shape (n_coalitions, 2)
        test_indptr : array of shape (n_coalitions + 1,)
        test_keys : array of shape (n_scores, 2)
        scores : array of shape (n_scores,)
            NaN is left out.
        """
        keys, test_indptr, test_keys = _checked(fingerprint, keys, test_indptr, test_keys)
        scores = np.asarray(scores, dtype=np.float64)
        if scores.shape != (len(test_keys),):
            raise InvalidArgumentError(f"scores must have one entry for each test key; got shape {scores.shape}.")
        given = ~np.isnan(scores)
        if not given.any():
            return
        coalition, names = _number(keys)
        test, test_names = _number(test_keys[given])
        owner = np.repeat(coalition, np.diff(test_indptr))[given]
        with self._file.transaction(write=True) as connection:
            number = _fingerprint_id(connection, fingerprint, about)
            ids = _test_ids(connection, test_names, add=True)[test]
            pairs, known = _stored(connection, number, fingerprint, names)
            before = np.bincount(pairs >> 32, minlength=len(names))
            # the first of equal pairs is kept, so what is stored comes first
            pairs, first = np.unique(np.concatenate([pairs, _pairs(owner, ids)]), return_index=True)
            records = np.empty(len(pairs), dtype=RECORD)
            records["test"] = pairs & 0xFFFFFFFF
            records["score"] = np.concatenate([known, scores[given]])[first]
            after = np.bincount(pairs >> 32, minlength=len(names))
            _write(connection, number, fingerprint, names, records, offsets(after), np.flatnonzero(after > before))

    def info(self) -> StoreInfo:
        """Count what the store holds."""
        with self._file.transaction() as connection:
            rows = connection.execute(
                "SELECT about, (SELECT count(*) FROM coalitions WHERE fingerprint = f.id), created, updated "
                "FROM fingerprints AS f ORDER BY created, id"
            )
            contents = [
                FingerprintSummary(str(about), n, _moment(first), _moment(last)) for about, n, first, last in rows
            ]
            length = connection.execute("SELECT sum(length(scores)) FROM coalitions").fetchone()[0] or 0
        n_coalitions = sum(content.n_coalitions for content in contents)
        return StoreInfo(self.path, self._file.size(), n_coalitions, length // RECORD.itemsize, contents)

    def vacuum(self) -> tuple[int, int]:
        """Rewrite the file without its gaps; returns the bytes before and after."""
        with self._file.connected() as connection:
            before = self._file.size()
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return before, self._file.size()

    def verify(self) -> list[str]:
        """Read everything and check it; returns the problems found, none if the store is sound."""
        with self._file.transaction() as connection:
            problems: list[str] = []
            try:
                problems += (text for (text,) in connection.execute("PRAGMA integrity_check(10)") if text != "ok")
                problems += _wrong_rows(connection)
            except ERRORS as error:
                problems.append(str(error))
            return problems

    def close(self) -> None:
        """Close the file; the store can no longer be used."""
        self._file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}){' (closed)' if self._file.closed else ''}"


def _checked(fingerprint: bytes, keys: Masks, test_indptr: Ints, test_keys: Masks) -> tuple[Masks, Ints, Masks]:
    keys, test_keys = (np.asarray(digests, dtype=np.uint64).reshape(-1, 2) for digests in (keys, test_keys))
    test_indptr = np.asarray(test_indptr, dtype=np.int64)
    if len(fingerprint) != DIGEST_BYTES:
        raise InvalidArgumentError(f"fingerprint must have {DIGEST_BYTES} bytes; got {len(fingerprint)}.")
    if len(test_indptr) != len(keys) + 1 or test_indptr[0] != 0 or test_indptr[-1] != len(test_keys):
        raise InvalidArgumentError(
            f"test_indptr must have {len(keys) + 1} entries, one more than keys, and go from 0 to {len(test_keys)}, "
            f"the number of test keys; got {test_indptr}."
        )
    return keys, test_indptr, test_keys


def _number(keys: Masks) -> tuple[Ints, list[bytes]]:
    """Number the distinct digests in order of appearance: the number of each row, and the bytes of each number."""
    import pandas as pd

    number: Ints = pd.factorize(keys[:, 1])[0].astype(np.int64)
    row = _row_of_each(number)
    if (keys[row[number], 0] != keys[:, 0]).any():  # one word does not distinguish them
        other: Ints = pd.factorize(keys[:, 0])[0].astype(np.int64)
        number = pd.factorize(number * len(keys) + other)[0].astype(np.int64)
        row = _row_of_each(number)
    text = keys[row].astype("<u8").tobytes()
    return number, [text[at : at + DIGEST_BYTES] for at in range(0, len(text), DIGEST_BYTES)]


def _row_of_each(number: Ints) -> Ints:
    row = np.empty(number.max(initial=-1) + 1, dtype=np.int64)
    row[number] = np.arange(len(number))
    return row


def _pairs(coalition: Ints, test: Ints) -> Ints:
    """One number for a coalition and a test row."""
    return (coalition << 32) | test


def _fingerprint_id(connection: Connection, digest: bytes, about: str) -> int:
    now = time.time()
    connection.execute(
        "INSERT INTO fingerprints (digest, about, created, updated) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (digest) DO UPDATE SET updated = excluded.updated",
        (digest, about, now, now),
    )
    return _whole(connection.execute("SELECT id FROM fingerprints WHERE digest = ?", (digest,)).fetchone()[0])


def _test_ids(connection: Connection, names: list[bytes], add: bool = False) -> Ints:
    """Number that each test row has in the store, −1 if none; `add` gives it one."""
    known = connection.tests
    query = "SELECT digest, id, crc FROM tests WHERE digest IN"
    for name, number, crc in _select(connection, query, (), [name for name in names if name not in known]):
        if not _is_test_sound(name, number, crc):
            raise sqlite3.DatabaseError("a test row does not match its checksum")
        known[name] = number
    ids = np.array([known.get(name, -1) for name in names], dtype=np.int64)
    if add:  # these are not `known` until the transaction has ended
        new = np.flatnonzero(ids < 0)
        ids[new] = np.arange(len(new)) + _whole(
            connection.execute("SELECT coalesce(max(id), -1) + 1 FROM tests").fetchone()[0], MOST_TESTS - len(new)
        )
        rows = ((int(ids[i]), names[i], _test_crc(names[i], int(ids[i]))) for i in new)
        connection.executemany("INSERT INTO tests (id, digest, crc) VALUES (?, ?, ?)", rows)
    return ids


def _stored(connection: Connection, number: int, fingerprint: bytes, names: list[bytes]) -> tuple[Ints, Floats]:
    """All that is known of the coalitions: pairs of coalition and test row, ascending, and their scores."""
    seed = zlib.crc32(fingerprint)
    place = {name: i for i, name in enumerate(names)}
    query = "SELECT key, scores, crc FROM coalitions WHERE fingerprint = ? AND key IN"
    rows = _select(connection, query, (number,), names)
    if not all(_is_sound(seed, *row) for row in rows):
        raise sqlite3.DatabaseError("the scores of a coalition do not match their checksum")
    rows = sorted((row for row in rows if row[0] in place), key=lambda row: place[row[0]])
    owner = np.array([place[key] for key, _, _ in rows], dtype=np.int64)
    sizes = np.array([len(scores) // RECORD.itemsize for _, scores, _ in rows], dtype=np.int64)
    records = np.frombuffer(b"".join(scores for _, scores, _ in rows), dtype=RECORD)
    return _pairs(np.repeat(owner, sizes), records["test"].astype(np.int64)), records["score"].astype(np.float64)


def _select(connection: Connection, query: str, first: tuple[object, ...], names: list[bytes]) -> list[AnyRow]:
    """Rows of a query that ends in `IN`, for many names, in the order of the index."""
    rows: list[AnyRow] = []
    names = sorted(names)
    for start in range(0, len(names), CHUNK):
        part = names[start : start + CHUNK]
        rows += connection.execute(f"{query} ({','.join('?' * len(part))})", (*first, *part))
    return rows


def _write(
    connection: Connection,
    number: int,
    fingerprint: bytes,
    names: list[bytes],
    records: AnyArray,
    indptr: Ints,
    changed: Ints,
) -> None:
    """Write the changed coalitions; coalition `c` has the records from `indptr[c]` to `indptr[c + 1]`."""
    seed, text, ends = zlib.crc32(fingerprint), records.tobytes(), (indptr * RECORD.itemsize).tolist()
    order = sorted(changed.tolist(), key=names.__getitem__)  # that of the index: fewer pages change at a time
    rows = ((names[c], text[ends[c] : ends[c + 1]]) for c in order)
    connection.executemany(
        "INSERT INTO coalitions (fingerprint, key, scores, crc) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (fingerprint, key) DO UPDATE SET scores = excluded.scores, crc = excluded.crc",
        ((number, key, scores, _crc(seed, key, scores)) for key, scores in rows),
    )


# The checksum of a row covers the digests that it is found by, so that no damage can give the scores of another row.


def _crc(seed: int, key: bytes, scores: bytes) -> int:
    return zlib.crc32(scores, zlib.crc32(key, seed))


def _is_sound(seed: int, key: object, scores: object, crc: object) -> bool:
    if not isinstance(key, bytes) or not isinstance(scores, bytes):  # damage can change a type as well
        return False
    return len(scores) % RECORD.itemsize == 0 and _crc(seed, key, scores) == crc


def _test_crc(name: bytes, number: int) -> int:
    return zlib.crc32(str(number).encode(), zlib.crc32(name))


def _is_test_sound(name: object, number: object, crc: object) -> bool:
    if not isinstance(name, bytes) or not isinstance(number, int) or not 0 <= number < MOST_TESTS:
        return False
    return _test_crc(name, number) == crc


def _whole(number: object, most: int = 2**63 - 1) -> int:
    """A number that SQLite counts by, if it is one."""
    if not isinstance(number, int) or not 0 <= number <= most:
        raise sqlite3.DatabaseError("a number is out of range")
    return number


def _wrong_rows(connection: Connection) -> list[str]:
    """Problems that the checksums show."""
    tests = connection.execute("SELECT digest, id, crc FROM tests").fetchall()
    known = np.array([number for _, number, _ in tests if isinstance(number, int)], dtype=np.int64)
    fingerprints = connection.execute("SELECT id, digest FROM fingerprints").fetchall()
    seeds = {number: zlib.crc32(digest) for number, digest in fingerprints if isinstance(digest, bytes)}
    wrong = lost = 0
    rows = connection.execute("SELECT fingerprint, key, scores, crc FROM coalitions")
    while part := rows.fetchmany(20_000):
        sound = [row[2] for row in part if row[0] in seeds and _is_sound(seeds[row[0]], *row[1:])]
        wrong += len(part) - len(sound)
        lost += int((~np.isin(np.frombuffer(b"".join(sound), dtype=RECORD)["test"], known)).sum())
    counted = (
        (sum(not _is_test_sound(*row) for row in tests), "test rows do not match their checksums"),
        (wrong, "coalitions have scores that do not match their checksums"),
        (lost, "scores belong to missing test rows"),
    )
    return [f"{n} {what}" for n, what in counted if n]


def _moment(seconds: Any) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise sqlite3.DatabaseError("a time cannot be read") from None
