"""TLS with certificates made here: only the right name, in time, from the trusted authority."""

import asyncio
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from ibrik_broker.delivery.answers import Answer
from tests.broker.delivery.senders.rig import (
    Names,
    endpoint,
    http_sender,
    parcel,
    tcp_sender,
)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(params=["http", "tcp"])
def deliver(
    request: pytest.FixtureRequest, authority: trustme.CA, tmp_path: Path
) -> Callable[..., Answer]:
    """Send one message to a server with a certificate for `name`, over either protocol."""

    async def over_http(server: ssl.SSLContext, tls: dict[str, object]) -> Answer:
        async with endpoint(tls=server) as target:
            url = f"https://hooks.test:{target.port}/"
            names = Names(**{"hooks.test": ["127.0.0.1"]})
            async with http_sender(url, names=names, folder=tmp_path, tls=tls) as sender:
                return await sender.send(parcel())

    async def over_tcp(server: ssl.SSLContext, tls: dict[str, object]) -> Answer:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(b"OK 42\r\n")

        listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server)
        port = listening.sockets[0].getsockname()[1]
        names = Names(**{"hooks.test": ["127.0.0.1"]})
        destination = {"host": "hooks.test", "names": names, "folder": tmp_path}
        try:
            async with tcp_sender(port, **destination, tls=True, **trust(tls)) as sender:
                return await sender.send(parcel())
        finally:
            listening.close()

    def run(name: str, *, days: int = 1, trusted: bool = True) -> Answer:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        now = datetime.fromtimestamp(time.time(), UTC)
        made = authority.issue_cert(
            name, not_before=now - timedelta(days=7), not_after=now + timedelta(days=days)
        )
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        made.configure_cert(server)
        tls = {"caSecretRef": {"file": "ca.pem"}} if trusted else {}
        over = over_http if request.param == "http" else over_tcp
        return asyncio.run(over(server, tls))

    return run


def trust(tls: dict[str, object]) -> dict[str, object]:
    return {"tls_trust": tls} if tls else {}


def test_the_right_name_of_a_trusted_authority_passes(deliver: Callable[..., Answer]) -> None:
    assert deliver("hooks.test").error is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "other.test"}, "mismatch"),
        ({"name": "hooks.test", "days": -1}, "expired"),
        ({"name": "hooks.test", "trusted": False}, "unable to get local issuer"),
    ],
    ids=["name", "expired", "authority"],
)
def test_a_wrong_certificate_fails(
    deliver: Callable[..., Answer], wrong: dict[str, object], said: str
) -> None:
    answer = deliver(**wrong)
    assert answer.error == "tls-failed"
    assert said in answer.detail


async def test_a_server_without_tls_fails() -> None:
    async with endpoint() as target:
        url = f"https://127.0.0.1:{target.port}/"
        async with http_sender(url, timeout="1s") as sender:
            assert (await sender.send(parcel())).error in ("tls-failed", "timeout")


async def test_certificates_that_are_none_are_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("secret-looking text")
    tls = {"caSecretRef": {"file": "ca.pem"}}
    async with http_sender("https://127.0.0.1:1/", folder=tmp_path, tls=tls) as sender:
        answer = await sender.send(parcel())
    assert answer.error == "credential-missing"
    assert "secret-looking" not in answer.detail
