"""Names to addresses, in threads of its own.

The event loop's own threads are few (uvloop has four) and shared: a few names whose servers do not
answer would hold up every delivery that needs a new connection. `guard` judges what comes out.
"""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

THREADS = 32
"""Names that are looked up at once. A thread is made when it is needed."""

AddressInfo = tuple[int, int, int, str, Any]
"""As getaddrinfo gives it: family, type, protocol, canonical name, address."""


class Resolver(AbstractResolver):
    """The system's resolver, for the HTTP client and for plain connections."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="dns")

    async def lookup(
        self, host: str, port: int, family: int = socket.AF_UNSPEC
    ) -> Sequence[AddressInfo]:
        """The addresses of a name, or the one that is written there. Raises OSError."""
        look = partial(
            socket.getaddrinfo,
            host,
            port,
            family=family,
            type=socket.SOCK_STREAM,
            flags=socket.AI_ADDRCONFIG,
        )
        return await asyncio.get_running_loop().run_in_executor(self._threads, look)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=port,
                family=family_found,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for family_found, _, protocol, _, address in await self.lookup(host, port, family)
        ]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
