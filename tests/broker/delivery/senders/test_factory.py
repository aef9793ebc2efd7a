"""Each kind of destination gets its sender, and all of them deliver."""

from pathlib import Path

from ibrik_api.resources.destination import Destination
from ibrik_broker.delivery.credentials import Credentials
from ibrik_broker.delivery.egress import Egress
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.senders.factory import Senders
from ibrik_broker.delivery.senders.http import HttpSender
from ibrik_broker.delivery.senders.tcp import TcpSender
from ibrik_broker.delivery.senders.topic import TopicSender
from tests.broker.delivery.senders.rig import NOW_MS, ON_LOOPBACK, Names, endpoint, parcel
from tests.broker.partitions.engine_support import read_all, running_engine


async def test_the_kind_of_the_destination_picks_the_sender(tmp_path: Path) -> None:
    async with running_engine(tmp_path) as rig, endpoint() as target:
        copies = await rig.topic("copies")
        senders = Senders(
            guard=Guard(ON_LOOPBACK),
            credentials=Credentials(tmp_path, {}),
            engine=rig.engine,
            clock_ms=lambda: NOW_MS,
        )
        destinations = {
            HttpSender: {"http": {"url": f"http://127.0.0.1:{target.port}/"}},
            TcpSender: {"tcp": {"host": "127.0.0.1", "port": 1}},
            TopicSender: {"topic": {"name": "copies"}},
        }
        for kind, fields in destinations.items():
            sender = senders.open(Destination.model_validate(fields), "shop")
            assert type(sender) is kind
            answer = await sender.send(parcel())
            assert (answer.error is None) is (kind is not TcpSender)
            await sender.close()
        assert (
            type(senders.open(Destination.model_validate({"service": {"name": "erp"}}), "shop"))
            is HttpSender
        )
        await senders.close()
        assert (len(target.requests), len(await read_all(copies))) == (1, 1)


async def test_a_service_is_looked_for_in_the_namespace_of_its_channel(tmp_path: Path) -> None:
    names = Names(**{"erp": ["127.0.0.1"], "erp.other.svc": ["127.0.0.1"]})
    async with running_engine(tmp_path) as rig, endpoint() as target:
        senders = Senders(
            guard=Guard(ON_LOOPBACK, resolver=names),
            credentials=Credentials(tmp_path, {}),
            engine=rig.engine,
            clock_ms=lambda: NOW_MS,
            namespace="shop",
        )
        fields = {"service": {"name": "erp", "port": target.port}}
        for namespace in ("shop", "other"):
            sender = senders.open(Destination.model_validate(fields), namespace)
            assert (await sender.send(parcel())).error is None
        await senders.close()
    hosts = [request.headers["host"] for request in target.requests]
    assert hosts == [f"erp:{target.port}", f"erp.other.svc:{target.port}"]


async def test_a_service_with_dots_is_no_way_into_another_namespace(tmp_path: Path) -> None:
    names = Names(**{"erp.other.svc": ["10.0.0.1"]})
    async with running_engine(tmp_path) as rig:
        senders = Senders(
            guard=Guard(Egress(), resolver=names),
            credentials=Credentials(tmp_path, {}),
            engine=rig.engine,
            clock_ms=lambda: NOW_MS,
            namespace="shop",
        )
        fields = {"service": {"name": "erp.other.svc", "port": 80}}
        sender = senders.open(Destination.model_validate(fields), "shop")
        assert (await sender.send(parcel())).error == "egress-denied"
        await senders.close()
