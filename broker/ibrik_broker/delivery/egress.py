"""Where deliveries may go: the policy, judged for one address at a time.

Pure: addresses in, a reason out. Names are resolved and connections made in `guard`, which asks
here after DNS, for every connection. Registrations may ask `refuse_literal` beforehand.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from ibrik_broker.settings.egress import Address, EgressRule, Network, parse_rule
from ibrik_broker.settings.groups import EgressSettings

REASONS = {
    "broadcast": "a broadcast address",
    "documentation": "an address of documentation",
    "forbidden-port": "a port that no delivery goes to",
    "link-local": "a link-local address",
    "loopback": "this machine's loopback: allow it with egress.allow_loopback",
    "metadata": "the metadata service of a cloud",
    "multicast": "a multicast address",
    "own-listener": "a port of this broker itself",
    "private": "a private address: allow its network or name with egress.allow",
    "reserved": "a reserved address",
    "translated": "an address that is translated into another one (6to4, NAT64)",
    "unspecified": "no address of a machine",
}
"""Why an address is denied: the label of the metric, and the words for people."""

SERVICE_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+\.svc)?")
"""A Service beside the broker, or one of another namespace. Nothing public ends in `.svc`."""
FORBIDDEN_PORTS = frozenset({22, 25, 2379, 2380, 6443, 10250, 10255})
"""ssh, smtp, etcd, the Kubernetes API server, kubelet: nothing there reads messages."""


def _table(*rows: tuple[str, str]) -> list[tuple[Network, str]]:
    return [(ip_network(network), reason) for network, reason in rows]


# The first row that fits decides; what fits none is public.
_V4 = _table(
    ("169.254.169.254/32", "metadata"),
    ("100.100.100.200/32", "metadata"),
    ("168.63.129.16/32", "metadata"),
    ("0.0.0.0/8", "unspecified"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("10.0.0.0/8", "private"),
    ("172.16.0.0/12", "private"),
    ("192.168.0.0/16", "private"),
    ("100.64.0.0/10", "private"),
    ("192.0.2.0/24", "documentation"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("192.0.0.0/24", "reserved"),
    ("192.88.99.0/24", "translated"),
    ("198.18.0.0/15", "reserved"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
)
_V6 = _table(
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("fd00:ec2::254/128", "metadata"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "link-local"),
    ("fc00::/7", "private"),
    ("ff00::/8", "multicast"),
    ("64:ff9b::/96", "translated"),
    ("64:ff9b:1::/48", "translated"),
    ("2002::/16", "translated"),
    ("2001:db8::/32", "documentation"),
    ("3fff::/20", "documentation"),
    ("2001::/23", "reserved"),
)
_V6_PUBLIC = ip_network("2000::/3")
"""What of IPv6 is given out to the internet; all else is reserved."""
_V4_COMPATIBLE = ip_network("::/96")


@dataclass(frozen=True, slots=True)
class Egress:
    """The policy of one broker."""

    allow_loopback: bool = False
    allow_private: bool = False
    allow: tuple[EgressRule, ...] = ()
    own_listeners: frozenset[tuple[str, int]] = frozenset()
    """Address and port of each of this broker's listeners."""

    @property
    def own_ports(self) -> frozenset[int]:
        return frozenset(port for _, port in self.own_listeners)

    def refuse(
        self, host: str, address: str, port: int, is_service: bool, *, is_own_machine: bool = False
    ) -> str | None:
        """Why a connection to `address`, which `host` led to, is denied: a key of REASONS.

        `is_own_machine` says that the address belongs to this machine, whatever it looks like.
        """
        if port in FORBIDDEN_PORTS:
            return "forbidden-port"
        found = unmapped(address)
        reason = _reason(found)
        is_here = is_own_machine or reason in ("loopback", "unspecified")
        if (str(found), port) in self.own_listeners or (is_here and port in self.own_ports):
            return "own-listener"
        if reason == "loopback" and self.allow_loopback:
            return None
        if reason == "private" and self._may_be_private(host, found, port, is_service):
            return None
        return reason

    def refuse_literal(self, host: str, port: int, is_service: bool = False) -> str | None:
        """A sentence when `host` is a denied address as it stands; names are judged later."""
        try:
            ip_address(host.strip("[]").partition("%")[0])
        except ValueError:
            return None
        reason = self.refuse(host, host.strip("[]"), port, is_service)
        return None if reason is None else sentence(host, reason)

    def _may_be_private(self, host: str, address: Address, port: int, is_service: bool) -> bool:
        name = host.lower().rstrip(".")
        if self.allow_private or (is_service and SERVICE_HOST.fullmatch(name)):
            return True
        return any(rule.covers(name, address, port) for rule in self.allow)


def egress_policy(
    settings: EgressSettings, *, is_on_loopback_only: bool, own_listeners: Iterable[tuple[str, int]]
) -> Egress:
    """The policy that the settings ask for; what they leave open depends on the listeners."""

    def chosen(wish: bool | None) -> bool:
        return is_on_loopback_only if wish is None else wish

    return Egress(
        allow_loopback=chosen(settings.allow_loopback),
        allow_private=chosen(settings.allow_private),
        allow=tuple(map(parse_rule, settings.allow)),
        own_listeners=frozenset(own_listeners),
    )


def sentence(host: str, reason: str) -> str:
    """The reason for people. Without the address: all addresses of a name then say the same."""
    return f"{host} leads to {REASONS[reason]}"


def unmapped(address: str) -> Address:
    """The address that is meant: IPv4 in the clothes of IPv6 becomes IPv4; a zone is left out."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv4Address):
        return found
    if found.ipv4_mapped is not None:
        return found.ipv4_mapped
    if found in _V4_COMPATIBLE and int(found) > 1:
        return IPv4Address(int(found))
    return found


def _reason(address: Address) -> str | None:
    for network, reason in _V4 if isinstance(address, IPv4Address) else _V6:
        if address in network:
            return reason
    if isinstance(address, IPv6Address) and address not in _V6_PUBLIC:
        return "reserved"
    return None
