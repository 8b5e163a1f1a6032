"""Pieces that other processes train: sent out one by one, back in any order, passed on in theirs."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from typing import TypeAlias

from localshapley.workers.pieces import BatchSizer, Job, Outcome, Piece, Scored

MAX_READY = 1000
"""Maximum number of batches that wait for an earlier one; then nothing new is sent until that one is back."""

Jobs: TypeAlias = Iterator[tuple[int, Job]]
"""Jobs with their numbers."""
Outcomes: TypeAlias = Generator[tuple[int, Outcome], None, None]
"""What came of pieces, by their numbers, in any order."""


class Away:
    """Pieces that are sent to workers and come back in any order.

    Parameters
    ----------
    pieces : iterator of Piece
    sizer : BatchSizer

    Attributes
    ----------
    sent : dict of Piece
        What is not back yet, by number.
    ready : InOrder
        What is back, or needed no worker.
    trouble : list of exceptions
        What went wrong while jobs were asked for.
    """

    def __init__(self, pieces: Iterator[Piece], sizer: BatchSizer) -> None:
        self._new, self._sizer = enumerate(pieces), sizer
        self._again: deque[int] = deque()
        self.sent: dict[int, Piece] = {}
        self.ready = InOrder()
        self.trouble: list[BaseException] = []

    def known(self) -> Iterator[Scored]:
        """What needs no worker, up to the next piece that does."""
        while not self.sent and self._meets_new():
            yield from self.ready.take()

    def jobs(self) -> Jobs:
        """What to send, with its number: first what was lost, or came back unfinished."""
        # joblib pulls from here in a thread of its own, where an error would be lost.
        try:
            self._again = deque(sorted(self.sent))
            while (index := self._next()) is not None:
                yield index, self._sizer.job(self.sent[index])
        except GeneratorExit:  # joblib has given up, and says why elsewhere
            raise
        except BaseException as error:
            self.trouble.append(error)

    def back(self, index: int, outcome: Outcome) -> Piece:
        """Take back what is done of a piece; the rest is sent again."""
        done, left = self.sent[index].cut(outcome.n)
        if left is None:
            del self.sent[index]
        else:
            self.sent[index] = left
            self._again.append(index)
        return done

    def _next(self) -> int | None:
        if self._again:
            return self._again.popleft()
        while len(self.ready) < MAX_READY and self._meets_new():
            if self._last in self.sent:
                return self._last
        return None

    def _meets_new(self) -> bool:
        """Whether there was one more piece; it is to be sent now, or ready."""
        item = next(self._new, None)
        if item is None:
            return False
        self._last, piece = item
        if len(piece.todo):
            self.sent[self._last] = piece
        else:
            self.ready.add(self._last, piece.scored(None))
        return True


class InOrder:
    """Batches by their number, to be taken in that order; each may come in parts."""

    def __init__(self) -> None:
        self._parts: dict[int, list[Scored]] = {}
        self._whole: set[int] = set()
        self._following = 0

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, index: int, scored: Scored, is_last: bool = True) -> None:
        """Add a part, the last one of its batch or not."""
        if is_last:
            self._whole.add(index)
        self._parts[index] = [*self._parts.get(index, []), scored]  # at once: another thread may be taking

    def take(self) -> Iterator[Scored]:
        """Those whose turn it is."""
        while self._following in self._parts:
            yield from self._parts.pop(self._following)
            if self._following not in self._whole:
                return
            self._whole.remove(self._following)
            self._following += 1
