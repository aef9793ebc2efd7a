"""One worker of the group, a process of its own: take flights, do a part of them, acknowledge it.

    python worker.py URL SUBSCRIPTION NAME FILE BATCH

It leases by itself, where most programs say `async for message in ibrik.subscribe(…)`: so its
ledger knows of every flight that it holds. SIGTERM ends it after the batch in hand. It ends with 1
when an acknowledgement came too late.
"""

import asyncio
import signal
import sys
from pathlib import Path

import ledger
import msgspec
from ledger import Done

import ibrik_client

WAIT_S = 1.0
PARTS = 4
"""Acknowledgements for one batch of leases."""


class _Event(msgspec.Struct):
    carrier: str
    distance: int


_event = msgspec.json.Decoder(_Event)


def work(lease: ibrik_client.Lease) -> Done:
    """What this example does with a flight: read it, and sum it up."""
    message = lease.message
    value = message.value or b""
    event = _event.decode(value)
    return Done(
        message.partition,
        message.offset,
        lease.attempt,
        ledger.checksum_of(value),
        event.carrier,
        event.distance,
    )


async def run(url: str, subscription: str, name: str, path: Path, batch: int) -> int:
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    part = max(1, batch // PARTS)
    async with ibrik_client.connect(url) as ibrik:
        with path.open("ab") as file:
            while not ending.is_set():
                leases = await ibrik.lease(
                    subscription, max_messages=batch, wait_s=WAIT_S, consumer=name
                )
                if leases:
                    ledger.write_took(file, len(leases))
                for begin in range(0, len(leases), part):
                    some = leases[begin : begin + part]
                    ledger.write_done(file, [work(lease) for lease in some])
                    late = await ibrik.ack(subscription, some)
                    if late:
                        sys.stderr.write(f"{name}: {len(late)} too late: {late[0]['detail']}\n")
                        return 1
                    ledger.write_acked(file)
    return 0


if __name__ == "__main__":
    url, subscription, name, path, batch = sys.argv[1:]
    sys.exit(asyncio.run(run(url, subscription, name, Path(path), int(batch))))
