"""Facts about a result, for people and for code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
        The numbers and names in the sentence, as JSON can hold them.

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

    def __new__(cls, code: str, text: str, **data: Any) -> Note:
        note = super().__new__(cls, text)
        note.code = code
        note.data = data
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


def note_of(record: Mapping[str, Any]) -> Note:
    """Return the note that `Note.to_dict` described."""
    note = Note(record["code"], record["text"])
    note.data = dict(record["data"])
    return note
