"""Counts go into a status only when they have moved by a tenth."""

from typing import Any

import pytest

from ibrik_operator.decisions.counters import is_news
from tests.support.resources import topic


@pytest.mark.parametrize(
    ("known", "seen", "is_new"),
    [
        ({"messages": 100}, {"messages": 100}, False),
        ({"messages": 100}, {"messages": 109}, False),
        ({"messages": 100}, {"messages": 110}, True),
        ({"messages": 100}, {"messages": 90}, True),
        ({"messages": 100}, {"messages": 91}, False),
        ({"messages": 0}, {"messages": 1}, True),
        ({"backlog": 1}, {"backlog": 0}, True),
        ({}, {"messages": 0}, True),
        ({"messages": 100}, {}, False),
        ({"topicId": "a"}, {"topicId": "b"}, True),
        ({"circuit": "open"}, {"circuit": None}, False),
        ({"state": "active"}, {"state": "retrying"}, True),
        ({}, {"archive": {"lag": 0}}, True),
        ({"archive": {"lag": 100}}, {"archive": {"lag": 101}}, False),
        ({"archive": {"lag": 100}}, {"archive": {"lag": 200}}, True),
        ({"archive": {"archivedUpTo": [1]}}, {"archive": {"archivedUpTo": [2]}}, True),
        ({"archive": {"lag": 0}}, {"messages": 0}, True),
        ({}, {"observedGeneration": 7, "conditions": [{"type": "Ready"}]}, False),
    ],
)
def test_it_is_news(known: dict[str, Any], seen: dict[str, Any], is_new: bool) -> None:
    assert is_news(topic(status=known), seen) is is_new


def test_a_resource_without_a_status_gets_one() -> None:
    assert is_news(topic(), {"messages": 0})
