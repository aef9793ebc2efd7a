"""A proxy that has checked who somebody is, and says so in a header. Pure.

Only connections from the configured addresses are believed; from any other address the header is as
if it were not there. What other proxies say about addresses (X-Forwarded-For) is never looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

from ibrik_broker.settings import AuthSettings

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Gatekeeper:
    header: str
    """Header that holds the name of the publisher."""
    networks: Sequence[Network]
    """Where the gatekeeper's connections come from."""

    def trusts(self, address: str | None) -> bool:
        """Whether a connection from this address is the gatekeeper's."""
        try:
            peer = ip_address(address or "")
        except ValueError:
            return False
        if isinstance(peer, IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped  # a socket that listens on both families
        return any(peer in network for network in self.networks)


def gatekeeper_of(settings: AuthSettings) -> Gatekeeper | None:
    """The gatekeeper that the settings name; None: publishers are known by their tokens only."""
    if settings.gatekeeper_header is None:
        return None
    return Gatekeeper(settings.gatekeeper_header, settings.gatekeeper_addresses)
