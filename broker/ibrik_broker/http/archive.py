"""What archive jobs ask of a broker, on the admin port, with a token of the scope `archive`."""

from aiohttp import web

from ibrik_api.archiving import RolledPartition, RollRequest, RollResult
from ibrik_broker.http import parameters as p
from ibrik_broker.http.crud import json_answer, read_json
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Handler, Operation
from ibrik_broker.http.tokens import Scope, TokenFile, needs_token

TAG = "archive"
FIND_CODES = ("unauthorized", *p.TOPIC_CODES, "owner-elsewhere")


class ArchiveHandlers:
    def __init__(self, door: Door) -> None:
        self._door = door

    async def roll(self, request: web.Request) -> web.Response:
        """Seal the active segments that are old enough, also when the volume is nearly full."""
        topic = self._door.topic(request)
        document = await read_json(self._door, request) if request.can_read_body else {}
        wish = RollRequest.parse(document)
        ends = await self._door.engine.roll_topic(topic, wish.min_age_ms)
        partitions = [
            RolledPartition(partition=index, sealed_up_to=end) for index, end in enumerate(ends)
        ]
        return json_answer(RollResult(topic=topic.name, partitions=partitions).document())


def archive_operations(door: Door, tokens: TokenFile | None) -> list[Operation]:
    handlers = ArchiveHandlers(door)

    def guarded(handler: Handler) -> Handler:
        return needs_token(handler, tokens, Scope.ARCHIVE)

    return [
        Operation(
            "rollTopic",
            "POST",
            "/admin/v1/topics/{topic}:roll",
            TAG,
            "Seal the active segments of a topic, so that they can be archived.",
            guarded(handlers.roll),
            (Answer(200, "They are sealed, and the disk has it.", (Body(JSON, RollResult),)),),
            (*FIND_CODES, "invalid-json", "invalid-resource", "storage-full"),
            "Asked twice, nothing more is sealed than was published in between.",
            parameters=(p.TOPIC,),
            bodies=(Body(JSON, RollRequest, example={"minAge": "1h"}),),
            is_body_required=False,
            needs_token=True,
        ),
    ]
