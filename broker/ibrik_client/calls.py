"""One call of what manages a broker: written as JSON, repeated where that helps, read as JSON.

Shared by all that is managed: topics (`admin`), registrations, recovery. Decides nothing.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from ibrik_api.names import API_VERSION
from ibrik_client.errors import InvalidRequest, ServerFailed
from ibrik_client.retry import NO_RETRY, RetryPolicy, with_retries
from ibrik_client.transport import Answer, Transport

Resource = dict[str, Any]
JSON_HEADERS = {"Content-Type": "application/json"}
NEXT_PAGE = ("nextPageToken", "next_page_token")
"""Lists of resources are camelCase, those of the data plane's own shapes are not."""


class Calls:
    """Calls over the data plane (port 8080), and over the admin door when it has an address."""

    def __init__(
        self, data: Transport, admin: Transport | None, policy: RetryPolicy, namespace: str
    ) -> None:
        self._data = data
        self._admin = admin
        self._policy = policy
        self._namespace = namespace

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | None] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        over: Transport | None = None,
        is_repeatable: bool = True,
    ) -> Answer:
        """`params` that are None are left out. What must not happen twice is not repeated."""
        encoded = None if body is None else msgspec.json.encode(body)
        sent = JSON_HEADERS | dict(headers or {}) if body is not None else headers
        given = {name: value for name, value in (params or {}).items() if value is not None}
        transport = over or self._data

        async def attempt() -> Answer:
            return await transport.request(method, path, params=given, headers=sent, body=encoded)

        return await with_retries(self._policy if is_repeatable else NO_RETRY, attempt)

    async def _document(self, method: str, path: str, **options: Any) -> Resource:
        """The JSON object that a call answers with."""
        return document_of(await self._call(method, path, **options))

    async def _pages(
        self, path: str, params: Mapping[str, str | None] | None = None
    ) -> AsyncIterator[Resource]:
        """Every item of a list, page after page."""
        asked = dict(params or {})
        while True:
            page = await self._document("GET", path, params=asked)
            for item in page.get("items", []):
                yield item
            token = next((page[name] for name in NEXT_PAGE if page.get(name)), None)
            if token is None:
                return
            asked["page_token"] = token

    def _admin_door(self) -> Transport:
        if self._admin is None:
            raise InvalidRequest("connect with admin_url=…: this goes through the admin door")
        return self._admin

    def _resource(self, kind: str, name: str, spec: Mapping[str, Any]) -> Resource:
        return {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": dict(spec),
        }


def document_of(answer: Answer) -> Resource:
    if not answer.body:
        return {}
    document = answer.json()
    if not isinstance(document, dict):
        raise ServerFailed("the broker's answer is no JSON object")
    return document


def path_of(*parts: str) -> str:
    """`/v1/…` with each part as one segment, whatever is in it."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def if_match(resource_version: str | None) -> dict[str, str]:
    return {"If-Match": f'"{resource_version}"'} if resource_version else {}


async def up_to(items: AsyncIterator[Resource], limit: int) -> Sequence[Resource]:
    """The first items, without asking for pages that nobody wants."""
    found: list[Resource] = []
    async for item in items:
        if len(found) == limit:
            break
        found.append(item)
    return found
