"""The world: what was last told of an object, without what nobody reads."""

from ibrik_operator.keys import Key
from ibrik_operator.world import World


def topic(name: str, namespace: str = "shop", **metadata: object) -> dict[str, object]:
    return {"kind": "Topic", "metadata": {"name": name, "namespace": namespace, **metadata}}


def test_it_remembers_the_last_word() -> None:
    world = World()
    assert world.put(topic("orders", generation=1)) is None
    before = world.put(topic("orders", generation=2, managedFields=[{"manager": "kubectl"}]))
    assert before == topic("orders", generation=1)
    assert world.get(Key("Topic", "shop", "orders")) == topic("orders", generation=2)


def test_what_is_gone_is_gone() -> None:
    world = World()
    world.put(topic("orders"))
    key = Key("Topic", "shop", "orders")
    assert world.remove(key) == topic("orders")
    assert world.get(key) is None
    assert world.remove(key) is None


def test_a_list_bears_changes_while_it_is_read() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.put(topic(name))
    world.put(topic("d", "other"))
    seen = []
    for document in world.all("Topic", "shop"):
        world.remove(Key.of(document))
        seen.append(Key.of(document).name)
    assert seen == ["a", "b", "c"]
    assert [str(Key.of(document)) for document in world.all("Topic")] == ["Topic other/d"]


def subscription(name: str, of: str, channel: dict[str, str] | None = None) -> dict[str, object]:
    reference = {} if channel is None else {"channelRef": channel}
    return {
        "kind": "Subscription",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"topicRef": {"name": of}} | reference,
    }


def naming(world: World, named: Key) -> list[str]:
    return [Key.of(document).name for document in world.naming(named)]


def test_it_knows_who_names_whom_as_of_the_last_word() -> None:
    orders, clicks = Key("Topic", "shop", "orders"), Key("Topic", "shop", "clicks")
    world = World()
    world.put(subscription("audit", "orders", {"name": "log", "namespace": "site"}))
    world.put(subscription("billing", "orders"))
    assert naming(world, orders) == ["audit", "billing"]
    assert naming(world, Key("Channel", "site", "log")) == ["audit"]
    world.put(subscription("audit", "clicks"))
    assert (naming(world, orders), naming(world, clicks)) == (["billing"], ["audit"])
    assert naming(world, Key("Channel", "site", "log")) == []
    world.remove(Key("Subscription", "shop", "billing"))
    assert naming(world, orders) == []


def test_who_names_a_thing_may_change_while_it_is_read() -> None:
    world = World()
    for name in ("a", "b"):
        world.put(subscription(name, "orders"))
    seen = []
    for document in world.naming(Key("Topic", "shop", "orders")):
        seen.append(Key.of(document).name)
        world.remove(Key("Subscription", "shop", "b"))
    assert seen == ["a"]
