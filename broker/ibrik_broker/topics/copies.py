"""A message for a topic of another broker: brought to its owner, with its id.

Copies and dead letters keep their bytes and headers whatever these are, so they do not go through
the door that producers use.
"""

import msgspec

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.messages import Message
from ibrik_broker.pool.peers import Peers
from ibrik_broker.topics.registry import Registry
from ibrik_log.record import Record

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(
    tuple[
        bytes | None,
        bytes | None,
        list[tuple[str, bytes | None]],
        bytes | None,
        bytes | None,
    ]
)


class Copies:
    def __init__(self, registry: Registry, peers: Peers) -> None:
        self._registry = registry
        self._peers = peers

    async def publish(self, topic: str, message: Message) -> None:
        """Durable when this returns; a repeat with the same id is answered with the first.

        Raises Refusal `owner-unavailable`, and what the owner refuses.
        """
        row = self._registry.find(topic)
        if row is None or row.owner is None:
            raise Refusal("unknown-topic", f"There is no topic '{topic}'.")
        broker = self._peers.pool.broker(row.owner)
        path = f"/admin/v1/topics/{topic}:copy"
        await self._peers.call(broker, "POST", path, body=encode_message(message))


def encode_message(message: Message) -> bytes:
    record = message.record
    return _encoder.encode((record.key, record.value, record.headers, message.id, message.source))


def decode_message(body: bytes) -> Message:
    """Raises Refusal `invalid-request`."""
    try:
        key, value, headers, message_id, source = _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise Refusal("invalid-request", f"This is no message of a broker: {error}.") from error
    return Message(Record(key, value, headers), None, message_id, source)
