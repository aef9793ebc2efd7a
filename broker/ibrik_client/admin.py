"""What operators do: topics here, registrations and recovery in their modules, `apply` for all.

Most of it goes over the data plane (port 8080); `apply` and `adopt` go through the admin door
(8081), which the Kubernetes operator and `ibrik apply` call. Resources are plain documents, as in
YAML.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ibrik_client.archive import Archive
from ibrik_client.calls import Resource, if_match
from ibrik_client.leasing import Leasing
from ibrik_client.reading import topic_path
from ibrik_client.recovery import Recovery
from ibrik_client.registrations import Registrations


class Admin(Registrations, Recovery, Leasing, Archive):
    """All that is managed at a broker, and desired state when the admin door has an address."""

    async def topics(self) -> list[Resource]:
        """Every topic as a resource, by name."""
        return [topic async for topic in self._pages("/v1/topics")]

    async def topic(self, name: str) -> Resource:
        return await self._document("GET", topic_path(name))

    async def create_topic(self, name: str, spec: Mapping[str, Any] | None = None) -> Resource:
        """A new topic; refused when there is one of this name."""
        resource = self._resource("Topic", name, spec or {})
        return await self._document("POST", "/v1/topics", body=resource)

    async def replace_topic(
        self, name: str, spec: Mapping[str, Any], *, resource_version: str | None = None
    ) -> Resource:
        """The topic with this whole spec, made when missing.

        With `resource_version` it is refused when somebody else changed it since.
        """
        return await self._document(
            "PUT",
            topic_path(name),
            body=self._resource("Topic", name, spec),
            headers=if_match(resource_version),
        )

    async def delete_topic(self, name: str, *, policy: str | None = None) -> str:
        """Delete by `policy`, or the topic's own; `detached` (data kept) or `deleted`."""
        answer = await self._call("DELETE", topic_path(name), params={"policy": policy})
        return answer.headers.get("Ibrik-Topic-State", "deleted")

    async def purge_topic(self, name: str) -> Resource:
        """Delete every message of a topic; offsets go on."""
        return await self._document("POST", f"{topic_path(name)}:purge", body={})

    async def apply(self, resources: Sequence[Resource]) -> list[Resource]:
        """Make these resources so; one outcome each, in order. Absent ones stay untouched."""
        document = await self._document(
            "PUT",
            "/admin/v1/desired",
            body={"resources": list(resources)},
            over=self._admin_door(),
        )
        results: list[Resource] = document["results"]
        return results

    async def observed(self) -> Resource:
        """What the broker is and serves, for `ibrik_api.observed.Observed`."""
        return await self._document("GET", "/admin/v1/observed", over=self._admin_door())

    async def adopt(self, topic_id: str) -> Resource:
        """Serve a folder of the volume again whose row in the metadata database is lost."""
        path = f"/admin/v1/topics/{quote(topic_id, safe='')}:adopt"
        return await self._document("POST", path, over=self._admin_door())
