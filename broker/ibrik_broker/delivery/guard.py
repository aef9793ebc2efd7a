"""The one door through which deliveries open sockets: every address is judged before it is used.

The HTTP connector calls `open_socket` for each address that it is about to connect to, after DNS;
`connect` does the same for plain TCP. What is denied is decided in `egress`.
"""

import asyncio
import errno
import socket
from collections import Counter
from contextvars import ContextVar

from ibrik_broker.delivery.egress import Egress, sentence
from ibrik_broker.delivery.resolver import AddressInfo, Resolver

# A connector hands over addresses only. The name belongs to whoever is sending, and the tasks that
# a connector starts inherit it.
_destination: ContextVar[tuple[str, bool]] = ContextVar("destination", default=("", False))


class EgressDenied(PermissionError):
    """The policy denies the address; the text is the sentence for people.

    A PermissionError, since connecting tries the next address of a name after an OSError and may
    join several of them into one with the same number.
    """

    def __init__(self, text: str) -> None:
        super().__init__(errno.EACCES, text)


class Guard:
    """The policy, applied at each connection. `policy` is replaced when the listeners are known."""

    def __init__(self, policy: Egress, *, resolver: Resolver | None = None) -> None:
        self.policy = policy
        self.resolver = resolver or Resolver()
        self.denials: Counter[str] = Counter()
        """How often each reason was given; read by the metrics."""

    @staticmethod
    def aim(destination: tuple[str, bool]) -> None:
        """Connections that this task opens from here on are for this host (and service or not).

        Not taken back: whoever sends aims first, and most tasks send to one place for ever.
        """
        if _destination.get() is not destination:
            _destination.set(destination)

    def open_socket(self, info: AddressInfo) -> socket.socket:
        """A socket for an address that may be connected to. Raises EgressDenied."""
        family, kind, protocol, _, address = info
        self._check(address[0], address[1])
        return socket.socket(family, kind, protocol)

    async def connect(self, host: str, port: int) -> socket.socket:
        """A connected socket to the first address that answers. Raises OSError."""
        last: OSError | None = None
        for info in await self.resolver.lookup(host, port):
            try:
                return await self._connect_to(info)
            except OSError as error:
                last = last or error
        raise last or OSError(errno.EADDRNOTAVAIL, "the name has no address")

    async def _connect_to(self, info: AddressInfo) -> socket.socket:
        opened = self.open_socket(info)
        try:
            opened.setblocking(False)
            await asyncio.get_running_loop().sock_connect(opened, info[4])
        except BaseException:
            opened.close()
            raise
        return opened

    async def close(self) -> None:
        await self.resolver.close()

    def _check(self, address: str, port: int) -> None:
        host, is_service = _destination.get()
        reason = self.policy.refuse(
            host,
            address,
            port,
            is_service,
            is_own_machine=port in self.policy.own_ports and _is_of_this_machine(address),
        )
        if reason is not None:
            self.denials[reason] += 1
            raise EgressDenied(sentence(host or address, reason))


def _is_of_this_machine(address: str) -> bool:
    """Whether an interface of this machine has the address: only then can it be bound to."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
