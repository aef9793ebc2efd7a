"""The API server and the broker refuse the same resources: each table is judged by both.

Here the server is the stand-in of `tests.support.admission`; tests/apiserver asks a real one.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from ibrik_api.definitions import KINDS
from ibrik_api.errors import Refusal
from ibrik_api.model import FieldError
from ibrik_api.resources.channel import Channel
from ibrik_api.resources.destination_rules import check_destination
from ibrik_api.resources.pool import BrokerPool
from ibrik_api.resources.pool_rules import check_pool, plan_pool_update
from ibrik_api.resources.subscription import Subscription
from ibrik_api.resources.subscription_rules import check_subscription, plan_subscription_update
from ibrik_api.resources.topic import Topic
from ibrik_api.resources.topic_rules import plan_update, refuse_unfitting
from tests.support.admission import NOTHING, admit, broken_rules, defaulted, holds, schema_of
from tests.support.resource_tables import BOUNDS, CASES, CHANGES, NAMES, resource


def python_findings(document: dict[str, Any]) -> list[FieldError]:
    """What the broker's rules say, without what is only not served yet."""
    match document["kind"]:
        case "Channel":
            return check_destination(Channel.parse(document).spec)
        case "Topic":
            return refuse_unfitting(Topic.parse(document).spec)
        case "BrokerPool":
            return check_pool(BrokerPool.parse(document))
    try:
        check_subscription(Subscription.parse(document).spec)
    except Refusal as refused:
        return [error for error in refused.errors if error["code"] != "unsupported-field"]
    return []


def python_plan(old: dict[str, Any], new: dict[str, Any]) -> list[FieldError]:
    match new["kind"]:
        case "Topic":
            return plan_update(Topic.parse(old).spec, Topic.parse(new).spec)
        case "Subscription":
            parse = Subscription.parse
            return plan_subscription_update(parse(old).spec, parse(new).spec)
    return plan_pool_update(BrokerPool.parse(old).spec, BrokerPool.parse(new).spec)


MODELS = {kind.name: kind.model for kind in KINDS}


@pytest.mark.parametrize(("kind", "spec", "is_fine"), CASES)
def test_both_judge_a_resource_alike(kind: str, spec: dict[str, Any], is_fine: bool) -> None:
    document = resource(kind, spec)
    assert (admit(document) == []) is is_fine
    assert (python_findings(document) == []) is is_fine


@pytest.mark.parametrize(("kind", "old", "new", "is_fine"), CHANGES)
def test_both_judge_a_change_alike(
    kind: str, old: dict[str, Any], new: dict[str, Any], is_fine: bool
) -> None:
    before, after = resource(kind, old), resource(kind, new)
    assert admit(before) == []
    assert (admit(after, before) == []) is is_fine
    assert (python_plan(before, after) == []) is is_fine


@pytest.mark.parametrize(("name", "is_fine"), NAMES)
def test_both_judge_the_name_of_a_pool_alike(name: str, is_fine: bool) -> None:
    document = resource("BrokerPool", {}, name)
    assert (admit(document) == []) is is_fine
    assert (python_findings(document) == []) is is_fine


@pytest.mark.parametrize(("kind", "spec", "is_fine"), BOUNDS)
def test_both_have_the_same_bounds(kind: str, spec: dict[str, Any], is_fine: bool) -> None:
    document = resource(kind, spec)
    admitted = admit(document)
    assert (admitted == []) is is_fine
    assert all("out of bounds: write " in message for message in admitted)
    if is_fine:
        assert python_findings(document) == []
    else:
        with pytest.raises(Refusal, match="out of bounds: write "):
            MODELS[kind].parse(document)


def rules_of(schema: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Those across fields; bounds of one field have a table of their own."""
    if "properties" in schema:
        yield from schema.get("x-kubernetes-validations", ())
    for child in schema.get("properties", {}).values():
        yield from rules_of(child)
    if "items" in schema:
        yield from rules_of(schema["items"])


def test_every_rule_is_broken_by_a_line_of_the_tables() -> None:
    broken = [message for kind, spec, _ in CASES for message in admit(resource(kind, spec))]
    for kind, old, new, _ in CHANGES:
        broken += admit(resource(kind, new), resource(kind, old))
    broken += admit(resource("BrokerPool", {}, "a." + "b" * 40))
    messages = {r["message"] for kind in KINDS for r in rules_of(schema_of(kind.name))}
    told = {message.partition(": ")[2] for message in broken}
    assert messages - told == set()


def test_every_sentence_says_what_to_do() -> None:
    rules = [rule for kind in KINDS for rule in rules_of(schema_of(kind.name))]
    verbs = (
        "keep",
        "give",
        "leave",
        "lower",
        "raise",
        "put",
        "create",
        "write",
        "use",
        "say",
        "set",
    )
    vague = [
        rule["message"]
        for rule in rules
        if not any(f"{verb} " in rule["message"] for verb in verbs)
        and "begin with" not in rule["message"]
        and "is needed" not in rule["message"]
    ]
    assert vague == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_rule_fails_on_a_default_as_it_is_written(kind: Any) -> None:
    # The server runs every rule on the defaults themselves, with nothing filled in, when it takes
    # the definition.
    def visit(schema: dict[str, Any], path: str) -> None:
        if "default" in schema:
            assert list(broken_rules(schema, schema["default"], schema["default"], path)) == []
            assert list(broken_rules(schema, schema["default"], NOTHING, path)) == []
            assert defaulted(schema, schema["default"]) == schema["default"]
        for name, child in schema.get("properties", {}).items():
            visit(child, f"{path}.{name}")

    visit(schema_of(kind.name), kind.name)


def test_a_rule_that_cannot_be_evaluated_is_noticed() -> None:
    with pytest.raises(AssertionError, match="not found"):
        holds("self.missing == 1", {"self": {}})
