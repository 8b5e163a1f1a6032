"""Whether supports are large enough: how far local values are from global ones, and supports that grow."""

from localshapley.locality.gap import LocalityGap, locality_gap

__all__ = ["LocalityGap", "locality_gap"]
