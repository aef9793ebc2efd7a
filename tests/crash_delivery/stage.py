"""Who plays: topics, subscriptions, and how each sink behaves. Nothing but tables.

Schedules are short, so that between two deaths messages fail, wait, are repeated and die.
"""

import json
from dataclasses import dataclass
from typing import Any

API_VERSION = "ibrik.dev/v1beta1"
COLOURS = ("red", "green", "blue")
KEYS = 24

# Small segments, so that they roll. Ids are remembered for longer than a campaign takes.
TOPICS: dict[str, int] = {"orders": 3, "events": 2, "jobs": 2}
TOPIC_SPEC: dict[str, Any] = {"segment": {"bytes": "256Ki"}, "deduplicationWindow": "6h"}


@dataclass(frozen=True, slots=True)
class Part:
    """One subscription. Those with a script push to the sink of the same name."""

    name: str
    topic: str
    script: str | None = None
    ordering: str = "none"
    max_attempts: int = 12
    colour: str | None = None
    """Only messages of this colour are wanted."""
    is_once: bool = False
    initial: str = "50ms"

    @property
    def is_push(self) -> bool:
        return self.script is not None

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.topic}.{self.name}.dlq"

    def wants(self, colour: str) -> bool:
        return self.colour is None or self.colour == colour


PARTS = (
    Part("steady", "orders", "ok"),
    Part("flaky", "orders", "one-in-seven", max_attempts=8),
    Part("stubborn", "orders", "until-third", ordering="key"),
    Part("hooked", "orders", "slow", ordering="key"),
    Part("reds", "orders", "one-in-seven", colour="red"),
    Part("fatal", "orders", "fatal", ordering="key", max_attempts=3),
    Part("once", "orders", "one-in-seven", is_once=True),
    Part("strict", "events", "until-third", ordering="strict", initial="20ms"),
    Part("hanging", "events", "hang"),
    Part("gone", "events", "gone", ordering="key"),
    Part("workers", "jobs", max_attempts=8),
    Part("clerks", "jobs", ordering="key", max_attempts=5),
)


def topic_resource(name: str) -> dict[str, Any]:
    return _resource("Topic", name, TOPIC_SPEC | {"partitions": TOPICS[name]})


def channel_resource(part: Part, sinks_url: str) -> dict[str, Any]:
    spec = {"http": {"url": f"{sinks_url}/{part.script}/{part.name}"}, "timeout": "1s"}
    return _resource("Channel", part.name, spec)


def subscription_resource(part: Part) -> dict[str, Any]:
    spec: dict[str, Any] = {"topicRef": {"name": part.topic}, "ordering": part.ordering}
    if part.is_once:
        spec["delivery"] = "fireAndForget"
    else:
        backoff = {"initial": part.initial, "factor": 2, "max": "500ms", "jitter": "equal"}
        spec["retry"] = {"maxAttempts": part.max_attempts, "backoff": backoff}
    if part.is_push:
        spec |= {"mode": "push", "channelRef": {"name": part.name}}
    else:
        spec |= {"mode": "pull", "type": "shared", "ack": {"deadline": "1s"}}
    if part.colour is not None:
        spec["filter"] = f"headers.colour == {json.dumps(part.colour)}"
    return _resource("Subscription", part.name, spec)


def _resource(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
