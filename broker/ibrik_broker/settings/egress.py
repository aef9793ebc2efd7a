"""Rules that open private addresses for deliveries, as a person writes them in `egress.allow`.

`10.0.0.0/8`, `*.shop.svc`, `payments.internal:443`, `[fd00::/8]:443`. Pure: text to rule, and
whether a rule covers a destination. What is denied whatever the rules say is decided in
`ibrik_broker.delivery.egress`.
"""

import ipaddress
import re
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_BRACKETED = re.compile(r"\[(?P<place>[^\]]+)\](:(?P<port>[0-9]{1,5}))?")
_NAMED = re.compile(r"(?P<place>[^\s:\[\]]+)(:(?P<port>[0-9]{1,5}))?")
_HOST = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class EgressRule:
    """Addresses of a network, or those that a name leads to; of one port, or of all."""

    network: Network | None
    host: str
    """A name, or with a dot in front all names that end so; empty when there is a network."""
    port: int | None

    def covers(self, host: str, address: Address, port: int) -> bool:
        if self.port is not None and self.port != port:
            return False
        if self.network is not None:
            return address in self.network
        return host.endswith(self.host) if self.host.startswith(".") else host == self.host


def parse_rule(text: str) -> EgressRule:
    """One rule; raises ValueError with a sentence."""
    written = text.strip().lower()
    pattern = _NAMED if written.count(":") <= 1 else _BRACKETED
    found = pattern.fullmatch(written)
    if found is None:  # an IPv6 network without a port needs no brackets
        return EgressRule(_network(written, text), "", None)
    place, port = found["place"], None if found["port"] is None else int(found["port"])
    if port is not None and not 0 < port <= 65_535:
        raise ValueError(f"{text!r}: a port is a number from 1 to 65535")
    if "/" in place or pattern is _BRACKETED or place.replace(".", "").isdigit():
        return EgressRule(_network(place, text), "", port)
    if _HOST.fullmatch(place) is None:
        raise ValueError(f"{text!r} is no rule: {_FORMS}")
    return EgressRule(None, place.removeprefix("*"), port)


_FORMS = (
    "write a network (10.0.0.0/8), a name (payments.internal) or *.suffix, then :port if wished"
)


def _network(place: str, text: str) -> Network:
    try:
        return ipaddress.ip_network(place)
    except ValueError as error:
        reason = str(error) if "host bits" in str(error) else _FORMS
        raise ValueError(f"{text!r} is no rule: {reason}") from error
