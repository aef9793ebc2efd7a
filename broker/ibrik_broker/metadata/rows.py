"""What the repositories of rows share: where a row comes from, and how a change is refused.

The repositories are `topics.py`, `resources.py`, `publishers.py`, `clients.py` and `replays.py`.
"""

from enum import StrEnum


class Origin(StrEnum):
    API = "api"
    RESOURCE = "resource"


class NameTaken(Exception):
    """Another row has this name or this resource identity."""


class StaleRevision(Exception):
    """The row changed, or went away, since it was read."""
