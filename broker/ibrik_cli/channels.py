"""What the commands show of channels; used by `channel`, `get` and `describe`."""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ibrik_cli.manifests import Place, Resource
from ibrik_cli.options import Output
from ibrik_cli.output import count_text, until_text
from ibrik_cli.showing import Listing, fault_of, print_document, resource_lines, status_lines

if TYPE_CHECKING:
    from ibrik_client import Client

COLUMNS = ("CHANNEL", "TYPE", "DESTINATION", "CIRCUIT", "STATE")
ATTEMPT_COLUMNS = ("TIME", "SUBSCRIPTION", "MESSAGE", "ATTEMPT", "STATUS", "ERROR", "NEXT")
STATS_COLUMNS = ("CHANNEL", "DELIVERED", "FAILED", "IN FLIGHT", "CIRCUIT", "LATENCY", "LAST")
KINDS = ("http", "service", "tcp", "topic")
NOTHING = "-"


async def read_channel(client: "Client", place: Place) -> Resource:
    return await client.admin.channel(place.name, namespace=place.namespace)


async def look_up(client: "Client", places: Sequence[Place]) -> Listing:
    """Channels: all of them, or those named."""
    if places:
        return channel_listing([await read_channel(client, place) for place in places])
    return channel_listing(await client.admin.channels())


async def describe(client: "Client", place: Place, output: Output) -> None:
    channel = await read_channel(client, place)
    lines = resource_lines(
        channel,
        channel["metadata"]["name"],
        id_key="channelId",
        status=status_lines(channel, "channelId"),
    )
    print_document(channel, output, lines)


def channel_listing(channels: Sequence[Resource]) -> Listing:
    now_s = time.time()
    return Listing(
        channels,
        COLUMNS,
        [channel_row(channel, now_s) for channel in channels],
        empty="no channels yet; create one with: ibrik channel create NAME --url URL",
    )


def channel_row(channel: Resource, now_s: float) -> list[str]:
    status = channel.get("status") or {}
    spec = channel.get("spec", {})
    state = fault_of(channel) or "ready"
    if again := until_text(status.get("pausedUntil"), now_s):
        state = f"held back, again {again}"
    return [
        str(channel["metadata"]["name"]),
        kind_of(spec),
        destination_text(spec),
        str(status.get("circuit") or NOTHING),
        state,
    ]


def kind_of(spec: Resource) -> str:
    return next((kind for kind in KINDS if spec.get(kind)), NOTHING)


def destination_text(spec: Resource) -> str:
    """`POST http://host/path`, `tcp host:port` or `topic name`; never the query of a URL."""
    destination = spec.get(kind_of(spec)) or {}
    method = destination.get("method", "POST")
    match kind_of(spec):
        case "http":
            return f"{method} {str(destination.get('url', '')).partition('?')[0]}"
        case "service":
            port, path = destination.get("port", 80), destination.get("path", "/")
            return f"{method} http://{destination.get('name')}:{port}{path}"
        case "tcp":
            scheme = "tcp+tls" if destination.get("tls") else "tcp"
            host = str(destination.get("host"))
            shown = f"[{host}]" if ":" in host else host
            return f"{scheme} {shown}:{destination.get('port')}"
        case "topic":
            return f"topic {destination.get('name')}"
        case _:
            return NOTHING


def attempt_listing(attempts: Sequence[Resource]) -> Listing:
    now_s = time.time()
    return Listing(
        attempts,
        ATTEMPT_COLUMNS,
        [attempt_row(attempt, now_s) for attempt in attempts],
        empty="no attempt failed",
    )


def attempt_row(attempt: Resource, now_s: float) -> list[str]:
    return [
        str(attempt["at"]),
        str(attempt.get("subscription") or attempt.get("flow") or NOTHING),
        f"{attempt['partition']}/{attempt['offset']}",
        str(attempt["attempt"]),
        str(attempt.get("status") or NOTHING),
        error_text(attempt),
        next_text(attempt, now_s),
    ]


def next_text(attempt: Resource, now_s: float) -> str:
    """When it is tried again: `in 4s`, `never`, or `-` when that time has passed."""
    if attempt.get("next") is None:
        return "never"
    return until_text(attempt["next"], now_s) or NOTHING


def error_text(attempt: Resource) -> str:
    """The word for what went wrong, and what was said with it, on one line."""
    from ibrik_cli.records import readable

    detail = readable(str(attempt.get("detail") or "").encode())
    return f"{attempt['error']}: {detail}" if detail else str(attempt["error"])


def stats_listing(stats: Resource) -> Listing:
    latency_ms = stats.get("latency_ms")
    last = (stats.get("last"), stats.get("last_status"), stats.get("last_error"))
    row = [
        str(stats["channel"]),
        count_text(stats["delivered"]),
        count_text(stats["failed"]),
        count_text(stats["in_flight"]),
        str(stats.get("circuit") or NOTHING),
        NOTHING if latency_ms is None else f"{latency_ms:.1f} ms",
        " ".join(str(word) for word in last if word is not None) or NOTHING,
    ]
    return Listing([stats], STATS_COLUMNS, [row])


def print_probe(name: str, result: dict[str, Any], output: Output) -> bool:
    """What became of a test message; False when it was not delivered."""
    is_delivered = bool(result["delivered"])
    status = "" if result.get("status") is None else f"{result['status']} "
    said = f"{status}in {result['latency_ms']} ms"
    if output is not Output.TABLE or is_delivered:
        print_document(result, output, [f"channel.ibrik.dev/{name} delivered: {said}"])
    else:
        why = error_text(result)
        sys.stderr.write(f"error: channel.ibrik.dev/{name} not delivered: {said}: {why}\n")
    return is_delivered
