"""Where a new topic goes."""

from ibrik_broker.metadata.brokers import BrokerRow
from ibrik_broker.pool.placement import FRESH_MS, STEP_BYTES, candidates

NOW_MS = 1_000_000


def broker(name: str, *, size_bytes: int = 0, seen_ms: int = NOW_MS) -> BrokerRow:
    return BrokerRow(
        id=f"id-{name}",
        name=name,
        host=name,
        http_port=8080,
        admin_port=8081,
        size_bytes=size_bytes,
        started_ms=1,
        updated_ms=seen_ms,
    )


def names(brokers: list[BrokerRow], topics: dict[str, int] | None = None) -> list[str]:
    return [row.name for row in candidates(brokers, topics or {}, NOW_MS)]


def test_the_broker_with_the_fewest_bytes_comes_first() -> None:
    brokers = [broker("a", size_bytes=5 * STEP_BYTES), broker("b", size_bytes=STEP_BYTES)]
    assert names(brokers, {"id-b": 100}) == ["b", "a"]


def test_a_few_bytes_less_count_for_nothing_and_topics_decide() -> None:
    brokers = [broker("a", size_bytes=1), broker("b", size_bytes=10_000), broker("c")]
    assert names(brokers, {"id-a": 2, "id-b": 1, "id-c": 3}) == ["b", "a", "c"]


def test_a_broker_that_is_silent_gets_no_topic() -> None:
    brokers = [broker("a", seen_ms=NOW_MS - FRESH_MS), broker("b", size_bytes=10 * STEP_BYTES)]
    assert names(brokers) == ["b"]


def test_topics_that_are_made_one_after_the_other_are_spread_evenly() -> None:
    brokers, topics = [broker("a"), broker("b"), broker("c")], {}
    for _ in range(30):
        chosen = candidates(brokers, topics, NOW_MS)[0].id
        topics[chosen] = topics.get(chosen, 0) + 1
    assert topics == {"id-a": 10, "id-b": 10, "id-c": 10}
