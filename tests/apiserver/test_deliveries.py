"""Subscriptions and channels: what they wait for, who may name whom, secrets that rotate."""

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from tests.support.cluster import Document, condition
from tests.support.declared import (
    CHANNEL,
    SECRET,
    SUBSCRIPTION,
    TOPIC,
    channel,
    is_so,
    subscription,
    topic,
)
from tests.support.shop import Shop

TIMEOUT_S = 60


class Sink:
    """An HTTP endpoint that keeps what it gets, and refuses who is not `accepted`."""

    def __init__(self) -> None:
        self.received: Queue[tuple[str | None, bytes]] = Queue()
        self.accepted: str | None = None
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                who = self.headers.get("Authorization")
                is_accepted = sink.accepted in (None, who)
                if is_accepted:
                    sink.received.put((who, body))
                self.send_response(204 if is_accepted else 401)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def next(self) -> tuple[str | None, bytes]:
        return self.received.get(timeout=TIMEOUT_S)


@pytest.fixture
def sink() -> Iterator[Sink]:
    sink = Sink()
    thread = Thread(target=sink.server.serve_forever)
    thread.start()
    yield sink
    sink.server.shutdown()
    sink.server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def orders(shop: Shop) -> str:
    """A topic whose pool may deliver to this machine."""
    egress = {"allowPrivate": True}
    head = {"apiVersion": "ibrik.dev/v1beta1", "kind": "BrokerPool"}
    shop.apply(head | {"metadata": {"name": "default"}, "spec": {"config": {"egress": egress}}})
    shop.apply(topic("orders", ""))
    shop.ready(TOPIC, "orders")
    return "orders"


def secret(name: str, **values: str) -> Document:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    metadata = {"name": name, "labels": {"ibrik.dev/watch": "true"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def test_messages_reach_a_channel_that_a_subscription_names(
    shop: Shop, orders: str, sink: Sink
) -> None:
    shop.apply(channel("hook", "", http={"url": sink.url}))
    push = {"mode": "push", "channelRef": {"name": "hook"}, "start": {"from": "latest"}}
    shop.apply(subscription("pushes", "", orders, **push))
    ready = shop.ready(SUBSCRIPTION, "pushes")
    assert ready["status"]["destination"] == "channel/hook"
    shop.ready(CHANNEL, "hook")
    shop.publish(orders, b"one")
    assert sink.next()[1] == b"one"
    shop.apply(subscription("pushes", "", orders, **push, paused=True))
    shop.ready(SUBSCRIPTION, "pushes")


def test_a_secret_that_is_missing_is_named_and_rotates_without_a_restart(
    shop: Shop, orders: str, sink: Sink
) -> None:
    bearer = {"bearer": {"secretRef": {"name": "hook-token", "key": "token"}}}
    shop.apply(channel("guarded", "", http={"url": sink.url}, auth=bearer))
    push = {"mode": "push", "channelRef": {"name": "guarded"}, "start": {"from": "latest"}}
    shop.apply(subscription("guarded", "", orders, **push))
    assert "hook-token" in shop.not_ready(CHANNEL, "guarded", "SecretMissing")
    shop.apply(secret("hook-token", other="x"))
    shop.wait(CHANNEL, "guarded", is_so("CredentialsValid", "False", "KeyMissing"))
    shop.apply(secret("hook-token", token="first-of-two"))
    shop.wait(CHANNEL, "guarded", is_so("CredentialsValid"))
    shop.ready(SUBSCRIPTION, "guarded")
    shop.publish(orders, b"a")
    assert sink.next() == ("Bearer first-of-two", b"a")

    sink.accepted = "Bearer second-of-two"
    shop.apply(secret("hook-token", token="second-of-two"))
    copy = "ibrik-default-credentials"
    shop.wait(SECRET, copy, lambda s: has_value(s, "second-of-two"))
    shop.publish(orders, b"b")
    assert sink.next() == ("Bearer second-of-two", b"b")
    shop.wait(CHANNEL, "guarded", is_so("CredentialsValid"))
    logs = shop.operator.log.read_text()
    logs += shop.kubelet.process(shop.namespace, "ibrik-default-0").log.read_text()
    assert "first-of-two" not in logs
    assert "second-of-two" not in logs
    status = json.dumps(shop.get(CHANNEL, "guarded"))
    assert "of-two" not in status


def test_a_deleted_subscription_stops_and_keeps_its_place(shop: Shop, orders: str) -> None:
    shop.apply(subscription("reader", "", orders))
    before = shop.ready(SUBSCRIPTION, "reader")
    shop.delete(SUBSCRIPTION, "reader")
    shop.gone(SUBSCRIPTION, "reader")
    shop.apply(subscription("reader", "", orders))
    after = shop.ready(SUBSCRIPTION, "reader")
    assert after["status"]["subscriptionId"] == before["status"]["subscriptionId"]
    shop.apply(subscription("reader", "", orders, deletionPolicy="Delete"))
    shop.ready(SUBSCRIPTION, "reader")
    shop.delete(SUBSCRIPTION, "reader")
    shop.gone(SUBSCRIPTION, "reader")
    shop.apply(subscription("reader", "", orders))
    again = shop.ready(SUBSCRIPTION, "reader")
    assert again["status"]["subscriptionId"] != before["status"]["subscriptionId"]


def test_a_filter_that_does_not_compile_is_a_sentence(shop: Shop, orders: str) -> None:
    shop.apply(subscription("filtered", "", orders, filter="event.type =="))
    found = shop.wait(SUBSCRIPTION, "filtered", is_so("Ready", "False", "SpecRefused"))
    assert "filter" in condition(found, "Ready")["message"]


def has_value(found: Document, value: str) -> bool:
    values = (found.get("data") or {}).values()
    return any(base64.b64decode(one).decode() == value for one in values)
