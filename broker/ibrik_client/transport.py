"""One HTTP request and its answer; aiohttp stays behind this door.

Foreign exceptions are translated here, once: nobody answered → Unavailable, a problem document →
the error that `errors.error_of` chooses. Every request has a timeout. No redirect is followed and
no proxy is taken from the environment.
"""

import email.utils
import io
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from ibrik_client.errors import IbrikError, ServerFailed, Unavailable, error_of

CONNECT_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 30.0
# The broker sends a comment every 15 s on a quiet stream; two missed ones mean a dead connection.
STREAM_SILENCE_S = 45.0
MAX_PROBLEM_BYTES = 64 * 1024
WHOLE_BODY_BYTES = 512 * 1024
"""Larger bodies are written in pieces, so that others on the event loop have their turn."""
GATEWAY_STATUSES = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError as error:
            raise ServerFailed(f"the answer is not JSON: {error}") from error


class Transport:
    """Requests to one base address over a few kept connections."""

    def __init__(self, url: str, *, token: str | None = None, timeout_s: float) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            connector=aiohttp.TCPConnector(limit=0),
            auto_decompress=True,
            raise_for_status=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        """The whole answer of a status below 400; every other one is raised."""
        seconds = self._timeout_s if timeout_s is None else timeout_s
        async with self.open(
            method, path, params=params, headers=headers, body=body, timeout_s=seconds
        ) as response:
            content = await response.read()
            return Answer(response.status, response.headers, content)

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
        silence_s: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer whose body is read by the caller; errors raised inside are translated too."""
        assert self._session is not None, "the client is used inside its `async with` block"
        timeout = aiohttp.ClientTimeout(
            total=timeout_s, sock_connect=CONNECT_TIMEOUT_S, sock_read=silence_s
        )
        try:
            async with self._session.request(
                method,
                self.url + path,
                params=params,
                headers=headers,
                data=io.BytesIO(body) if body and len(body) > WHOLE_BODY_BYTES else body,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                if response.status >= 300:
                    raise await _refusal(response)
                yield response
        except TimeoutError as error:
            raise Unavailable(f"{self.url} did not answer in time") from error
        except aiohttp.InvalidURL as error:
            raise IbrikError(f"{self.url} is not an address: expected http://host:port") from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(f"cannot reach {self.url}: {reason}") from error
        except aiohttp.ClientError as error:
            raise ServerFailed(f"{self.url} sent no HTTP that is understood: {error}") from error


async def _refusal(response: aiohttp.ClientResponse) -> IbrikError:
    content = await response.content.read(MAX_PROBLEM_BYTES)
    problem: dict[str, Any] = {}
    try:
        decoded = msgspec.json.decode(content)
        problem = decoded if isinstance(decoded, dict) else {}
    except msgspec.DecodeError:
        pass  # A gateway between us and the broker answers with a page of its own.
    problem.setdefault("status", response.status)
    if "code" not in problem:
        problem["detail"] = f"{response.url} answered {response.status} {response.reason}"
        problem["retryable"] = response.status in GATEWAY_STATUSES
    wait_s = parse_retry_after(response.headers.get("Retry-After"), time.time())
    return error_of(problem, retry_after_s=wait_s)


def parse_retry_after(value: str | None, now_s: float) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date; None when it is neither."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now_s)
    except ValueError:
        return None
