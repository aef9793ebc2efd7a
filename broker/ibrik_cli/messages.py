"""What is known of one message: where it is, who got it, every attempt that failed.

Used by `describe message`.
"""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.manifests import Resource
from ibrik_cli.options import Output
from ibrik_cli.output import print_table
from ibrik_cli.showing import flat_lines, print_document

if TYPE_CHECKING:
    from ibrik_client import Client

DELIVERY_COLUMNS = ("SUBSCRIPTION", "MODE", "DESTINATION", "STATE")
ATTEMPT_COLUMNS = ("SUBSCRIPTION", "ATTEMPT", "TIME", "STATUS", "ERROR", "NEXT")
NOTHING = "-"
ATTEMPTS_READ = 500
"""Of each channel: an older attempt is not looked for."""


async def describe_message(client: "Client", text: str, output: Output) -> None:
    """One message by `topic/partition/offset`, with its headers, its payload and its deliveries."""
    from ibrik_cli.records import message_document

    topic, partition, offset = parse_place(text)
    document = message_document(await client.message(topic, partition, offset))
    deliveries = await find_deliveries(client, topic, partition, offset)
    lines = flat_lines({k: v for k, v in document.items() if v is not None})
    print_document(document | {"deliveries": deliveries}, output, lines)
    if output is Output.TABLE and deliveries:
        print_deliveries(deliveries)


def parse_place(place: str) -> tuple[str, int, int]:
    parts = place.rsplit("/", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return parts[0], int(parts[1]), int(parts[2])
    raise Failure(f"{place!r} is no place: write topic/partition/offset", WRONG_USAGE)


async def find_deliveries(
    client: "Client", topic: str, partition: int, offset: int
) -> list[Resource]:
    """How far each subscription of the topic is with this message."""
    found = []
    for subscription in await client.admin.subscriptions(topic=topic):
        name = subscription["metadata"]["name"]
        lag = await client.admin.lag(name)
        part = next((p for p in lag["partitions"] if p["partition"] == partition), None)
        attempts = await find_attempts(client, subscription, partition, offset)
        found.append(
            {
                "subscription": name,
                "mode": subscription["spec"].get("mode", "pull"),
                "destination": (subscription.get("status") or {}).get("destination"),
                "state": delivery_state(part, offset, attempts),
                "attempts": attempts,
            }
        )
    return found


async def find_attempts(
    client: "Client", subscription: Resource, partition: int, offset: int
) -> list[Resource]:
    """Attempts of this message that failed, the oldest first."""
    channel = subscription["spec"].get("channelRef")
    if channel is None:
        return []
    rows = await client.admin.channel_attempts(
        channel["name"], limit=ATTEMPTS_READ, namespace=channel.get("namespace")
    )
    mine = (subscription["metadata"]["name"], partition, offset)
    found = [r for r in rows if (r["subscription"], r["partition"], r["offset"]) == mine]
    return found[::-1]


def delivery_state(part: Resource | None, offset: int, attempts: Sequence[Resource]) -> str:
    """`waiting`, `retrying`, `dead-lettered`, or `passed`: delivered, filtered or skipped.

    Attempts are known of channels alone, so elsewhere a message that is retried has passed.
    """
    if part is None or offset >= part["next_offset"]:
        return "waiting"
    if not attempts or (part["retrying"] == 0 and attempts[-1]["next"]):
        return "passed"
    return "retrying" if attempts[-1]["next"] else "dead-lettered"


def print_deliveries(deliveries: Sequence[Resource]) -> None:
    import sys

    sys.stdout.write("\n")
    print_table(
        DELIVERY_COLUMNS,
        [
            [d["subscription"], d["mode"], d["destination"] or NOTHING, d["state"]]
            for d in deliveries
        ],
    )
    if rows := list(attempt_rows(deliveries, time.time())):
        sys.stdout.write("\n")
        print_table(ATTEMPT_COLUMNS, rows)


def attempt_rows(deliveries: Sequence[Resource], now_s: float) -> Iterator[list[str]]:
    from ibrik_cli.channels import error_text, next_text

    for delivery in deliveries:
        for attempt in delivery["attempts"]:
            yield [
                delivery["subscription"],
                str(attempt["attempt"]),
                str(attempt["at"]),
                str(attempt["status"] or NOTHING),
                error_text(attempt),
                next_text(attempt, now_s),
            ]
