"""The guard at work: every connection is judged after DNS, whatever the address is dressed as."""

import pytest
from yarl import URL

from ibrik_broker.delivery.egress import Egress
from ibrik_broker.delivery.guard import Guard, _is_of_this_machine
from ibrik_broker.settings.egress import parse_rule
from tests.broker.delivery.senders.rig import (
    ON_LOOPBACK,
    Names,
    endpoint,
    http_sender,
    parcel,
)

STRICT = Egress()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254", "localhost",
     "[::ffff:7f00:1]", "10.0.0.1", "[fd00:ec2::254]"],
)  # fmt: skip
async def test_literals_and_names_are_denied_before_a_connection(host: str) -> None:
    async with (
        endpoint() as target,
        http_sender(f"http://{host}:{target.port}/", policy=STRICT) as sender,
    ):
        answer = await sender.send(parcel())
    assert (answer.error, answer.status) == ("egress-denied", None)
    assert target.connection_count == 0


@pytest.mark.parametrize("host", ["2130706433", "127.1", "0x7f.0.0.1", "017700000001"])
async def test_odd_spellings_of_an_address_lead_nowhere(host: str) -> None:
    async with (
        endpoint() as target,
        http_sender(f"http://{host}:{target.port}/", policy=STRICT) as sender,
    ):
        answer = await sender.send(parcel())
    assert answer.error in ("egress-denied", "dns-failed", "connect-failed")
    assert target.connection_count == 0


async def test_a_name_that_changes_its_address_is_judged_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ibrik_broker.delivery.senders.http_client.DNS_CACHE_S", 0)
    names = Names(rebinding=["127.0.0.1", "169.254.169.254"])
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    async with endpoint(answer) as target:
        url = f"http://rebinding:{target.port}/"
        async with http_sender(url, names=names) as sender:
            assert (await sender.send(parcel())).error is None
            answers = [await sender.send(parcel()) for _ in range(2)]
    assert [answer.error for answer in answers] == ["egress-denied"] * 2
    assert target.connection_count == 1


async def test_a_rule_for_a_name_opens_that_name_only() -> None:
    policy = Egress(allow_loopback=True, allow=(parse_rule("erp.internal"),))
    names = Names(**{"erp.internal": ["10.255.255.1"], "other.internal": ["10.255.255.1"]})
    guard = Guard(policy)
    info = await names.lookup("erp.internal", 80)
    guard.aim(("erp.internal", False))
    guard.open_socket(info[0]).close()
    guard.aim(("other.internal", False))
    with pytest.raises(PermissionError):
        guard.open_socket(info[0])
    assert guard.denials == {"private": 1}


async def test_a_service_and_the_same_name_over_http_share_no_connection() -> None:
    async with endpoint() as target:
        service = {"name": "erp", "port": target.port}
        names = Names(erp=["127.0.0.1"])
        async with http_sender("", names=names, service=service) as sender:
            assert (await sender.send(parcel())).error is None
            client, where = sender._client, URL("http://erp")
            ways = [client.route("POST", where, is_service=each) for each in (True, False)]
            assert ways[0].connector is not ways[1].connector


async def test_our_own_doors_are_denied_under_any_address_of_this_machine() -> None:
    async with endpoint() as target:
        policy = Egress(
            allow_loopback=True,
            allow_private=True,
            own_listeners=frozenset({("0.0.0.0", target.port)}),
        )
        for host in ("127.0.0.1", "localhost", "127.0.0.9"):
            url = f"http://{host}:{target.port}/"
            async with http_sender(url, policy=policy) as sender:
                assert (await sender.send(parcel())).error == "egress-denied"
    assert target.connection_count == 0


def test_an_address_of_this_machine_is_known_by_binding_to_it() -> None:
    assert _is_of_this_machine("127.0.0.1")
    assert not _is_of_this_machine("93.184.216.34")


async def test_denials_are_counted_by_reason() -> None:
    async with http_sender("http://169.254.169.254/", policy=ON_LOOPBACK) as sender:
        answer = await sender.send(parcel())
        assert sender._client.guard.denials == {"metadata": 1}
    assert answer.detail == "169.254.169.254 leads to the metadata service of a cloud"
