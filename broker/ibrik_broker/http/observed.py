"""GET /admin/v1/observed: what this broker is and serves, in one answer for the operator."""

import asyncio
from dataclasses import dataclass

import msgspec
from aiohttp import web

from ibrik_api import __version__
from ibrik_api.observed import ObservedBroker
from ibrik_broker.delivery.credentials import Credentials
from ibrik_broker.http.operations import JSON
from ibrik_broker.metadata.database import Database
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.registrations.catalogue import Catalogue
from ibrik_broker.registrations.observing import observed_resources
from ibrik_broker.telemetry.metrics import METADATA_READY, Reading
from ibrik_broker.topics.registry import Registry
from ibrik_log.volume import Volume


@dataclass(frozen=True, slots=True)
class Observer:
    """Everything that is looked at."""

    name: str
    """Of this broker."""
    volume: Volume
    database: Database
    engine: Engine
    registry: Registry
    catalogue: Catalogue
    credentials: Credentials

    async def observe(self, _request: web.Request) -> web.Response:
        """What this broker is, and every resource that it serves."""
        broker = await self.broker()
        # So that CredentialsValid fits to the fingerprints, and not to the last look at them.
        await self.catalogue.channels.check_all_credentials()
        # Encoded one by one: three thousand resources are many times as large as their text.
        encoded = [
            msgspec.json.encode(resource.document())
            async for resource in observed_resources(self.registry, self.catalogue)
        ]
        head = b'{"broker":' + msgspec.json.encode(broker.document()) + b',"resources":['
        return web.Response(body=head + b",".join(encoded) + b"]}", content_type=JSON)

    async def readings(self) -> list[Reading]:
        """What has to be asked for at a scrape."""
        return [Reading(METADATA_READY, (), int(await self.database.check()))]

    async def broker(self) -> ObservedBroker:
        writer = self.engine.writer
        return ObservedBroker(
            id=self.volume.volume_id,
            name=self.name,
            cluster_id=self.volume.cluster_id,
            version=__version__,
            metadata_store=self.database.store,
            is_metadata_ready=await self.database.check(),
            is_storage_low=writer.is_storage_low,
            free_bytes=writer.free_bytes,
            capacity_bytes=writer.capacity_bytes,
            min_free_bytes=writer.min_free_bytes,
            topics=self._topics(),
            credentials=await asyncio.to_thread(self.credentials.fingerprints),
        )

    def _topics(self) -> list[str]:
        """Also those that are kept and not served, whose row may be lost."""
        known = {row.name for row in self.registry.rows()}
        kept = {found.name for found in self.registry.findings} & self.engine.absent.keys()
        return sorted(known | kept)
