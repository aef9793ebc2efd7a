"""Conditions of channels and subscriptions: what is wrong, since when, and the next step.

A condition that holds costs nothing here; only faults are kept, and the times of flips. Reasons are
a closed list, so that programs may look at them; messages are for people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ibrik_api.resources.meta import Condition, ConditionStatus
from ibrik_api.timestamps import format_timestamp

READY = "Ready"


class Aspect(StrEnum):
    """What Ready is the AND of; the first three of a subscription, the others of a channel."""

    TOPIC_RESOLVED = "TopicResolved"
    DESTINATION_RESOLVED = "DestinationResolved"
    DATA_PLANE_READY = "DataPlaneReady"
    RESOLVED = "Resolved"
    CREDENTIALS_VALID = "CredentialsValid"
    METADATA_STORED = "MetadataStored"


SUBSCRIPTION_ASPECTS = (
    Aspect.TOPIC_RESOLVED,
    Aspect.DESTINATION_RESOLVED,
    Aspect.DATA_PLANE_READY,
)
CHANNEL_ASPECTS = (Aspect.RESOLVED, Aspect.CREDENTIALS_VALID, Aspect.METADATA_STORED)


class Reason(StrEnum):
    """Every reason that a condition of a channel or a subscription can have."""

    READY = "Ready"
    """Of Ready: every aspect holds."""
    AS_WISHED = "AsWished"
    """Of an aspect: it holds."""
    SPEC_UNREADABLE = "SpecUnreadable"
    """Another version wrote a spec that this one cannot read. Apply the resource again."""
    TOPIC_NOT_FOUND = "TopicNotFound"
    """There is no such topic. Delivery begins when it appears."""
    TOPIC_NOT_SERVED = "TopicNotServed"
    """The topic is detached or cannot be opened. Delivery goes on when it is back."""
    DEAD_LETTER_TOPIC_NOT_FOUND = "DeadLetterTopicNotFound"
    """deadLetter.topicRef names no topic. Delivery runs; dead letters wait for the topic."""
    DESTINATION_NOT_FOUND = "DestinationNotFound"
    """There is no such channel. The backlog waits until it appears."""
    DESTINATION_NOT_ALLOWED = "DestinationNotAllowed"
    """The channel is of another namespace and does not allow it. The backlog waits."""
    NOT_CONFIRMED = "NotConfirmed"
    """The broker has not carried out this generation yet; it tries again by itself."""
    CREDENTIALS_MISSING = "CredentialsMissing"
    """A secret that the channel refers to is not there. Deliveries fail until it is."""


class Fault(NamedTuple):
    """Why a condition does not hold; `code` is that of the refusal when one has to be given."""

    reason: Reason
    message: str
    code: str = "invalid-resource"


NO_FAULTS: Mapping[Aspect, Fault] = {}


@dataclass(slots=True)
class Health:
    """The faults of one object, and when each condition last flipped."""

    faults: Mapping[Aspect, Fault] = field(default_factory=lambda: NO_FAULTS)
    flips: dict[str, int] | None = None
    """Times of flips; a condition that never flipped is as old as the object."""

    def note(self, faults: Mapping[Aspect, Fault], now_ms: int) -> None:
        flipped = [str(a) for a in faults.keys() ^ self.faults.keys()]
        if bool(faults) != bool(self.faults):
            flipped.append(READY)
        for name in flipped:
            self.flips = self.flips or {}
            self.flips[name] = now_ms
        self.faults = faults or NO_FAULTS

    def conditions(
        self, aspects: Sequence[Aspect], *, generation: int, created_ms: int
    ) -> list[Condition]:
        """Ready first, with the first fault as its reason."""
        first = next((self.faults[a] for a in aspects if a in self.faults), None)
        told: dict[str, Fault | None] = {READY: first}
        told |= {str(aspect): self.faults.get(aspect) for aspect in aspects}
        flips = self.flips or {}
        return [
            _condition(name, fault, generation, flips.get(name, created_ms))
            for name, fault in told.items()
        ]


def _condition(name: str, fault: Fault | None, generation: int, since_ms: int) -> Condition:
    fine = Reason.READY if name == READY else Reason.AS_WISHED
    return Condition(
        type=name,
        status=ConditionStatus.TRUE if fault is None else ConditionStatus.FALSE,
        reason=fine if fault is None else fault.reason,
        message="" if fault is None else fault.message,
        observed_generation=generation,
        last_transition_time=format_timestamp(since_ms),
    )
