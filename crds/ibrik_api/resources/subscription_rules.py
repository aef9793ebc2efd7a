"""Rules on subscriptions that go beyond one field: what is served, fits together, may change.

Pure: values in, findings out. Whether the topic and the channel exist is the catalogue's question;
whether the filter compiles, the broker's, which has the compiler.
"""

import re
from collections.abc import Iterator
from typing import Any

from ibrik_api.durations import format_duration
from ibrik_api.model import FieldError, json_pointer
from ibrik_api.resources.destination_rules import check_destination
from ibrik_api.resources.subscription import (
    DeadLetter,
    GroupType,
    Guarantee,
    Mode,
    OnExhausted,
    Retry,
    Start,
    StartFrom,
    SubscriptionSpec,
)
from ibrik_api.resources.topic import Delivery, Dispatch, Ordering
from ibrik_api.resources.topic_rules import refuse_if
from ibrik_api.timestamps import parse_timestamp

_SERVED_LATER = {
    ("deadLetter", "channelRef"): "dead letters go to topics only so far: name one with "
    "deadLetter.topicRef and subscribe to it",
    ("replay",): "replays are asked for over HTTP so far: POST /v1/replays",
}
"""A row leaves this table with the feature that serves it."""

_OFFSETS = re.compile(r"[0-9]{1,19}(,[0-9]{1,19})*")
MAX_OFFSET = 2**63 - 1

_Finding = tuple[tuple[str, ...], str]


def check_subscription(spec: SubscriptionSpec) -> None:
    """Raise a Refusal that names every field of `spec` that cannot be served."""
    errors = [_error(path, "unsupported-field", sentence) for path, sentence in _unserved(spec)]
    errors += [_error(path, "invalid-resource", sentence) for path, sentence in _unfitting(spec)]
    if spec.push is not None:
        errors += check_destination(spec.push, "/spec/push")
    refuse_if(errors)


def plan_subscription_update(old: SubscriptionSpec, new: SubscriptionSpec) -> list[FieldError]:
    """What forbids the change from `old` to `new`; empty when it may be made.

    Everything but the topic may change, also the mode: the cursor stays where it is.
    """
    if new.topic_ref == old.topic_ref:
        return []
    sentence = (
        f"topicRef is fixed at creation ({old.topic_ref.name}): put it back, or create a new "
        "subscription"
    )
    return [_error(("topicRef",), "immutable-field", sentence)]


def group_type(spec: SubscriptionSpec, dispatch: Dispatch) -> GroupType:
    """What `type` says, or what the topic's dispatch makes of it."""
    if spec.type is not None:
        return spec.type
    return GroupType.SHARED if dispatch is Dispatch.QUEUE else GroupType.EXCLUSIVE


def ordering_of(spec: SubscriptionSpec, topic_delivery: Delivery) -> Ordering:
    """What `ordering` says, or the topic's; what is not repeated waits for nothing."""
    if spec.delivery is Guarantee.FIRE_AND_FORGET:
        return Ordering.NONE
    return topic_delivery.ordering if spec.ordering is None else spec.ordering


def _error(path: tuple[str, ...], code: str, sentence: str) -> FieldError:
    return FieldError(pointer=json_pointer("spec", *path), code=code, detail=sentence)


def _unserved(spec: SubscriptionSpec) -> Iterator[_Finding]:
    document = spec.document()
    for path, sentence in _SERVED_LATER.items():
        if _is_given(document, path):
            yield path, sentence


def _is_given(document: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        document = document.get(step)
        if document is None:
            return False
    return True


def _unfitting(spec: SubscriptionSpec) -> Iterator[_Finding]:
    yield from _destination_findings(spec)
    yield from _start_findings(spec.start)
    yield from _retry_findings(spec)
    if spec.delivery is Guarantee.FIRE_AND_FORGET:
        yield from _fire_and_forget_findings(spec)


def _destination_findings(spec: SubscriptionSpec) -> Iterator[_Finding]:
    given = [
        name
        for name, value in (("channelRef", spec.channel_ref), ("push", spec.push))
        if value is not None
    ]
    if spec.mode is Mode.PUSH:
        if not given:
            yield (), "mode push needs a destination: give channelRef or push"
        elif len(given) == 2:
            yield ("push",), "channelRef and push exclude each other: keep one"
        return
    for name in given:
        yield (name,), f"mode {spec.mode} delivers nowhere: leave {name} out, or use mode push"


def _start_findings(start: Start) -> Iterator[_Finding]:
    if start.from_ in (StartFrom.EARLIEST, StartFrom.LATEST):
        if start.value is not None:
            yield ("start", "value"), f"{start.from_} needs no value: leave it out"
    elif start.value is None:
        yield ("start", "value"), f"from {start.from_} needs a value"
    elif start.from_ is StartFrom.OFFSET:
        if not _OFFSETS.fullmatch(start.value) or max(parse_offsets(start.value)) > MAX_OFFSET:
            yield (
                ("start", "value"),
                "it is no offset: write one whole number, or one for each partition with commas",
            )
    else:
        try:
            parse_timestamp(start.value)
        except ValueError as error:
            yield ("start", "value"), str(error)


def parse_offsets(value: str) -> list[int]:
    """The offsets of `start.value`, one or one for each partition; it was checked before."""
    return [int(part) for part in value.split(",")]


def _retry_findings(spec: SubscriptionSpec) -> Iterator[_Finding]:
    backoff = spec.retry.backoff
    if backoff is not None and backoff.initial_ms > backoff.max_ms:
        yield (
            ("retry", "backoff", "initial"),
            f"it is longer than max ({format_duration(backoff.max_ms)}): lower it or raise max",
        )
    if spec.retry.on_exhausted is OnExhausted.BLOCK and spec.dead_letter != DeadLetter():
        yield (
            ("deadLetter",),
            "with retry.onExhausted block nothing becomes a dead letter: leave one of them out",
        )
    if spec.dead_letter.topic_ref is not None and spec.dead_letter.channel_ref is not None:
        yield ("deadLetter",), "topicRef and channelRef exclude each other: keep one"


def _fire_and_forget_findings(spec: SubscriptionSpec) -> Iterator[_Finding]:
    if spec.mode is not Mode.PUSH:
        yield (
            ("delivery",),
            f"fireAndForget is for mode push: in mode {spec.mode} consumers settle messages",
        )
    why = "nothing is repeated with fireAndForget: leave it out"
    if spec.retry != Retry():
        yield ("retry",), why
    if spec.dead_letter != DeadLetter():
        yield ("deadLetter",), why
    if spec.ordering not in (None, Ordering.NONE):
        yield ("ordering",), "nothing waits for another message with fireAndForget: leave it out"
