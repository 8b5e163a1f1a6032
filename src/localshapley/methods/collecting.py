"""What the methods share that draw distinct subsets of all games: each is kept and trained once."""

from __future__ import annotations

from localshapley.coalitions.sampled import Collection
from localshapley.methods.base import CoalitionScorer, Run
from localshapley.models.trainer import Work


class Collecting(Run):
    """A run that collects subsets.

    Attributes
    ----------
    collection : Collection
        All subsets drawn so far, with their scores.
    """

    collection: Collection
    _executor: CoalitionScorer

    def train(self) -> Work:
        """The subsets that are drawn and not trained yet."""
        yield from self._executor.feed(self.collection, self.collection)

    @property
    def distinct(self) -> int:
        """Subsets trained."""
        return self.collection.n_scored

    @property
    def planned(self) -> int:
        """Subsets drawn."""
        return self.collection.n_rows

    def cut_short(self) -> None:
        """Forget subsets that are not trained; an unfinished round would be biased."""
        self.collection.truncate(self.collection.n_scored)
