"""Dead letters as they are read back: why, how often, and where the original message is. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ibrik_broker.delivery.deadletters import PREFIX
from ibrik_broker.delivery.filters import Filter
from ibrik_broker.delivery.wishes import SubscriptionWish
from ibrik_log.record import StoredRecord


class LetterState(StrEnum):
    DEAD = "dead"
    REDRIVEN = "redriven"


class Origin(NamedTuple):
    """The place of the message that could not be delivered."""

    topic: str
    partition: int
    offset: int
    topic_id: str
    """A topic that was made anew is another one."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter of one subscription."""

    partition: int
    record: StoredRecord
    """With the headers of the message alone, for people."""
    raw: StoredRecord
    """As it lies in the log, for filters."""
    origin: Origin
    reason: str
    status: int | None
    error: str
    attempts: int
    first_attempt: str
    last_attempt: str

    @property
    def offset(self) -> int:
        return self.record.offset


def read_letter(partition: int, record: StoredRecord, wish: SubscriptionWish) -> Letter | None:
    """None for what is no dead letter of this subscription: others may share the topic."""
    headers = record.headers
    told = {
        name.removeprefix(PREFIX): (content or b"").decode(errors="replace")
        for name, content in headers
        if name.startswith(PREFIX)
    }
    if (told.get("subscription"), told.get("topic")) != (wish.name, wish.topic):
        return None
    place, offset = _number(told.get("partition")), _number(told.get("offset"))
    if place is None or offset is None:
        return None
    plain = [(name, content) for name, content in headers if not name.startswith(PREFIX)]
    return Letter(
        partition=partition,
        record=record._replace(headers=plain),
        raw=record,
        origin=Origin(wish.topic, place, offset, told.get("topic-id", "")),
        reason=told.get("reason", ""),
        status=_number(told.get("status")),
        error=told.get("error", ""),
        attempts=_number(told.get("attempts")) or 0,
        first_attempt=told.get("first-attempt", ""),
        last_attempt=told.get("last-attempt", ""),
    )


def _number(text: str | None) -> int | None:
    if text and text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    return None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which dead letters are meant; what is None does not matter."""

    reason: str | None = None
    status: int | None = None
    state: LetterState | None = None
    filter: Filter | None = None

    def fits(self, letter: Letter, state: LetterState) -> bool:
        return (
            self.reason in (None, letter.reason)
            and self.status in (None, letter.status)
            and self.state in (None, state)
            and (self.filter is None or self.filter.matches(letter.raw))
        )
