"""Carries out desired resources over a pool: each at the broker that serves it.

Kind after kind: topics at their owners, channels in the database and at every broker, and only then
the subscriptions, at the owners of their topics. So an outcome says what the serving broker did.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from ibrik_api.desired import ApplyResult, DesiredResponse, Outcome
from ibrik_api.errors import Refusal
from ibrik_broker.metadata.brokers import BrokerRow
from ibrik_broker.pool.peers import Peers
from ibrik_broker.registrations.applying import KINDS, Desired
from ibrik_broker.registrations.places import Places
from ibrik_broker.topics.documents import refused

Document = Mapping[str, Any]
DESIRED_SECONDS = 120.0
"""A thousand resources take a broker some seconds."""
DESIRED_PATH = "/admin/v1/pool:desired"
CHANGES = frozenset({ApplyResult.APPLIED, ApplyResult.ADOPTED, ApplyResult.DELETED})


class Spreading:
    def __init__(self, desired: Desired, places: Places, peers: Peers) -> None:
        self._desired = desired
        self._places = places
        self._peers = peers
        self._following = places.following

    async def outcomes(self, resources: Sequence[Document]) -> AsyncIterator[tuple[int, Outcome]]:
        """As `Desired.outcomes`, over the whole pool. Raises Refusal `metadata-unavailable`."""
        await self._following.look()  # what another broker just made is not made again
        for indexes in _by_kind(resources):
            is_news = False
            async for index, outcome in self._carry_out(resources, indexes):
                is_news |= outcome.result in CHANGES
                yield index, outcome
            if is_news:
                await asyncio.gather(self._following.look(), self._peers.notify())

    async def _carry_out(
        self, resources: Sequence[Document], indexes: Sequence[int]
    ) -> AsyncIterator[tuple[int, Outcome]]:
        """Resources of one kind: those of other brokers in one request to each."""
        planned: Counter[str] = Counter()
        away: defaultdict[str, list[int]] = defaultdict(list)
        here = []
        for index in indexes:
            owner = self._owner(resources[index], planned)
            if owner is None or self._peers.pool.is_me(owner):
                here.append(index)
            else:
                away[owner].append(index)
        asked = [self._ask(owner, [resources[i] for i in some]) for owner, some in away.items()]
        asking = asyncio.gather(*asked)
        try:
            for index in here:
                async for _, outcome in self._desired.outcomes([resources[index]]):
                    yield index, outcome
            for some, outcomes in zip(away.values(), await asking, strict=True):
                for index, outcome in zip(some, outcomes, strict=True):
                    yield index, outcome
        finally:
            asking.cancel()

    def _owner(self, document: Document, planned: Counter[str]) -> str | None:
        """None: this broker carries it out, or refuses it."""
        match document.get("kind"):
            case "Topic":
                owner, is_new = self._places.of_topic_resource(document, planned)
                if is_new and owner is not None:
                    planned[owner] += 1
                return owner
            case "Subscription":
                return self._places.of_subscription_resource(document)
            case _:
                return None

    async def _ask(self, owner: str, documents: list[Document]) -> list[Outcome]:
        try:
            broker = self._peers.pool.broker(owner)
            outcomes = await self._put(broker, documents)
        except Refusal as refusal:
            return [refused(document, refusal) for document in documents]
        return outcomes

    async def _put(self, broker: BrokerRow, documents: list[Document]) -> list[Outcome]:
        body = msgspec.json.encode({"resources": documents})
        answer = await self._peers.call(
            broker, "PUT", DESIRED_PATH, body=body, seconds=DESIRED_SECONDS
        )
        return DesiredResponse.parse(msgspec.json.decode(answer)).results


def _by_kind(resources: Sequence[Document]) -> list[list[int]]:
    """Places of the resources, kind by kind in the order in which kinds are carried out."""
    of_kind: defaultdict[int, list[int]] = defaultdict(list)
    for index, document in enumerate(resources):
        kind = document.get("kind")
        of_kind[KINDS.index(kind) if kind in KINDS else len(KINDS)].append(index)
    return [of_kind[rank] for rank in sorted(of_kind)]
