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
