"""Topics as people declare them: served, changed, refused, detached, adopted, deleted."""

from tests.support.cluster import condition
from tests.support.declared import POOL, TOPIC, annotated, is_so, topic
from tests.support.shop import Shop


def test_the_first_topic_of_a_namespace_brings_its_pool_along_and_is_served(shop: Shop) -> None:
    shop.apply(topic("orders", ""))
    ready = shop.ready(TOPIC, "orders")
    assert shop.ready(POOL, "default")["status"]["ready"] == "1/1"
    shop.publish("orders", b"1", b"2")
    assert shop.messages("orders") == 2
    publish = ready["status"]["endpoints"]["publish"]
    assert publish.startswith(f"http://ibrik-default.{shop.namespace}.svc:8080/v1/topics/orders/")


def test_a_change_is_carried_out_and_confirmed_by_its_generation(shop: Shop) -> None:
    shop.apply(topic("growing", "", partitions=2))
    before = shop.ready(TOPIC, "growing")
    shop.apply(topic("growing", "", partitions=4))
    after = shop.ready(TOPIC, "growing")
    assert after["status"]["observedGeneration"] == before["metadata"]["generation"] + 1
    _, answer = shop.ask("GET", "/v1/topics/growing/partitions")
    assert len(answer["partitions"]) == 4
    # The flip tells when it happened, and nothing flipped.
    times = [condition(one, "Ready")["lastTransitionTime"] for one in (before, after)]
    assert times[0] <= times[1]


def test_what_is_not_served_yet_is_a_sentence_and_the_rest_goes_on(shop: Shop) -> None:
    shop.apply(topic("early", ""))
    shop.ready(TOPIC, "early")
    shop.apply(topic("early", "", cleanup="compact"))
    assert "compaction is not served yet" in shop.not_ready(TOPIC, "early", "SpecRefused")
    shop.publish("early", b"still here")
    shop.apply(topic("early", ""))
    shop.ready(TOPIC, "early")


def test_a_topic_of_an_unknown_pool_waits_for_it(shop: Shop) -> None:
    shop.apply(topic("elsewhere", "", pool={"name": "no-such"}))
    assert "no-such" in shop.not_ready(TOPIC, "elsewhere", "PoolNotFound")
    assert shop.find(POOL, "no-such") is None


def test_of_two_topics_with_one_name_the_older_is_served(shop: Shop) -> None:
    shop.apply(topic("first", "", topicName="contested"))
    shop.ready(TOPIC, "first")
    shop.publish("contested", b"kept")
    shop.apply(topic("second", "", topicName="contested", deletionPolicy="Delete"))
    assert "first" in shop.not_ready(TOPIC, "second", "Conflict")
    shop.delete(TOPIC, "second")
    shop.gone(TOPIC, "second")
    assert shop.messages("contested") == 1
    shop.ready(TOPIC, "first")


def test_a_younger_rival_is_served_when_the_older_is_gone(shop: Shop) -> None:
    shop.apply(topic("older", "", topicName="inherited"))
    identity = shop.ready(TOPIC, "older")["status"]["topicId"]
    shop.apply(topic("younger", "", topicName="inherited"))
    shop.not_ready(TOPIC, "younger", "Conflict")
    shop.delete(TOPIC, "older")
    assert shop.ready(TOPIC, "younger")["status"]["topicId"] == identity


def test_retain_detaches_and_the_same_name_adopts_the_data(shop: Shop) -> None:
    shop.apply(topic("kept", ""))
    before = shop.ready(TOPIC, "kept")
    assert "finalizers" not in before["metadata"]
    shop.publish("kept", b"1")
    shop.delete(TOPIC, "kept")
    shop.gone(TOPIC, "kept")
    shop.apply(topic("kept", ""))
    after = shop.ready(TOPIC, "kept")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["status"]["topicId"] == before["status"]["topicId"]
    assert shop.messages("kept") == 1


def test_delete_deletes_and_the_same_name_is_another_topic(shop: Shop) -> None:
    shop.apply(topic("dropped", "", deletionPolicy="Delete"))
    before = shop.ready(TOPIC, "dropped")
    assert before["metadata"]["finalizers"] == ["ibrik.dev/protect"]
    shop.publish("dropped", b"1")
    shop.delete(TOPIC, "dropped")
    shop.gone(TOPIC, "dropped")
    status, answer = shop.ask("GET", "/v1/topics/dropped/partitions")
    assert (status, answer["code"]) == (404, "unknown-topic")
    shop.apply(topic("dropped", "", deletionPolicy="Delete"))
    after = shop.ready(TOPIC, "dropped")
    assert after["status"]["topicId"] != before["status"]["topicId"]
    assert shop.messages("dropped") == 0


def test_delete_if_empty_waits_while_there_are_messages_and_can_be_forced(shop: Shop) -> None:
    shop.apply(topic("full", "", deletionPolicy="DeleteIfEmpty"))
    shop.ready(TOPIC, "full")
    shop.publish("full", b"1")
    shop.delete(TOPIC, "full")
    shop.not_ready(TOPIC, "full", "DeletionWaits")
    assert shop.messages("full") == 1
    shop.patch(TOPIC, "full", {"metadata": {"annotations": {"ibrik.dev/force-delete": "true"}}})
    shop.gone(TOPIC, "full")


def test_a_policy_that_changes_back_lets_the_finalizer_go(shop: Shop) -> None:
    shop.apply(topic("undecided", "", deletionPolicy="Delete"))
    shop.ready(TOPIC, "undecided")
    shop.apply(topic("undecided", ""))
    shop.wait(TOPIC, "undecided", lambda t: "finalizers" not in t["metadata"] and is_so()(t))


def test_a_paused_topic_is_left_as_it_is(shop: Shop) -> None:
    shop.apply(topic("resting", ""))
    shop.ready(TOPIC, "resting")
    shop.apply(annotated(topic("resting", "", partitions=3), paused="true"))
    shop.wait(TOPIC, "resting", is_so("Reconciling", "False", "Paused"))
    _, answer = shop.ask("GET", "/v1/topics/resting/partitions")
    assert len(answer["partitions"]) == 1
    shop.apply(topic("resting", "", partitions=3))
    shop.ready(TOPIC, "resting")
    _, answer = shop.ask("GET", "/v1/topics/resting/partitions")
    assert len(answer["partitions"]) == 3


def test_a_paused_topic_keeps_its_data_although_it_is_deleted(shop: Shop) -> None:
    shop.apply(annotated(topic("spared", "", deletionPolicy="Delete"), paused="true"))
    shop.wait(TOPIC, "spared", is_so("Reconciling", "False", "Paused"))
    shop.patch(TOPIC, "spared", {"metadata": {"annotations": {"ibrik.dev/paused": None}}})
    shop.ready(TOPIC, "spared")
    shop.publish("spared", b"1")
    shop.patch(TOPIC, "spared", {"metadata": {"annotations": {"ibrik.dev/paused": "true"}}})
    shop.wait(TOPIC, "spared", is_so("Reconciling", "False", "Paused"))
    shop.delete(TOPIC, "spared")
    assert "ibrik.dev/paused" in shop.not_ready(TOPIC, "spared", "DeletionWaits")
    assert shop.messages("spared") == 1
    shop.patch(TOPIC, "spared", {"metadata": {"annotations": {"ibrik.dev/paused": None}}})
    shop.gone(TOPIC, "spared")
