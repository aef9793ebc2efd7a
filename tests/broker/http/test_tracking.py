"""Who got a message: every subscription of its topic, and each attempt that failed."""

import pytest

from tests.broker.http.receiver import receiving
from tests.broker.http.rig import Rig

MESSAGES = "/v1/topics/orders/partitions/0/messages"


async def test_each_subscription_says_how_far_it_is(rig: Rig) -> None:
    async with receiving() as receiver:
        receiver.status = 400
        await rig.call("POST", "/v1/topics/orders/subscribers", {"url": receiver.url})
        spec = {"topicRef": {"name": "orders"}, "mode": "pull"}
        body = {"metadata": {"name": "audit"}, "spec": spec}
        assert (await rig.call("PUT", "/v1/subscriptions/audit", body)).status == 201
        await rig.publish(b"1")
        await receiver.until(lambda: receiver.bodies == [b"1"])
        pushed: dict[str, object] = {}
        while pushed.get("state") != "dead-lettered":
            reply = await rig.call("GET", f"{MESSAGES}/0/deliveries")
            assert reply.status == 200
            audit, pushed = reply.json["deliveries"]
        assert (audit["subscription"], audit["mode"], audit["state"]) == (
            "audit",
            "pull",
            "waiting",
        )
        assert audit["attempts"] == []
        (attempt,) = pushed["attempts"]  # type: ignore[misc]
        assert (attempt["attempt"], attempt["status"], attempt["error"]) == (1, 400, "status")
        assert attempt["next"] is None


async def test_a_topic_without_subscriptions_has_no_deliveries(rig: Rig) -> None:
    await rig.publish(b"1")
    reply = await rig.call("GET", f"{MESSAGES}/0/deliveries")
    assert reply.json == {"topic": "orders", "partition": 0, "offset": 0, "deliveries": []}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"{MESSAGES}/7/deliveries", "offset-above-end"),
        (f"{MESSAGES}/x/deliveries", "invalid-offset"),
        ("/v1/topics/orders/partitions/9/messages/0/deliveries", "unknown-partition"),
        ("/v1/topics/nobody/partitions/0/messages/0/deliveries", "unknown-topic"),
    ],
)
async def test_a_message_that_is_not_there_is_refused(rig: Rig, path: str, code: str) -> None:
    assert (await rig.call("GET", path)).json["code"] == code
