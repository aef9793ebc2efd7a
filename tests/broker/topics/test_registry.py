"""Topics over HTTP: made, changed, deleted by policy, brought back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import DeletionPolicy, TopicSpec
from ibrik_broker.metadata.topics import TopicState
from tests.support.registry import Parts, open_parts


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with open_parts(tmp_path) as opened:
        yield opened


def spec(**fields: Any) -> TopicSpec:
    return TopicSpec.parse(fields)


async def refused(code: str, work: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await work
    assert caught.value.code == code
    return caught.value


async def test_a_new_topic_is_served_and_described(parts: Parts) -> None:
    made = await parts.registry.create_topic("orders", spec(partitions=2))
    await parts.publish("orders", b"one", b"two")
    seen = parts.registry.describe("orders")
    assert seen.metadata == made.metadata
    assert seen.metadata.generation == 1
    assert seen.spec == spec(partitions=2)
    assert seen.status is not None
    assert seen.status.messages == 2
    assert seen.status.origin == "api"
    assert seen.status.topic_id == parts.engine.topic("orders").id
    assert seen.status.endpoints is not None
    assert seen.status.endpoints.publish == "/v1/topics/orders/messages"


async def test_topics_are_there_again_after_a_restart(tmp_path: Path) -> None:
    async with open_parts(tmp_path) as parts:
        made = await parts.registry.create_topic("orders", spec(partitions=3))
        await parts.publish("orders", b"one")
    async with open_parts(tmp_path) as parts:
        assert parts.registry.findings == []
        assert parts.registry.describe("orders").metadata == made.metadata
        assert parts.messages("orders") == 1


async def test_the_same_topic_again_changes_nothing(parts: Parts) -> None:
    first = await parts.registry.create_topic("orders", spec())
    again = await parts.registry.create_topic("orders", spec(topicName="orders"))
    assert again.metadata == first.metadata
    await refused("topic-exists", parts.registry.create_topic("orders", spec(partitions=2)))


async def test_ten_requests_for_one_topic_make_one(parts: Parts) -> None:
    made = await asyncio.gather(*(parts.registry.create_topic("o", spec()) for _ in range(10)))
    assert len({one.metadata.resource_version for one in made}) == 1
    assert len(await parts.rows.all()) == 1


@pytest.mark.parametrize(
    ("name", "fields", "code"),
    [
        ("Orders", {}, "invalid-name"),
        ("orders", {"replicas": 3}, "unsupported-field"),
        ("orders", {"buffer": {"bytes": "4Ki"}}, "invalid-resource"),
    ],
)
async def test_a_topic_that_cannot_be_served_is_refused_and_leaves_nothing(
    parts: Parts, name: str, fields: dict[str, Any], code: str
) -> None:
    await refused(code, parts.registry.create_topic(name, spec(**fields)))
    assert await parts.rows.all() == []
    assert parts.volume.topics() == []


async def test_first_use_makes_a_topic_and_later_use_leaves_it_alone(parts: Parts) -> None:
    await parts.registry.ensure_topic("orders")
    await parts.registry.put_topic("orders", spec(partitions=2))
    await parts.registry.ensure_topic("orders")
    assert parts.registry.describe("orders").metadata.generation == 2


async def test_a_put_creates_then_changes_then_does_nothing(parts: Parts) -> None:
    first, is_new = await parts.registry.put_topic("orders", spec())
    assert is_new
    second, is_new = await parts.registry.put_topic("orders", spec(partitions=4))
    assert not is_new
    assert second.metadata.generation == 2
    assert len(parts.engine.topic("orders").partitions) == 4
    third, _ = await parts.registry.put_topic("orders", spec(partitions=4))
    assert third.metadata == second.metadata
    assert first.metadata.resource_version != second.metadata.resource_version


async def test_new_partitions_are_there_after_a_restart(tmp_path: Path) -> None:
    async with open_parts(tmp_path) as parts:
        await parts.registry.create_topic("orders", spec())
        await parts.registry.put_topic("orders", spec(partitions=4))
    async with open_parts(tmp_path) as parts:
        assert parts.registry.findings == []
        assert len(parts.engine.topic("orders").partitions) == 4


async def test_a_change_of_what_was_read_before_another_change_is_refused(parts: Parts) -> None:
    made = await parts.registry.create_topic("orders", spec())
    revision = int(made.metadata.resource_version or 0)
    await parts.registry.put_topic("orders", spec(partitions=2), if_match=revision)
    await refused(
        "precondition-failed",
        parts.registry.put_topic("orders", spec(partitions=3), if_match=revision),
    )
    await refused("precondition-failed", parts.registry.put_topic("new", spec(), if_match=1))
    await refused("precondition-failed", parts.registry.delete_topic("orders", if_match=revision))


async def test_partitions_never_shrink(parts: Parts) -> None:
    await parts.registry.create_topic("orders", spec(partitions=4))
    await refused("partitions-shrink", parts.registry.put_topic("orders", spec(partitions=2)))
    assert parts.registry.describe("orders").spec.partitions == 4


async def test_an_unknown_topic_is_refused_with_the_nearest_name(parts: Parts) -> None:
    await parts.registry.create_topic("orders", spec())
    with pytest.raises(Refusal, match=r"Did you mean 'orders'\? Create it with: ibrik topic"):
        parts.registry.describe("ordres")
    await refused("unknown-topic", parts.registry.delete_topic("ordres"))


async def test_topics_are_listed_by_name_and_in_pages(parts: Parts) -> None:
    for name in ("c", "a", "b"):
        await parts.registry.create_topic(name, spec())
    page = parts.registry.list_topics(limit=2)
    assert [topic.metadata.name for topic in page] == ["a", "b"]
    rest = parts.registry.list_topics(after="b")
    assert [topic.metadata.name for topic in rest] == ["c"]


async def test_a_topic_deleted_under_retain_is_detached_and_comes_back_whole(
    tmp_path: Path,
) -> None:
    async with open_parts(tmp_path) as parts:
        await parts.registry.create_topic("orders", spec(partitions=2))
        await parts.publish("orders", b"one", b"two")
        topic_id = parts.engine.topic("orders").id
        assert await parts.registry.delete_topic("orders") is TopicState.DETACHED
        await refused("topic-detached", parts.registry.delete_topic("orders"))
    async with open_parts(tmp_path) as parts:
        with pytest.raises(Refusal, match="Bring it back with: ibrik topic create orders"):
            parts.engine.topic("orders")
        assert parts.registry.list_topics() == []
        await refused("partitions-shrink", parts.registry.put_topic("orders", spec()))
        await parts.registry.create_topic("orders", spec(partitions=3))
        assert parts.engine.topic("orders").id == topic_id
        assert parts.messages("orders") == 2


async def test_a_detached_topic_comes_back_as_it_was_when_nothing_is_wished(parts: Parts) -> None:
    kept = spec(partitions=3, retention={"time": "30d"})
    await parts.registry.create_topic("orders", kept)
    await parts.registry.delete_topic("orders")
    assert (await parts.registry.create_topic("orders", spec())).spec == kept


async def test_a_topic_deleted_under_delete_is_gone_and_the_next_is_another(
    tmp_path: Path,
) -> None:
    async with open_parts(tmp_path) as parts:
        await parts.registry.create_topic("orders", spec(deletionPolicy="Delete"))
        await parts.publish("orders", b"one")
        topic_id = parts.engine.topic("orders").id
        await parts.registry.delete_topic("orders")
        await refused("unknown-topic", parts.registry.delete_topic("orders"))
        assert parts.volume.topics() == []
        await parts.registry.create_topic("orders", spec())
        assert parts.engine.topic("orders").id != topic_id
        assert parts.messages("orders") == 0
    assert not (tmp_path / "topics" / f"{topic_id}.deleted").exists()


async def test_a_detached_topic_can_be_given_up_for_good(parts: Parts) -> None:
    await parts.registry.create_topic("orders", spec())
    await parts.registry.delete_topic("orders")
    await parts.registry.delete_topic("orders", policy=DeletionPolicy.DELETE)
    assert await parts.rows.all() == []
    await refused("unknown-topic", parts.registry.delete_topic("orders"))


async def test_delete_if_empty_keeps_a_topic_with_messages(parts: Parts) -> None:
    await parts.registry.create_topic("orders", spec(deletionPolicy="DeleteIfEmpty"))
    await parts.publish("orders", b"one")
    refusal = await refused("topic-not-empty", parts.registry.delete_topic("orders"))
    assert refusal.facts == {"messages": 1}
    await parts.publish("orders", b"two")
    await parts.registry.purge("orders")
    await parts.registry.delete_topic("orders")
    await refused("unknown-topic", parts.registry.delete_topic("orders"))


async def test_a_purge_removes_messages_and_keeps_offsets(parts: Parts) -> None:
    await parts.registry.create_topic("orders", spec())
    await parts.publish("orders", b"one", b"two")
    topic = await parts.registry.purge("orders")
    assert (topic.partitions[0].earliest, topic.partitions[0].latest) == (2, 2)
    await parts.publish("orders", b"three")
    assert parts.messages("orders") == 1
