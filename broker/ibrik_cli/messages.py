"""What is known of one message: where it is, who got it, every attempt that failed.

Used by `describe message`.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.manifests import Resource
from ibrik_cli.options import Output
from ibrik_cli.output import print_table, until_text
from ibrik_cli.showing import flat_lines, print_document

if TYPE_CHECKING:
    from ibrik_client import Client

DELIVERY_COLUMNS = ("SUBSCRIPTION", "MODE", "STATE", "FAILED", "NEXT")
ATTEMPT_COLUMNS = ("SUBSCRIPTION", "ATTEMPT", "TIME", "STATUS", "ERROR", "NEXT")
NOTHING = "-"


async def describe_message(client: "Client", text: str, output: Output) -> None:
    """One message by `topic/partition/offset`, with its headers, its payload and its deliveries."""
    from ibrik_cli.records import message_document

    topic, partition, offset = parse_place(text)
    document = message_document(await client.message(topic, partition, offset))
    deliveries = await client.admin.deliveries(topic, partition, offset)
    lines = flat_lines({k: v for k, v in document.items() if v is not None})
    print_document(document | {"deliveries": deliveries}, output, lines)
    if output is Output.TABLE and deliveries:
        print_deliveries(deliveries)


def parse_place(place: str) -> tuple[str, int, int]:
    parts = place.rsplit("/", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return parts[0], int(parts[1]), int(parts[2])
    raise Failure(f"{place!r} is no place: write topic/partition/offset", WRONG_USAGE)


def print_deliveries(deliveries: Sequence[Resource]) -> None:
    now_s = time.time()
    sys.stdout.write("\n")
    print_table(DELIVERY_COLUMNS, [delivery_row(delivery, now_s) for delivery in deliveries])
    if rows := list(attempt_rows(deliveries, now_s)):
        sys.stdout.write("\n")
        print_table(ATTEMPT_COLUMNS, rows)


def delivery_row(delivery: Resource, now_s: float) -> list[str]:
    return [
        str(delivery["subscription"]),
        str(delivery["mode"]),
        str(delivery["state"]),
        str(len(delivery["attempts"])),
        until_text(delivery.get("next"), now_s) or NOTHING,
    ]


def attempt_rows(deliveries: Sequence[Resource], now_s: float) -> Iterator[list[str]]:
    from ibrik_cli.channels import error_text, next_text

    for delivery in deliveries:
        for attempt in delivery["attempts"]:
            yield [
                str(delivery["subscription"]),
                str(attempt["attempt"]),
                str(attempt["at"]),
                str(attempt["status"] or NOTHING),
                error_text(attempt),
                next_text(attempt, now_s),
            ]
