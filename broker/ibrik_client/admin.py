"""What operators of topics do: create, list, change, delete, purge, apply.

`Topics` speaks to the data plane (port 8080), `Admin` adds the admin door (8081), which the
Kubernetes operator and `ibrik apply` call. Resources are plain documents, as in YAML.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from ibrik_api.names import API_VERSION
from ibrik_client.errors import InvalidRequest, ServerFailed
from ibrik_client.reading import topic_path
from ibrik_client.retry import RetryPolicy, with_retries
from ibrik_client.transport import Answer, Transport

Resource = dict[str, Any]
JSON_HEADERS = {"Content-Type": "application/json"}


class Admin:
    """Topics over the data plane, and desired state over the admin door when it has an address."""

    def __init__(
        self, data: Transport, admin: Transport | None, policy: RetryPolicy, namespace: str
    ) -> None:
        self._data = data
        self._admin = admin
        self._policy = policy
        self._namespace = namespace

    async def topics(self) -> list[Resource]:
        """Every topic as a resource, by name."""
        return [topic async for topic in self._pages()]

    async def _pages(self) -> AsyncIterator[Resource]:
        params: dict[str, str] = {}
        while True:
            page = (await self._call("GET", "/v1/topics", params=params)).json()
            for item in page.get("items", []):
                yield item
            token = page.get("nextPageToken")
            if not token:
                return
            params = {"page_token": token}

    async def topic(self, name: str) -> Resource:
        return _document(await self._call("GET", topic_path(name)))

    async def create_topic(self, name: str, spec: Mapping[str, Any] | None = None) -> Resource:
        """A new topic; refused when there is one of this name."""
        resource = self._resource(name, spec or {})
        return _document(await self._call("POST", "/v1/topics", body=resource))

    async def replace_topic(
        self, name: str, spec: Mapping[str, Any], *, resource_version: str | None = None
    ) -> Resource:
        """The topic with this whole spec, made when missing.

        With `resource_version` it is refused when somebody else changed it since.
        """
        headers = {"If-Match": f'"{resource_version}"'} if resource_version else {}
        resource = self._resource(name, spec)
        return _document(await self._call("PUT", topic_path(name), body=resource, headers=headers))

    async def delete_topic(self, name: str, *, policy: str | None = None) -> str:
        """Delete by `policy`, or the topic's own; `detached` (data kept) or `deleted`."""
        params = {"policy": policy} if policy else {}
        answer = await self._call("DELETE", topic_path(name), params=params)
        return answer.headers.get("Ibrik-Topic-State", "deleted")

    async def purge_topic(self, name: str) -> Resource:
        """Delete every message of a topic; offsets go on."""
        return _document(await self._call("POST", f"{topic_path(name)}:purge", body={}))

    async def apply(self, resources: Sequence[Resource]) -> list[Resource]:
        """Make these resources so; one outcome each, in order. Absent ones stay untouched."""
        body = {"resources": list(resources)}
        answer = await self._call("PUT", "/admin/v1/desired", body=body, over=self._admin_door())
        results: list[Resource] = _document(answer)["results"]
        return results

    async def adopt(self, topic_id: str) -> Resource:
        """Serve a folder of the volume again whose row in the metadata database is lost."""
        path = f"/admin/v1/topics/{quote(topic_id, safe='')}:adopt"
        return _document(await self._call("POST", path, over=self._admin_door()))

    def _admin_door(self) -> Transport:
        if self._admin is None:
            raise InvalidRequest("connect with admin_url=…: this goes through the admin door")
        return self._admin

    def _resource(self, name: str, spec: Mapping[str, Any]) -> Resource:
        return {
            "apiVersion": API_VERSION,
            "kind": "Topic",
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": dict(spec),
        }

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        over: Transport | None = None,
    ) -> Answer:
        encoded = None if body is None else msgspec.json.encode(body)
        sent = JSON_HEADERS | dict(headers or {}) if body is not None else headers
        transport = over or self._data

        async def attempt() -> Answer:
            return await transport.request(method, path, params=params, headers=sent, body=encoded)

        return await with_retries(self._policy, attempt)


def _document(answer: Answer) -> Resource:
    if not answer.body:
        return {}
    document = answer.json()
    if not isinstance(document, dict):
        raise ServerFailed("the broker's answer is no JSON object")
    return document
