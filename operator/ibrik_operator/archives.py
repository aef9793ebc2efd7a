"""What the operator knows of the archive jobs of each pool, besides what Kubernetes keeps.

The archive's reconcile writes, Topics read. All of it is found again after a restart.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from ibrik_operator.conditions.archive import Scheduling
from ibrik_operator.keys import Key


class Job(StrEnum):
    """What is done on a schedule. All but the archive itself are done once a day."""

    ARCHIVE = "archive"
    OPTIMIZE = "optimize"
    QUALITY = "quality"
    TRAFFIC = "traffic"
    AUDIT = "audit"

    @property
    def reads_log(self) -> bool:
        """Whether it mounts the volume of a broker. What does not can be shared by several pods."""
        return self in {Job.ARCHIVE, Job.QUALITY, Job.AUDIT}

    @property
    def asks_broker(self) -> bool:
        """Whether it needs a token for the admin door."""
        return self in {Job.ARCHIVE, Job.AUDIT}


@dataclass(frozen=True, slots=True)
class Slot:
    """One broker and one schedule of topics that it has."""

    ordinal: int
    schedule: str
    time_zone: str
    topics: tuple[str, ...] = ()
    """Names; empty: whatever of the broker is archived, as when there is one schedule."""
    asked: str = ""
    """Digest of what `ibrik.dev/archive-now` asked for; empty: nothing yet."""
    is_suspended: bool = False
    """No run begins, such as while brokers are replaced."""
    job: Job = Job.ARCHIVE


@dataclass
class ArchiveState:
    scheduling: dict[Key, Scheduling] = field(default_factory=dict)
    """By Topic."""
    unheard_ms: dict[str, int] = field(default_factory=dict)
    """Since when a schedule could have been noticed by Spark's operator, by its name."""
    late: set[str] = field(default_factory=set)
    """Schedules whose run was late when last looked at."""


class Archives:
    def __init__(self) -> None:
        self._pools: dict[Key, ArchiveState] = {}

    def of(self, pool: Key) -> ArchiveState:
        return self._pools.setdefault(pool, ArchiveState())

    def forget(self, pool: Key) -> None:
        self._pools.pop(pool, None)

    def note(self, pool: Key, scheduling: dict[Key, Scheduling]) -> list[Key]:
        """What is known now; the Topics whose status has to say something else."""
        before, state = self.of(pool).scheduling, self.of(pool)
        state.scheduling = scheduling
        topics = {**before, **scheduling}
        return [key for key in topics if before.get(key) != scheduling.get(key)]
