"""Any bytes as a body, in every form and encoding: an answer, never a broken broker."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibrik_broker.http.operations import CLOUDEVENT, CLOUDEVENTS_BATCH, JSON, NDJSON
from ibrik_log.batch import encode
from ibrik_log.record import Record
from tests.broker.http.rig import RAW, Rig, running_doors

pytestmark = pytest.mark.slow

FRAME = bytes(encode([Record(b"key", b"value", [("name", b"text")])] * 3))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
MEMBERS = (
    "messages key value key_base64 value_base64 headers headers_base64 id partition"
    " specversion source type data data_base64 datacontenttype"
)
names = st.sampled_from(MEMBERS.split(" "))
envelopes = st.dictionaries(names, json_values)
documents = st.one_of(
    json_values.map(json.dumps),
    envelopes.map(json.dumps),
    st.lists(envelopes).map(json.dumps),
    st.lists(envelopes).map(lambda found: json.dumps({"messages": found})),
    st.lists(envelopes).map(lambda found: "\n".join(map(json.dumps, found))),
).map(str.encode)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Some bytes of `whole` are others, or some are missing."""
    body = bytearray(whole * draw(st.integers(1, 3)))
    for _ in range(draw(st.integers(0, 3))):
        body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return bytes(body[: draw(st.integers(0, len(body)))])


bodies = st.one_of(st.binary(max_size=500), documents, damaged(FRAME))
requests = st.tuples(
    st.sampled_from(["messages", "batch", "batch?partial=true", "batch?acks=none"]),
    st.sampled_from([JSON, NDJSON, CLOUDEVENT, CLOUDEVENTS_BATCH, RAW]),
    st.sampled_from(["", "gzip", "zstd"]),
    bodies,
)


async def test_any_body_has_an_answer(tmp_path: Path) -> None:
    async with running_doors(tmp_path) as rig:
        cases = draw_cases(600)
        for path, media_type, encoding, body in cases:
            await ask(rig, path, media_type, encoding, body)
        assert (await rig.publish(b"1")).status == 201
        reply = await rig.read("?max=10000")
        assert reply.status == 200
        for accept in (NDJSON, CLOUDEVENTS_BATCH, RAW):
            assert (await rig.read("?max=10000", accept)).status == 200
        assert rig.data.gate.in_flight_bytes == 0


def draw_cases(count: int) -> list[tuple[str, str, str, bytes]]:
    """Drawn before they are sent: hypothesis has no loop of its own."""
    cases: list[tuple[str, str, str, bytes]] = []

    @settings(
        max_examples=count, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(requests)
    def draw(case: tuple[str, str, str, bytes]) -> None:
        cases.append(case)

    draw()
    return cases


async def ask(rig: Rig, path: str, media_type: str, encoding: str, body: bytes) -> None:
    headers = {"Content-Type": media_type} | ({"Content-Encoding": encoding} if encoding else {})
    reply = await rig.call("POST", f"/v1/topics/orders/{path}", body, headers=headers)
    assert reply.status < 500, (path, media_type, encoding, body, reply)
    if reply.status >= 400:
        assert reply.headers["Content-Type"] == "application/problem+json"
