"""Which store a location names."""

from .folder import Folder
from .store import Store


def store_at(location: str) -> Store:
    """The store of a table, by how its location is written."""
    if "://" not in location:
        return Folder(location)
    from .bucket import Bucket  # Not above: it loads a client of S3, and most targets are folders.

    return Bucket(location)
