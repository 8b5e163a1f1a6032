"""What has been trained, in a file: kept by contents, found again by the next run."""

from localshapley.store.file import StoreError
from localshapley.store.store import Content, Store, StoreInfo

__all__ = ["Content", "Store", "StoreError", "StoreInfo"]
