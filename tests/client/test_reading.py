"""Reading from a real broker: by offset, whole partitions, live, over gaps and restarts."""

from pathlib import Path

import pytest

import ibrik_client
from ibrik_api.observed import Observed
from ibrik_client import Client, Gap, InvalidRequest, MessagesLost, OffsetOutOfRange, RetryPolicy
from tests.support.broker import running_broker

pytestmark = pytest.mark.slow


@pytest.fixture
async def topic(ibrik: Client, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("_", "-").partition("[")[0]
    await ibrik.admin.create_topic(name, {"partitions": 2})
    return name


async def fill(ibrik: Client, topic: str, count: int, partition: int = 0) -> None:
    async with ibrik.publisher(topic, batch_records=100) as publisher:
        for n in range(count):
            await publisher.send({"n": n}, partition=partition)


async def test_a_read_says_where_to_go_on(ibrik: Client, topic: str) -> None:
    await fill(ibrik, topic, 10)
    result = await ibrik.read(topic, 0, 3, max_messages=4)
    assert [m.offset for m in result.messages] == [3, 4, 5, 6]
    assert (result.next_offset, result.high_watermark) == (7, 10)


async def test_a_read_at_the_end_is_empty(ibrik: Client, topic: str) -> None:
    result = await ibrik.read(topic, 1, "earliest", wait_s=0.05)
    assert (list(result.messages), result.next_offset) == ([], 0)


async def test_a_read_above_the_end_names_the_range(ibrik: Client, topic: str) -> None:
    await fill(ibrik, topic, 3)
    with pytest.raises(OffsetOutOfRange) as caught:
        await ibrik.read(topic, 0, 99)
    assert (caught.value.earliest, caught.value.latest) == (0, 3)
    with pytest.raises(OffsetOutOfRange):
        await ibrik.message(topic, 0, 3)


async def test_a_scan_ends_where_the_log_ended_when_it_began(ibrik: Client, topic: str) -> None:
    await fill(ibrik, topic, 2_500)
    offsets = []
    async for message in ibrik.scan(topic, 0):
        offsets.append(message.offset)
        if message.offset == 0:
            await fill(ibrik, topic, 5)
    assert offsets == list(range(2_500))
    assert [m.offset async for m in ibrik.scan(topic, 0, 10, end=12)] == [10, 11]


async def test_a_time_finds_its_offset(ibrik: Client, topic: str) -> None:
    ack = await ibrik.publish(topic, b"x", partition=0)
    assert await ibrik.offsets_at(topic, ack.timestamp) == [0, 0]
    assert await ibrik.offsets_at(topic, "2100-01-01T00:00:00Z") == [1, 0]


async def test_a_follower_sees_all_partitions_and_what_comes(ibrik: Client, topic: str) -> None:
    await fill(ibrik, topic, 20, partition=0)
    await fill(ibrik, topic, 20, partition=1)
    seen: list[tuple[int, int]] = []
    async for message in ibrik.follow(topic, "earliest"):
        seen.append((message.partition, message.offset))
        if len(seen) == 40:
            await ibrik.publish(topic, b"live", partition=1)
        if message.value == b"live":
            break
    assert sorted(seen) == [(0, n) for n in range(20)] + [(1, n) for n in range(21)]


async def test_a_follower_begins_at_offsets_or_at_a_time(ibrik: Client, topic: str) -> None:
    await fill(ibrik, topic, 5)
    async for message in ibrik.follow(topic, [3, 0]):
        assert message.offset == 3
        break
    ack = await ibrik.publish(topic, b"now", partition=1)
    async for message in ibrik.follow(topic, ack.timestamp):
        assert message.timestamp >= ack.timestamp
        break


async def test_purged_offsets_are_never_passed_over_in_silence(ibrik: Client, topic: str) -> None:
    await fill(ibrik, topic, 5)
    await ibrik.admin.purge_topic(topic)
    await ibrik.publish(topic, b"after", partition=0)
    with pytest.raises(MessagesLost) as caught:
        async for _ in ibrik.follow(topic, [0, 0]):
            pass
    assert (caught.value.gap.from_offset, caught.value.gap.to_offset) == (0, 5)
    gaps: list[Gap] = []
    async for message in ibrik.follow(topic, [0, 0], on_gap=gaps.append):
        assert message.offset == 5
        break
    assert [(gap.partition, gap.reason) for gap in gaps] == [(0, "offset-below-start")]
    with pytest.raises(OffsetOutOfRange) as below:
        await ibrik.read(topic, 0, 0)
    assert below.value.earliest == 5


async def test_a_follower_goes_on_after_a_restart(tmp_path: Path) -> None:
    patient = RetryPolicy(deadline_s=60, first_wait_s=0.02, longest_wait_s=0.2)
    with running_broker(tmp_path) as first:
        port = first.http_url.rpartition(":")[2]
        async with ibrik_client.connect(first.http_url, retry=patient) as ibrik:
            await ibrik.admin.create_topic("orders")
            await fill(ibrik, "orders", 10)
            following = ibrik.follow("orders", "earliest")
            before = [(await anext(following)).offset for _ in range(10)]
            first.terminate()
            with running_broker(tmp_path, IBRIK_HTTP__PORT=port):
                await fill(ibrik, "orders", 10)
                after = [(await anext(following)).offset for _ in range(10)]
                await following.aclose()
    assert before + after == list(range(20))


async def test_topics_are_made_listed_changed_and_deleted(ibrik: Client, topic: str) -> None:
    resource = await ibrik.admin.topic(topic)
    version = resource["metadata"]["resourceVersion"]
    changed = await ibrik.admin.replace_topic(topic, {"partitions": 4}, resource_version=version)
    assert changed["spec"]["partitions"] == 4
    with pytest.raises(InvalidRequest) as stale:
        await ibrik.admin.replace_topic(topic, {"partitions": 5}, resource_version=version)
    assert stale.value.code == "precondition-failed"
    assert topic in [t["metadata"]["name"] for t in await ibrik.admin.topics()]
    assert len(await ibrik.ranges(topic)) == 4
    assert await ibrik.admin.delete_topic(topic) == "detached"
    await ibrik.admin.create_topic(topic, {"partitions": 4})
    assert await ibrik.admin.delete_topic(topic, policy="Delete") == "deleted"


async def test_desired_resources_are_applied_one_by_one(ibrik: Client) -> None:
    good = {"apiVersion": "ibrik.dev/v1beta1", "kind": "Topic", "metadata": {"name": "good"}}
    bad = {**good, "metadata": {"name": "bad"}, "spec": {"partitions": 0}}
    results = await ibrik.admin.apply([good, bad, good])
    assert [r["result"] for r in results] == ["applied", "refused", "unchanged"]
    assert "partitions" in results[1]["detail"]


async def test_a_broker_is_observed_with_what_was_applied(ibrik: Client) -> None:
    topic = {"apiVersion": "ibrik.dev/v1beta1", "kind": "Topic", "metadata": {"name": "seen"}}
    await ibrik.admin.apply([topic])
    observed = Observed.parse(await ibrik.admin.observed())
    assert "seen" in [resource.name for resource in observed.resources]
    assert "seen" in observed.broker.topics
