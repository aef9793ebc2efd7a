"""Both HTTP doors on a real engine, a real log and a real database, with real sockets."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, TCPConnector, web

from ibrik_api.errors import CODES
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.auth.gatekeeper import Gatekeeper
from ibrik_broker.http.access import Access
from ibrik_broker.http.admin import AdminPlane, build_admin_plane
from ibrik_broker.http.data import DataPlane, build_data_plane
from ibrik_broker.http.observed import Observer
from ibrik_broker.http.server import DoorRunner
from ibrik_broker.registrations.catalogue import Catalogue
from ibrik_broker.settings import LimitSettings
from ibrik_broker.telemetry.collector import BrokerCollector
from ibrik_log.files import Disk
from tests.broker.http.delivering import Delivering, delivering
from tests.support.registry import Parts, open_parts

TIMEOUT_S = 20.0
RAW = "application/vnd.ibrik.batch"


@dataclass(frozen=True)
class Reply:
    """An answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def refused(self, code: str) -> Any:
        """The problem document; fails unless it is the one for `code`."""
        assert self.headers["Content-Type"] == "application/problem+json", self
        problem = self.json
        assert problem["code"] == code, problem
        row = CODES[code]
        assert (self.status, problem["status"]) == (row.status, row.status)
        assert problem["title"] == row.title
        assert problem["type"].endswith(f"/{code}")
        assert problem["detail"]
        assert ("Retry-After" in self.headers) == (row.retry_after_ms is not None)
        return problem


def with_hyphens(headers: Mapping[str, str]) -> dict[str, str]:
    """Header names as keywords can spell them; a name that has a hyphen stays as it is."""
    return {name if "-" in name else name.replace("_", "-"): text for name, text in headers.items()}


@dataclass
class Rig:
    parts: Parts
    data: DataPlane
    admin: AdminPlane
    data_port: int
    admin_port: int
    runners: list[DoorRunner]
    session: ClientSession
    is_ready: bool = True
    delivers: Delivering | None = None

    @property
    def catalogue(self) -> Catalogue:
        assert self.delivers is not None
        return self.delivers.delivery.catalogue

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        port: int | None = None,
    ) -> Reply:
        """One request; a body that is no bytes is sent as JSON."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{port or self.data_port}{path}"
        async with (
            asyncio.timeout(TIMEOUT_S),
            self.session.request(
                method,
                url,
                data=None if content is None else io.BytesIO(content),
                headers=headers,
                skip_auto_headers=("Content-Type", "Accept-Encoding"),
                allow_redirects=False,
            ) as response,
        ):
            return Reply(response.status, response.headers, await response.read())

    async def publish(self, value: bytes = b"x", *, topic: str = "orders", **headers: str) -> Reply:
        named = with_hyphens(headers)
        return await self.call("POST", f"/v1/topics/{topic}/messages", value, headers=named)

    async def batch(
        self, body: Any, media_type: str = "application/json", query: str = "", **headers: str
    ) -> Reply:
        named = with_hyphens(headers)
        named["Content-Type"] = media_type
        return await self.call("POST", f"/v1/topics/orders/batch{query}", body, headers=named)

    async def read(self, query: str = "", accept: str = "application/json") -> Reply:
        path = f"/v1/topics/orders/partitions/0/messages{query}"
        return await self.call("GET", path, headers={"Accept": accept})

    async def values(self) -> list[Any]:
        """All values of orders/0 as they lie in the log."""
        return [message.get("value") for message in (await self.read()).json["messages"]]

    async def values_or_nothing(self) -> list[Any]:
        """The same, where the log may be empty."""
        return [] if (await self.read()).status == 204 else await self.values()

    async def raw(self, content: bytes, *, ends: bool = False) -> Reply:
        """Write bytes to a socket as they are; read the answer until the broker closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.data_port)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                writer.write(content)
                if ends:
                    writer.write_eof()
                return await read_reply(reader)
        finally:
            writer.close()
            await writer.wait_closed()

    async def create(self, name: str, **spec: object) -> None:
        await self.parts.registry.create_topic(name, TopicSpec.model_validate(spec))


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """One answer with a Content-Length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    body = await reader.readexactly(int(headers.get("Content-Length", "0")))
    return Reply(int(first.split(" ")[1]), headers, body)


@asynccontextmanager
async def running_doors(
    folder: Path,
    *,
    disk: Disk | None = None,
    dev: bool = False,
    heartbeat_ms: int = 15_000,
    token_file: Path | None = None,
    creates: bool = True,
    gatekeeper: Gatekeeper | None = None,
    access: Access | None = None,
    **limits: Any,
) -> AsyncIterator[Rig]:
    """Both doors, with the topic `orders` unless it is not to be created."""
    settings = LimitSettings(**limits)
    async with (
        open_parts(folder, disk=disk) as parts,
        delivering(parts, folder) as delivers,
    ):
        if creates:
            await parts.registry.create_topic("orders", TopicSpec())
        data = build_data_plane(
            parts.engine,
            parts.registry,
            settings,
            allocate_producer_id=parts.database.allocate_producer_id,
            publishers=parts.publishers,
            clients=parts.clients,
            gatekeeper=gatekeeper,
            access=access or Access(),
            delivery=delivers.delivery,
            make_consumers=delivers.make_consumers,
            create_topic=parts.registry.ensure_topic if dev else None,
            heartbeat_ms=heartbeat_ms,
        )
        collector = BrokerCollector([data.readings])
        admin = build_admin_plane(
            parts.engine,
            parts.registry,
            settings,
            apply=delivers.delivery.catalogue.desired.outcomes,
            is_ready=lambda: rig.is_ready,
            collector=collector,
            observer=observer_of(parts, delivers),
            token_file=token_file,
        )
        collector.add(admin.counters.readings)
        runners = [DoorRunner(app, settings, shutdown_timeout_s=2) for app in (data.app, admin.app)]
        ports = [await _listen(runner) for runner in runners]
        connector = TCPConnector(limit=0)
        async with ClientSession(connector=connector, auto_decompress=False) as session:
            rig = Rig(parts, data, admin, ports[0], ports[1], runners, session, delivers=delivers)
            try:
                yield rig
            finally:
                for runner in runners:
                    await runner.cleanup()


def observer_of(parts: Parts, delivers: Delivering) -> Observer:
    return Observer(
        "broker-0",
        parts.volume,
        parts.database,
        parts.engine,
        parts.registry,
        delivers.delivery.catalogue,
        delivers.credentials,
    )


async def _listen(runner: DoorRunner) -> int:
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port: int = runner.addresses[0][1]
    return port
