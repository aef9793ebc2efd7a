"""The way to the other brokers of the pool: one client, and the few calls that brokers make.

Brokers know each other by a token made from a key in the database, so nobody else is believed what
one broker says to another: from which address a request came, that it was passed on already.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import structlog
from yarl import URL

from ibrik_api.errors import CODES, Refusal
from ibrik_broker.metadata.brokers import BrokerRow
from ibrik_broker.pool.placement import FRESH_MS
from ibrik_broker.pool.pool import Pool

logger = structlog.get_logger("pool")

POOL_TOKEN = "Pool-Token"  # noqa: S105 - the name of a header
POOL_CLIENT = "Pool-Client"
"""The address that a request came from before it was passed on."""
CONNECT_SECONDS = 2.0
NOTICE_SECONDS = 5.0
CALL_SECONDS = 30.0
KEEPALIVE_SECONDS = 5.0
"""Shorter than any door keeps an idle connection, so that none is closed while it is taken."""


class Peers:
    """Needs a running event loop."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def headers(self, client: str | None = None) -> dict[str, str]:
        return {POOL_TOKEN: self.pool.token, POOL_CLIENT: client or ""}

    async def notify(self) -> None:
        """Something changed: those that are alive have looked when this returns, if they can."""
        alive = self.alive()
        if alive:
            await asyncio.gather(*map(self._notify, alive))

    def alive(self) -> list[BrokerRow]:
        """The others that said lately that they are there."""
        now_ms = self.pool.clock_ms()
        return [broker for broker in self.pool.others() if now_ms - broker.updated_ms < FRESH_MS]

    async def _notify(self, broker: BrokerRow) -> None:
        try:
            await self.call(broker, "POST", "/admin/v1/pool:refresh", seconds=NOTICE_SECONDS)
        except Refusal as refusal:  # it finds out by itself
            logger.info("broker not told", broker=broker.name, reason=refusal.detail)

    async def call(
        self,
        broker: BrokerRow,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        port: int | None = None,
        seconds: float = CALL_SECONDS,
    ) -> bytes:
        """The answer of a broker, at its admin door. Raises Refusal, also what it refused."""
        origin = URL.build(scheme="http", host=broker.host, port=port or broker.admin_port)
        url = URL(f"{origin}{path}", encoded=True)
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        try:
            async with self.session.request(
                method,
                url,
                data=body,
                headers=self.headers() | dict(headers or {}),
                timeout=timeout,
                allow_redirects=False,
            ) as answer:
                content = await answer.read()
                if answer.status < 300:
                    return content
                problem = await answer.json(content_type=None)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise unreachable(broker, error) from error
        raise refusal_of(problem, broker)

    async def close(self) -> None:
        await self.session.close()


class NotConnected(Refusal):
    """The other broker heard nothing of the request, so another one can be asked."""


def unreachable(broker: BrokerRow, error: BaseException) -> Refusal:
    why = str(error) or type(error).__name__
    unheard = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
    kind = NotConnected if isinstance(error, unheard) else Refusal
    return kind(
        "owner-unavailable",
        f"Broker {broker.name} serves this, and does not answer at {broker.host} ({why}). Send the "
        "request again: it is served as soon as that broker is back.",
        owner=broker.name,
    )


def refusal_of(problem: Any, broker: BrokerRow) -> Refusal:
    """What another broker refused, as if it were refused here."""
    code = problem.get("code") if isinstance(problem, dict) else None
    if not isinstance(code, str) or code not in CODES:
        return unreachable(broker, ValueError("its answer makes no sense"))
    return Refusal(code, f"Broker {broker.name}: {problem.get('detail')}")
