"""Delivery over HTTP: one request a message, one answer, nothing followed and nothing repeated.

`HttpSender` speaks to one destination over the connections of `http_client`. Headers are made in
`headers`, addresses are judged in `guard`, what an answer means is said in `answers`.
"""

import asyncio
from collections.abc import Callable

from aiohttp import ClientResponse, hdrs
from yarl import URL

from ibrik_api.resources.destination import Destination
from ibrik_broker.delivery.answers import (
    MAX_BODY_BYTES,
    Answer,
    answered,
    failed,
    is_success,
    parse_retry_after,
)
from ibrik_broker.delivery.credentials import CredentialMissing, Credentials
from ibrik_broker.delivery.senders.dressing import Wardrobe
from ibrik_broker.delivery.senders.failures import failure
from ibrik_broker.delivery.senders.headers import push_headers
from ibrik_broker.delivery.senders.http_client import HttpClient
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.partitions.deadlines import Deadlines

LOCATION_BYTES_SHOWN = 200


class HttpSender:
    """One HTTP destination, or a Kubernetes Service."""

    def __init__(
        self,
        destination: Destination,
        *,
        client: HttpClient,
        credentials: Credentials,
        namespace: str,
        clock_ms: Callable[[], int],
        domain: str = "",
    ) -> None:
        """`domain` follows the name of a Service, when it is not beside the broker."""
        self._client = client
        self._clock_ms = clock_ms
        self._wardrobe = Wardrobe(destination, namespace, credentials, clock_ms)
        # A Service's name is one word; one with dots would be looked up anywhere.
        is_service = destination.service is not None and "." not in destination.service.name
        method, url = _address(destination, domain)
        self._host = url.raw_host or ""
        self._route = client.route(method, url, is_service=is_service)
        self._target = (self._host, is_service)
        self._timeout_s = destination.timeout_ms / 1_000
        self._deadlines = Deadlines(destination.timeout_ms)

    async def send(self, parcel: Parcel) -> Answer:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        self._client.in_flight += 1
        try:
            dressing = await self._wardrobe.dressing()
            tls, secrets = dressing.tls, dressing.signing_secrets
            headers = push_headers(dressing.headers, parcel, self._clock_ms(), secrets)
            self._client.guard.aim(self._target)
            exchange = self._client.exchange(self._route, headers, parcel.record.value, tls)
            response, body = await self._deadlines.wait(exchange)
        except CredentialMissing as missing:
            error, detail = "credential-missing", str(missing)
        except Exception as raised:  # noqa: BLE001 - a message never ends a flow
            error, detail = failure(raised, self._host, self._timeout_s)
        else:
            duration_ms = round((loop.time() - started_s) * 1_000)
            return self._answer(response, body, dressing.spoken, duration_ms)
        finally:
            self._client.in_flight -= 1
        return failed(error, detail, duration_ms=round((loop.time() - started_s) * 1_000))

    def _answer(
        self, response: ClientResponse, body: bytes, spoken: tuple[bytes, ...], duration_ms: int
    ) -> Answer:
        status, headers = response.status, response.headers
        body = _without(spoken, body)[:MAX_BODY_BYTES]
        if is_success(status):
            return Answer(status, None, "", None, duration_ms, body)
        if status in (401, 403):
            self._wardrobe.distrust()
        wait_ms = parse_retry_after(headers.get(hdrs.RETRY_AFTER), self._clock_ms())
        answer = answered(status, duration_ms=duration_ms, retry_after_ms=wait_ms, body=body)
        if answer.error == "redirect" and hdrs.LOCATION in headers:
            # Without its query, which may hold what is nobody's business.
            place = headers[hdrs.LOCATION].partition("?")[0].encode(errors="replace")
            shown = _without(spoken, place)[:LOCATION_BYTES_SHOWN].decode(errors="replace")
            return answer._replace(detail=f"{answer.detail}: it points to {shown!r}")
        return answer

    async def close(self) -> None:
        """Connections belong to the client, which other senders share."""


def _address(destination: Destination, domain: str) -> tuple[str, URL]:
    if destination.service is not None:
        service = destination.service
        url = URL(f"http://{service.name}{domain}:{service.port}{service.path}")
        return service.method.value, url
    assert destination.http is not None
    return destination.http.method.value, URL(destination.http.url).with_user(None).with_fragment(
        None
    )


def _without(spoken: tuple[bytes, ...], said: bytes) -> bytes:
    """What an endpoint said without the secrets that it was sent: some repeat their requests."""
    for secret in spoken:
        said = said.replace(secret, b"[secret]")
    return said
