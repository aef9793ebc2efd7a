"""Those who depend on topics hear of each that appears, changes or goes, under all its names."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import DeletionPolicy, TopicSpec
from ibrik_broker.topics.changes import TopicChange
from tests.support.registry import Parts, open_parts

ORDERS = TopicChange("orders", "orders")


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with open_parts(tmp_path) as opened:
        yield opened


def listen(parts: Parts) -> list[TopicChange]:
    heard: list[TopicChange] = []
    parts.registry.on_change.append(heard.append)
    return heard


async def test_each_change_is_told_and_no_change_is_not(parts: Parts) -> None:
    heard = listen(parts)
    await parts.registry.create_topic("orders", TopicSpec())
    await parts.registry.create_topic("orders", TopicSpec())
    assert heard == [ORDERS]
    await parts.registry.put_topic("orders", TopicSpec(partitions=2))
    await parts.registry.delete_topic("orders", policy=DeletionPolicy.RETAIN)
    await parts.registry.create_topic("orders", TopicSpec())
    await parts.registry.delete_topic("orders", policy=DeletionPolicy.DELETE)
    assert heard == [ORDERS] * 5
    with pytest.raises(Refusal):
        await parts.registry.create_topic("Orders", TopicSpec())
    assert len(heard) == 5


async def test_a_topic_that_gets_another_resource_is_told_under_both_names(parts: Parts) -> None:
    await parts.registry.create_topic("orders", TopicSpec())
    await parts.registry.delete_topic("orders", policy=DeletionPolicy.RETAIN)
    heard = listen(parts)
    await parts.registry.apply(
        [
            {
                "apiVersion": "ibrik.dev/v1beta1",
                "kind": "Topic",
                "metadata": {"name": "renamed", "namespace": "shop"},
                "spec": {"topicName": "orders"},
            }
        ]
    )
    assert heard == [ORDERS, TopicChange("orders", "renamed")]


async def test_when_a_change_is_told_the_topic_is_as_it_says(parts: Parts) -> None:
    seen: list[bool] = []
    parts.registry.on_change.append(
        lambda change: seen.append(parts.registry.served(change.name) is not None)
    )
    await parts.registry.create_topic("orders", TopicSpec())
    await parts.registry.delete_topic("orders", policy=DeletionPolicy.DELETE)
    assert seen == [True, False]
