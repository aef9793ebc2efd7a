"""The sender for a destination; holds what all senders of a broker share."""

from collections.abc import Callable

from ibrik_api.resources.destination import Destination
from ibrik_broker.delivery.across import PublishAcross
from ibrik_broker.delivery.credentials import Credentials
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.senders.http import HttpSender
from ibrik_broker.delivery.senders.http_client import HttpClient
from ibrik_broker.delivery.senders.parcel import Sender
from ibrik_broker.delivery.senders.tcp import TcpSender
from ibrik_broker.delivery.senders.topic import TopicSender
from ibrik_broker.partitions.engine import Engine


class Senders:
    """Makes senders. Needs a running event loop; closed after the last sender, with the guard."""

    def __init__(
        self,
        *,
        guard: Guard,
        credentials: Credentials,
        engine: Engine,
        clock_ms: Callable[[], int],
        across: PublishAcross | None = None,
        namespace: str = "default",
    ) -> None:
        """`namespace` is that of this broker: a Service beside it is found by its name alone."""
        self._namespace = namespace
        self._across = across
        self._guard = guard
        self.credentials = credentials
        self._engine = engine
        self._clock_ms = clock_ms
        self._client = HttpClient(guard)

    def open(self, destination: Destination, namespace: str) -> Sender:
        """A sender to `destination`, whose secrets and services are those of `namespace`."""
        if destination.topic is not None:
            return TopicSender(
                destination.topic.name,
                engine=self._engine,
                timeout_ms=destination.timeout_ms,
                across=self._across,
            )
        if destination.tcp is not None:
            return TcpSender(
                destination,
                guard=self._guard,
                credentials=self.credentials,
                namespace=namespace,
                clock_ms=self._clock_ms,
            )
        return HttpSender(
            destination,
            client=self._client,
            credentials=self.credentials,
            namespace=namespace,
            clock_ms=self._clock_ms,
            domain="" if namespace == self._namespace else f".{namespace}.svc",
        )

    async def close(self) -> None:
        await self._client.close()
        await self._guard.close()
