"""Facts about a result, for people and for code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

UNKNOWN = "unknown"
"""The code of a sentence that came without one: from a support or trainer of your own, or from an older file."""


class Note(str):
    """A sentence that a reader of a result should know, with a code and the figures in it.

    It reads, prints and compares as its text. Code goes by `code` and `data` and never by the words.

    Parameters
    ----------
    code : str
        What kind of fact it is, such as ``"support-empty"``; the reference lists them all.
    text : str
        One English sentence.
    data
        The numbers and names in the sentence; what JSON cannot hold becomes text.

    Examples
    --------
    >>> note = Note("support-empty", "3 of 40 test rows have an empty support.", n_empty=3, n_tests=40)
    >>> print(note)
    3 of 40 test rows have an empty support.
    >>> note.code, note.data["n_empty"]
    ('support-empty', 3)
    """

    code: str
    data: Mapping[str, Any]

    def __new__(cls, code: str, text: str, /, **data: Any) -> Note:
        note = super().__new__(cls, text)
        note.code, note.data = code, MappingProxyType(plain(data))
        return note

    def __reduce__(self) -> tuple[Any, ...]:
        return note_of, (self.to_dict(),)

    @property
    def text(self) -> str:
        """The sentence, without code and data."""
        return str.__str__(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the note as JSON holds it."""
        return {"code": self.code, "text": self.text, "data": dict(self.data)}


def note_of(record: Mapping[str, Any] | str) -> Note:
    """Return the note that `Note.to_dict` described, or that a sentence without a code is."""
    if isinstance(record, Note):
        return record
    if isinstance(record, str):
        return Note(UNKNOWN, record)
    return Note(record["code"], record["text"], **record["data"])


def notes_of(sentences: Iterable[str]) -> list[Note]:
    """Return notes, each once: several folds may have found the same."""
    return [note_of(sentence) for sentence in dict.fromkeys(sentences)]


def plain(value: Any) -> Any:
    """Return what JSON can hold of a value: numbers, texts, lists and dicts, and null for NaN and infinity."""
    if isinstance(value, Note):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if type(value).__name__ in ("NAType", "NaTType") else str(value)  # pandas, which is not imported here
