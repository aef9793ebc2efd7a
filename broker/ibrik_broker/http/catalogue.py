"""The table of operations on channels, subscriptions, subscribers, replays and dead letters."""

from dataclasses import dataclass
from typing import Any

from ibrik_api.http import ChannelList, SubscriptionList
from ibrik_api.registering import (
    AttemptList,
    ChannelStats,
    PlainChannel,
    PlainChannelList,
    ProbeResult,
    SubscriberList,
    SubscriberRegistered,
    SubscriberRequest,
)
from ibrik_api.resources.channel import Channel
from ibrik_api.resources.destination import KINDS, Method
from ibrik_api.resources.subscription import Subscription, SubscriptionDeletionPolicy
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.redrive import Redrive
from ibrik_broker.delivery.replays import Replays
from ibrik_broker.http import parameters as p
from ibrik_broker.http.channels import ChannelHandlers
from ibrik_broker.http.crud_table import ResourceKind, action, resource_operations
from ibrik_broker.http.deadletters import dead_letter_operations
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Operation, Parameter
from ibrik_broker.http.replays import replay_operations
from ibrik_broker.http.subscribers import SubscriberHandlers
from ibrik_broker.http.subscriptions import SubscriptionHandlers
from ibrik_broker.http.tracking import tracking_operations
from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.registrations.catalogue import Catalogue

