"""Topics for registered publishers only: TCP has no tokens yet, so it cannot publish there."""

from pathlib import Path

from ibrik_wire import Failed, Fetched, Published
from tests.broker.tcp.rig import running_door


async def test_a_topic_for_registered_publishers_is_read_over_tcp_and_not_written(
    tmp_path: Path,
) -> None:
    async with running_door(tmp_path) as rig:
        await rig.create("closed", publishers="registered")
        client = await rig.connect()
        client.send(b"PUB closed 1\r\naPUB closed/0 1\r\nbPUB orders 1\r\ncFETCH orders 0\r\n")
        first, second, *rest = await client.expect(4)
        assert rest == [Published(0), Fetched(0, b"c")], "the connection goes on"
        for reply in (first, second):
            assert isinstance(reply, Failed)
            assert reply.code == "publisher-not-registered"
            assert "TCP has no tokens yet" in reply.text
            assert "POST /v1/topics/closed/publishers" in reply.text
        assert rig.core.engine.topic("closed").partitions[0].latest == 0
