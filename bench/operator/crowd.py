"""Many Topics and Subscriptions: created over many connections, watched until all are Ready."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import urllib3

from tests.support.cluster import Document
from tests.support.declared import SUBSCRIPTION, TOPIC, is_so, subscription, topic
from tests.support.shop import Shop

CONNECTIONS = 32
PATIENCE_S = 600


@dataclass(frozen=True, slots=True)
class Crowd:
    topics: int
    subscriptions: int

    @property
    def size(self) -> int:
        return self.topics + self.subscriptions

    def documents(self, namespace: str) -> list[Document]:
        """Topics first, as a person who uploads a folder does."""
        return [
            *(topic(f"topic-{n}", namespace, partitions=1) for n in range(self.topics)),
            *(
                subscription(f"reader-{n}", namespace, f"topic-{n % self.topics}")
                for n in range(self.subscriptions)
            ),
        ]


@dataclass(frozen=True, slots=True)
class Created:
    create_s: float
    ready_s: float
    """From the answer of the last create."""


def create(shop: Shop, crowd: Crowd) -> Created:
    documents = crowd.documents(shop.namespace)
    with ThreadPoolExecutor(CONNECTIONS + 2) as threads:
        watching = [
            threads.submit(_all_ready_at, shop, TOPIC, "topic-", crowd.topics),
            threads.submit(_all_ready_at, shop, SUBSCRIPTION, "reader-", crowd.subscriptions),
        ]
        started = time.monotonic()
        for _ in threads.map(shop.cluster.create, documents):
            pass
        created = time.monotonic()
        ready = max(watch.result() for watch in watching)
    return Created(created - started, max(0.0, ready - created))


def _all_ready_at(shop: Shop, kind: str, prefix: str, wanted: int) -> float:
    """When the last of them became Ready."""
    judge, ready = is_so(), set()
    pause, end = threading.Event(), time.monotonic() + PATIENCE_S
    while (left := int(end - time.monotonic())) > 0:
        # A server ends the watch of a reader that is slow; the next one tells of all there is.
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            for _, seen in shop.cluster.watch(kind, shop.namespace, timeout_s=left):
                name = seen["metadata"]["name"]
                if name.startswith(prefix) and judge(seen):
                    ready.add(name)
                    if len(ready) == wanted:
                        return time.monotonic()
        pause.wait(0.5)
    raise AssertionError(f"{len(ready)} of {wanted} {kind} are Ready after {PATIENCE_S} s")