API_VERSION = "ibrik.dev/v1beta1"
DESTINATION_CODES = (
    "invalid-json",
    "invalid-name",
    "invalid-resource",
    "invalid-destination",
    "egress-denied",
    "metadata-unavailable",
    "precondition-failed",
)
CHANNEL = ResourceKind(
    noun="channel",
    model=Channel,
    list_model=ChannelList,
    example={
        "apiVersion": API_VERSION,
        "kind": "Channel",
        "metadata": {"name": "billing"},
        "spec": {"http": {"url": "https://billing.example/hooks"}},
    },
    path=p.CHANNEL,
    filters=(
        Parameter(
            "kind", "query", "Only channels of this kind.", {"type": "string", "enum": list(KINDS)}
        ),
        Parameter("host", "query", "Only channels to this host."),
        Parameter("name_prefix", "query", "Only channels whose names begin so."),
        p.NAMESPACE,
    ),
    plain=PlainChannel,
    plain_list=PlainChannelList,
    read_codes=("invalid-name", "unknown-channel"),
    write_codes=DESTINATION_CODES,
    delete_codes=("channel-in-use", "metadata-unavailable"),
    delete_summary="Delete a channel that no subscription delivers to.",
    delete_headers={},
    one_parameters=(p.NAMESPACE,),
)
SUBSCRIPTION = ResourceKind(
    noun="subscription",
    model=Subscription,
    list_model=SubscriptionList,
    example={
        "apiVersion": API_VERSION,
        "kind": "Subscription",
        "metadata": {"name": "billing"},
        "spec": {"topicRef": {"name": "orders"}, "mode": "pull", "type": "shared"},
    },
    path=p.SUBSCRIPTION,
    filters=(
        Parameter("topic", "query", "Only subscriptions of this topic.", p.NAME),
        p.NAMESPACE,
    ),
    read_codes=("invalid-name", "unknown-subscription", "subscription-detached"),
    write_codes=(
        *DESTINATION_CODES,
        "invalid-filter",
        "immutable-field",
        "unsupported-field",
        "unknown-topic",
        "topic-detached",
        "topic-unavailable",
        "unknown-channel",
        "shared-needs-pull",
    ),
    delete_codes=("metadata-unavailable",),
    delete_summary="Delete a subscription by its deletionPolicy. Retain keeps the cursor.",
    delete_parameters=(p.deletion_policy("subscription", SubscriptionDeletionPolicy),),
    delete_headers={"Ibrik-Subscription-State": "detached (cursor kept) or deleted."},
    one_parameters=(p.NAMESPACE,),
)
SUBSCRIBERS = "/v1/topics/{topic}/subscribers"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the door needs of delivery to serve channels and subscriptions."""

    catalogue: Catalogue
    dispatcher: Dispatcher
    history: AttemptHistory
    guard: Guard
    replays: Replays
    redrive: Redrive

    def subscription_id(self, name: str) -> str:
        """Raises Refusal `unknown-subscription` or `subscription-detached`."""
        return self.catalogue.subscriptions.find(name).id


def catalogue_operations(door: Door, delivery: Delivery) -> list[Operation]:
    channels = ChannelHandlers(
        door, delivery.catalogue, delivery.guard, delivery.dispatcher, delivery.history
    )
    subscriptions = SubscriptionHandlers(door, delivery.catalogue, delivery.guard)
    return [
        *resource_operations(CHANNEL, channels),
        *_pauses(CHANNEL, channels, ()),
        *_channel_looks(channels),
        *resource_operations(SUBSCRIPTION, subscriptions),
        *_pauses(SUBSCRIPTION, subscriptions, ("subscription-paused",)),
        *_subscribers(SubscriberHandlers(door, delivery.catalogue, delivery.guard)),
        *tracking_operations(door, delivery.dispatcher, delivery.history),
        *replay_operations(door, delivery.replays),
        *dead_letter_operations(door, delivery.redrive, delivery.subscription_id),
    ]


def _pauses(
    kind: ResourceKind, handlers: ChannelHandlers | SubscriptionHandlers, codes: tuple[str, ...]
) -> list[Operation]:
    known = Answer(200, "It is so.", (Body(JSON, kind.model),), p.etag_headers(kind.noun))
    return [
        action(
            kind,
            "pause",
            "Hold deliveries back; the backlog stays.",
            handler=handlers.pause,
            answer=known,
            codes=("metadata-unavailable",),
        ),
        action(
            kind,
            "resume",
            "Go on, whatever it was that stopped it.",
            handler=handlers.resume,
            answer=known,
            codes=("metadata-unavailable", *codes),
        ),
    ]


def _channel_looks(channels: ChannelHandlers) -> list[Operation]:
    path: tuple[Parameter, ...] = (p.CHANNEL, p.NAMESPACE)
    return [
        action(
            CHANNEL,
            "test",
            "Send one test message (event type ibrik.test), as deliveries are sent.",
            handler=channels.test,
            answer=Answer(200, "What became of it.", (Body(JSON, ProbeResult),)),
            description="Through the same sender, signature and egress rules. A pause and an open"
            " circuit do not hold it back, and it changes neither.",
        ),
        Operation(
            "listChannelAttempts",
            "GET",
            "/v1/channels/{channel}/attempts",
            CHANNEL.plural,
            "Attempts that failed, the newest first, page by page.",
            channels.attempts,
            (Answer(200, "One page.", (Body(JSON, AttemptList),)),),
            (*CHANNEL.read_codes, "metadata-unavailable"),
            parameters=(
                *path,
                *p.PAGE,
                Parameter(
                    "status",
                    "query",
                    "Only those that were answered with this status of HTTP.",
                    {"type": "string", "pattern": "^[0-9]{3}$"},
                ),
                Parameter("error", "query", "Only those that ended so, such as timeout."),
                Parameter("since", "query", "Only those since then: RFC 3339, or milliseconds."),
            ),
        ),
        Operation(
            "readChannelStats",
            "GET",
            "/v1/channels/{channel}/stats",
            CHANNEL.plural,
            "How deliveries went since the broker started.",
            channels.stats,
            (Answer(200, "Numbers.", (Body(JSON, ChannelStats),)),),
            CHANNEL.read_codes,
            parameters=path,
        ),
    ]


def _subscribers(handlers: SubscriberHandlers) -> list[Operation]:
    return [_subscribe(handlers), _list_subscribers(handlers), *_unsubscribe(handlers)]


def _subscribe(handlers: SubscriberHandlers) -> Operation:
    example: Any = {"url": "https://shop.example/hooks/orders"}
    registered = (Body(JSON, SubscriberRegistered),)
    return Operation(
        "registerSubscriber",
        "POST",
        SUBSCRIBERS,
        "subscribers",
        "Register an endpoint that gets the messages of a topic.",
        handlers.register,
        (
            Answer(201, "Registered.", registered, {"Location": "Path of the subscriber."}),
            Answer(200, "It was registered before; nothing changed.", registered),
        ),
        (
            *p.TOPIC_CODES,
            "invalid-json",
            "invalid-resource",
            "invalid-destination",
            "egress-denied",
            "shared-needs-pull",
            "subscription-exists",
            "channel-exists",
            "managed-by-resource",
            "metadata-unavailable",
        ),
        "A topic, a URL and a method are one endpoint: registering it again answers the same id and"
        " never makes a second delivery.",
        parameters=(p.TOPIC,),
        bodies=(Body(JSON, SubscriberRequest, example=example),),
        is_registration=True,
    )


def _list_subscribers(handlers: SubscriberHandlers) -> Operation:
    return Operation(
        "listSubscribers",
        "GET",
        SUBSCRIBERS,
        "subscribers",
        "The registered endpoints of a topic, page by page.",
        handlers.list_page,
        (Answer(200, "One page.", (Body(JSON, SubscriberList),)),),
        p.TOPIC_CODES,
        parameters=(p.TOPIC, *p.PAGE),
    )


def _unsubscribe(handlers: SubscriberHandlers) -> list[Operation]:
    done = (Answer(204, "Done."),)
    codes = (
        *p.TOPIC_CODES,
        "unknown-subscription",
        "subscription-detached",
        "managed-by-resource",
        "metadata-unavailable",
    )
    return [
        Operation(
            "removeSubscriber",
            "DELETE",
            SUBSCRIBERS + "/{subscriber}",
            "subscribers",
            "Remove an endpoint by the id that registering answered.",
            handlers.remove,
            done,
            codes,
            parameters=(p.TOPIC, p.SUBSCRIBER),
            is_registration=True,
        ),
        Operation(
            "removeSubscriberByUrl",
            "DELETE",
            SUBSCRIBERS,
            "subscribers",
            "Remove an endpoint by its URL and method.",
            handlers.remove_endpoint,
            done,
            (*codes, "invalid-destination"),
            parameters=(
                p.TOPIC,
                Parameter("url", "query", "The URL that was registered.", required=True),
                Parameter(
                    "method",
                    "query",
                    "The method that was registered.",
                    {"type": "string", "enum": [m.value for m in Method], "default": "POST"},
                ),
            ),
            is_registration=True,
        ),
    ]
