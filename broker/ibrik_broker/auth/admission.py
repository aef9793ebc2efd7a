"""Whether somebody may publish to a topic that takes registered publishers only.

Asked before the body is read. Everything it needs is in memory: no database on the way.
"""

from typing import Protocol

from ibrik_api.errors import Refusal
from ibrik_broker.auth.gatekeeper import Gatekeeper
from ibrik_broker.auth.publishers import Publishers
from ibrik_broker.auth.tokens import bearer_token
from ibrik_broker.metadata.publishers import PublisherRow


class Headers(Protocol):
    """The headers of a request; names in any case, several of one name."""

    def getall(self, name: str, default: list[str], /) -> list[str]: ...


class Admission:
    def __init__(self, publishers: Publishers, gatekeeper: Gatekeeper | None = None) -> None:
        self._publishers = publishers
        self._gatekeeper = gatekeeper

    def admit(self, topic: str, headers: Headers, address: str | None) -> PublisherRow:
        """The publisher that a request to `topic` comes from.

        Raises Refusal `publisher-not-registered`, which says how to register.
        """
        gatekeeper = self._gatekeeper
        if gatekeeper is not None and gatekeeper.trusts(address):
            named = headers.getall(gatekeeper.header, [])
            if named:
                return self._by_name(topic, gatekeeper.header, named)
        token = bearer_token(_single(headers.getall("Authorization", [])))
        if not token:
            raise _refused(topic, "it needs the token of one of them, and there was none")
        publisher = self._publishers.by_token(topic, token)
        if publisher is None:
            raise _refused(
                topic, "the token is none of theirs: it was rotated or removed, or is another's"
            )
        return publisher

    def _by_name(self, topic: str, header: str, named: list[str]) -> PublisherRow:
        name = _single(named)
        publisher = self._publishers.find(topic, name) if name else None
        if publisher is None:
            raise _refused(topic, f"{header} says {name[:60]!r}, which is none of them")
        return publisher


def _single(values: list[str]) -> str:
    """The value of a header; two of them contradict each other, so they count as none."""
    return values[0].strip() if len(values) == 1 else ""


def _refused(topic: str, why: str) -> Refusal:
    return Refusal(
        "publisher-not-registered",
        f"The topic '{topic}' takes messages from registered publishers only: {why}. Register with"
        f' POST /v1/topics/{topic}/publishers {{"name": "…"}} and send the token of its answer as'
        " `Authorization: Bearer TOKEN`.",
    )
