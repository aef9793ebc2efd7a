"""Whom the broker believes that it has checked a publisher's name."""

from ipaddress import ip_network

import pytest

from ibrik_broker.auth.gatekeeper import Gatekeeper, gatekeeper_of
from ibrik_broker.settings import SettingsError, load_settings


@pytest.mark.parametrize(
    ("address", "is_trusted"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("10.2.0.1", False),
        ("fd00::1", True),
        ("fe80::1", False),
        ("localhost", False),
        ("", False),
        (None, False),
    ],
)
def test_only_the_configured_networks_are_trusted(address: str | None, is_trusted: bool) -> None:
    gatekeeper = Gatekeeper("X-User", [ip_network("10.1.0.0/16"), ip_network("fd00::/8")])
    assert gatekeeper.trusts(address) is is_trusted


def test_settings_name_the_header_and_the_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gatekeeper_of(load_settings().auth) is None
    monkeypatch.setenv("IBRIK_AUTH__GATEKEEPER_HEADER", "X-Forwarded-User")
    monkeypatch.setenv("IBRIK_AUTH__GATEKEEPER_ADDRESSES", "10.0.0.1, fd00::/8")
    gatekeeper = gatekeeper_of(load_settings().auth)
    assert gatekeeper is not None
    assert gatekeeper.header == "X-Forwarded-User"
    assert [str(network) for network in gatekeeper.networks] == ["10.0.0.1/32", "fd00::/8"]


@pytest.mark.parametrize(
    "flags",
    [
        {"auth.gatekeeper_header": "X-Forwarded-User"},
        {"auth.gatekeeper_addresses": ["10.0.0.1"]},
        {"auth.gatekeeper_header": "X Y", "auth.gatekeeper_addresses": ["10.0.0.1"]},
        {"auth.gatekeeper_header": "X-User", "auth.gatekeeper_addresses": ["10.0.0.300"]},
    ],
)
def test_half_a_gatekeeper_stops_the_start(flags: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=r"auth\.gatekeeper_"):
        load_settings(flags)
