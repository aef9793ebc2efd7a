"""What the commands show of subscriptions; used by `subscription`, `get` and `describe`."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ibrik_cli.manifests import Place, Resource
from ibrik_cli.options import Output
from ibrik_cli.output import age_text, count_text
from ibrik_cli.showing import Listing, fault_of, print_document, resource_lines, status_lines

if TYPE_CHECKING:
    from ibrik_client import Client

COLUMNS = ("SUBSCRIPTION", "TOPIC", "MODE", "DESTINATION", "BACKLOG", "OLDEST", "STATE")
LAG_COLUMNS = ("PARTITION", "NEXT", "EARLIEST", "LATEST", "BACKLOG", "IN FLIGHT", "RETRYING")
SEEK_COLUMNS = ("PARTITION", "FROM", "TO", "REDELIVERED", "SKIPPED")
NOTHING = "-"


async def read_subscription(client: "Client", place: Place) -> Resource:
    return await client.admin.subscription(place.name, namespace=place.namespace)


async def look_up(client: "Client", places: Sequence[Place]) -> Listing:
    """Subscriptions: all of them, or those named."""
    if places:
        return subscription_listing([await read_subscription(client, place) for place in places])
    return subscription_listing(await client.admin.subscriptions())


async def describe(client: "Client", place: Place, output: Output) -> None:
    subscription = await read_subscription(client, place)
    lines = resource_lines(
        subscription,
        subscription["metadata"]["name"],
        id_key="subscriptionId",
        status=status_lines(subscription, "subscriptionId"),
    )
    print_document(subscription, output, lines)


def subscription_listing(subscriptions: Sequence[Resource]) -> Listing:
    now_s = time.time()
    return Listing(
        subscriptions,
        COLUMNS,
        [subscription_row(subscription, now_s) for subscription in subscriptions],
        empty="no subscriptions yet; create one with: ibrik subscription create NAME --topic TOPIC",
    )


def subscription_row(subscription: Resource, now_s: float) -> list[str]:
    spec, status = subscription.get("spec", {}), subscription.get("status") or {}
    backlog = status.get("backlog")
    return [
        str(subscription["metadata"]["name"]),
        str(status.get("topic") or spec.get("topicRef", {}).get("name")),
        str(spec.get("mode", "pull")),
        str(status.get("destination") or NOTHING),
        NOTHING if backlog is None else count_text(backlog),
        age_text(status.get("oldestTime"), now_s) or NOTHING,
        state_text(subscription),
    ]


def state_text(subscription: Resource) -> str:
    """The state, and what explains it: `stopped (TopicNotFound)`, `retrying (3 messages)`."""
    from ibrik_cli.output import messages_text

    status = subscription.get("status") or {}
    state, fault = str(status.get("state") or NOTHING), fault_of(subscription)
    if fault is not None:
        return f"{state} ({fault})"
    retrying = status.get("retrying") or 0
    return f"{state} ({messages_text(retrying)})" if retrying and state == "retrying" else state


def lag_listing(lag: Resource) -> Listing:
    names = ("next_offset", "earliest", "latest", "backlog", "in_flight", "retrying")
    rows = [
        [str(part["partition"]), *(count_text(part[name]) for name in names)]
        for part in lag["partitions"]
    ]
    return Listing([lag], LAG_COLUMNS, rows)


def seek_listing(result: Resource) -> Listing:
    names = ("from", "to", "redelivered", "skipped")
    rows = [
        [str(move["partition"]), *(count_text(move[name]) for name in names)]
        for move in result["partitions"]
    ]
    return Listing([result], SEEK_COLUMNS, rows)
