"""Working on a subscription: settled by blocks, extended, given back, never forgotten."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import ibrik_client
from ibrik_api.resources.subscription import GroupType, Mode
from ibrik_client import Client, InvalidRequest, LeaseExpired, RetryPolicy
from tests.broker.http.consumers import ConsumerRig, running_consumers

PATIENT = RetryPolicy(deadline_s=30, first_wait_s=0.01, longest_wait_s=0.05)
TIMEOUT_S = 20


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ConsumerRig]:
    async with running_consumers(tmp_path) as rig:
        await rig.subscribe()
        yield rig


@pytest.fixture
async def ibrik(rig: ConsumerRig) -> AsyncIterator[Client]:
    async with connected(rig) as client:
        yield client


@asynccontextmanager
async def connected(rig: ConsumerRig) -> AsyncIterator[Client]:
    url = f"http://127.0.0.1:{rig.data_port}"
    async with ibrik_client.connect(url, retry=PATIENT) as client:
        yield client


async def condition(is_met: Callable[[], Any]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not is_met():
            await asyncio.sleep(0.002)


def backlog(rig: ConsumerRig) -> int:
    return rig.delivery.flow("id-of-billing").backlog


def in_flight(rig: ConsumerRig) -> int:
    return rig.delivery.flow("id-of-billing").in_flight_count


def requests_of(rig: ConsumerRig, operation: str) -> int:
    return sum(rig.data.counters.of(operation).by_status.values())


async def test_leaving_the_block_acknowledges(rig: ConsumerRig, ibrik: Client) -> None:
    await rig.publish(b'{"n":0}', Ibrik_Key="k", Ibrik_Meta_a="b")
    await rig.publish_numbers(2, first=1)
    seen = []
    async for message in ibrik.subscribe("billing"):
        async with message:
            seen.append(message.json())
            if message.offset == 0:
                assert (message.topic, message.key, message.attempt) == ("orders", b"k", 1)
                assert (message.value, message.headers["a"]) == (b'{"n":0}', "b")
        if len(seen) == 3:
            break
    assert seen == [{"n": 0}, 1, 2]
    await condition(lambda: backlog(rig) == 0)


async def test_an_exception_gives_the_message_back_with_its_type_as_reason(
    rig: ConsumerRig, ibrik: Client
) -> None:
    await rig.publish_numbers(1)

    async def work() -> None:
        async for message in ibrik.subscribe("billing"):
            async with message:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    await condition(lambda: rig.delivery.flow("id-of-billing").retrying_count == 1)
    assert rig.delivery.flow("id-of-billing").counters.failed == 1
    attempts = [message.attempt async for message in first(ibrik, 1)]
    assert attempts == [2]


async def first(ibrik: Client, count: int) -> AsyncIterator[ibrik_client.ReceivedMessage]:
    """The first messages, each acknowledged before the next."""
    async for message in ibrik.subscribe("billing"):
        await message.ack()
        yield message
        count -= 1
        if not count:
            return


async def test_an_acknowledgement_that_is_waited_for_is_durable(
    rig: ConsumerRig, ibrik: Client
) -> None:
    await rig.publish_numbers(2)
    async for message in ibrik.subscribe("billing"):
        before = backlog(rig)
        await message.ack()
        assert backlog(rig) == before - 1
        await message.ack()  # a second one is fine
        if message.offset == 1:
            break


async def test_giving_back_with_a_delay(rig: ConsumerRig, ibrik: Client) -> None:
    await rig.publish_numbers(1)
    attempts = []
    async for message in ibrik.subscribe("billing"):
        attempts.append(message.attempt)
        if message.attempt == 3:
            await message.ack()
            break
        await message.nack(delay_s=0.01, reason="busy")
    assert attempts == [1, 2, 3]


async def test_acknowledgements_travel_together(rig: ConsumerRig, ibrik: Client) -> None:
    await rig.publish_numbers(200)
    count = 0
    async for message in ibrik.subscribe("billing", max_in_flight=100):
        async with message:
            count += 1
        if count == 200:
            break
    await condition(lambda: backlog(rig) == 0)
    assert requests_of(rig, "ackMessages") < 50
    assert requests_of(rig, "leaseMessages") < 50


async def test_no_more_is_leased_than_may_be_in_flight(rig: ConsumerRig, ibrik: Client) -> None:
    await rig.publish_numbers(20)
    subscription = ibrik.subscribe("billing", max_in_flight=4)
    most = 0
    held = []
    async for message in subscription:
        held.append(message)
        most = max(most, in_flight(rig), subscription.in_flight_count)
        if len(held) == 4:
            await asyncio.gather(*(message.ack() for message in held))
            held.clear()
        if message.offset == 19:
            break
    assert most == 4


async def test_leaving_the_loop_gives_back_what_was_leased_ahead(
    rig: ConsumerRig, ibrik: Client
) -> None:
    await rig.publish_numbers(10)
    async for message in ibrik.subscribe("billing", max_in_flight=8):
        async with message:
            pass
        break
    await condition(lambda: (backlog(rig), in_flight(rig)) == (9, 0))


async def test_a_loop_that_is_cancelled_gives_everything_back(
    rig: ConsumerRig, ibrik: Client
) -> None:
    await rig.publish_numbers(5)
    working = asyncio.Event()

    async def work() -> None:
        async for message in ibrik.subscribe("billing"):
            async with message:
                working.set()
                await asyncio.Event().wait()

    async with asyncio.TaskGroup() as tasks:
        worker = tasks.create_task(work())
        await working.wait()
        worker.cancel()
    await condition(lambda: (backlog(rig), in_flight(rig)) == (5, 0))


async def test_what_is_in_hand_may_be_finished_after_the_loop(
    rig: ConsumerRig, ibrik: Client
) -> None:
    await rig.publish_numbers(3)
    held = []
    async for message in ibrik.subscribe("billing", max_in_flight=3):
        held.append(message)
        if len(held) == 2:
            break
    await condition(lambda: in_flight(rig) == 2)
    for message in held:
        await message.ack()
    assert (backlog(rig), in_flight(rig)) == (1, 0)


async def test_leaving_the_client_sends_what_was_asked_for_and_gives_back_the_rest(
    rig: ConsumerRig,
) -> None:
    await rig.publish_numbers(4)

    async def work() -> None:
        async with connected(rig) as ibrik:
            async for message in ibrik.subscribe("billing"):
                if message.offset == 2:
                    raise KeyError
                async with message:
                    pass

    with pytest.raises(KeyError):
        await work()
    assert (backlog(rig), in_flight(rig)) == (2, 0)


async def test_leases_are_extended_while_a_message_is_worked_on(
    rig: ConsumerRig, ibrik: Client
) -> None:
    await rig.subscribe("brief", ack_deadline_ms=1_000)
    await rig.publish_numbers(1)
    async for message in ibrik.subscribe("brief"):
        await condition(lambda: requests_of(rig, "extendLeases") >= 5)  # longer than the deadline
        await message.ack()
        break
    assert rig.delivery.flow("id-of-brief").counters.failed == 0


async def test_who_settles_too_late_is_told(rig: ConsumerRig, ibrik: Client) -> None:
    await rig.publish_numbers(2)
    subscription = ibrik.subscribe("billing", extend=False)
    async for message in subscription:
        if message.offset == 0:
            rig.forward(30_001)
            with pytest.raises(LeaseExpired):
                await message.ack()
        else:
            async with message:
                pass
            break
    await condition(lambda: subscription.expired_count >= 2)


async def test_several_workers_share_a_subscription(rig: ConsumerRig) -> None:
    await rig.publish_numbers(60)
    seen: Counter[int] = Counter()

    async def work() -> None:
        async with connected(rig) as ibrik:
            async for message in ibrik.subscribe("billing", max_in_flight=5):
                async with message:
                    seen[message.json()] += 1
                    await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(work()) for _ in range(3)]
        await condition(lambda: backlog(rig) == 0)
        for worker in workers:
            worker.cancel()
    assert seen == Counter(range(60))


async def test_a_subscription_goes_on_over_restarts(tmp_path: Path) -> None:
    seen: list[int] = []
    async with running_consumers(tmp_path / "data") as rig:
        await rig.subscribe()
        port = rig.data_port
        await rig.publish_numbers(10)

        async def work() -> None:
            url = f"http://127.0.0.1:{port}"
            async with ibrik_client.connect(url, retry=PATIENT) as ibrik:
                async for message in ibrik.subscribe("billing", max_in_flight=4):
                    async with message:
                        seen.append(message.json())

        worker = asyncio.ensure_future(work())
        await condition(lambda: backlog(rig) == 0)
    async with running_consumers(tmp_path / "data", port=port) as rig:
        await rig.subscribe()
        await rig.publish_numbers(10, first=10)
        await condition(lambda: backlog(rig) == 0)
        worker.cancel()
        await asyncio.wait([worker])
    assert seen == list(range(20))


@pytest.mark.parametrize(
    ("name", "code"), [("biling", "unknown-subscription"), ("pushed", "wrong-mode")]
)
async def test_what_cannot_be_leased_is_raised(
    rig: ConsumerRig, ibrik: Client, name: str, code: str
) -> None:
    await rig.subscribe("pushed", mode=Mode.PUSH)
    with pytest.raises(InvalidRequest) as caught:
        async for _ in ibrik.subscribe(name):
            pass
    assert caught.value.code == code


async def test_an_exclusive_subscription_serves_one_of_two_clients(
    rig: ConsumerRig, ibrik: Client
) -> None:
    await rig.subscribe("ledger", type=GroupType.EXCLUSIVE)
    await rig.publish_numbers(2)
    async for message in ibrik.subscribe("ledger", max_in_flight=1):
        with pytest.raises(InvalidRequest) as caught:
            async for _ in ibrik.subscribe("ledger"):
                pass
        assert caught.value.code == "consumer-conflict"
        await message.ack()
        break


async def test_plain_calls_lease_and_acknowledge(rig: ConsumerRig, ibrik: Client) -> None:
    await rig.publish_numbers(2)
    leases = await ibrik.lease("billing", wait_s=1)
    assert [lease.message.json() for lease in leases] == [0, 1]
    assert await ibrik.ack("billing", leases) == []
    assert await ibrik.lease("billing") == []


@pytest.mark.parametrize("count", [0, -1, 10_001])
async def test_a_number_in_flight_that_is_none_is_refused(ibrik: Client, count: int) -> None:
    with pytest.raises(InvalidRequest, match="max_in_flight"):
        ibrik.subscribe("billing", max_in_flight=count)
