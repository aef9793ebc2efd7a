"""What archive jobs ask of a broker, on the admin port, with a token of the scope `archive`."""

from aiohttp import web

from ibrik_api.archiving import (
    ArchiveReport,
    RolledPartition,
    RollRequest,
    RollResult,
    TopicArchive,
)
from ibrik_broker.http import parameters as p
from ibrik_broker.http.crud import json_answer, read_json
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Handler, Operation
from ibrik_broker.http.tokens import Scope, TokenFile, needs_token
from ibrik_broker.partitions.topic import Topic
from ibrik_broker.topics.archiving import archive_view

TAG = "archive"
PATH = "/admin/v1/topics/{topic}/archive"
EXAMPLE = {
    "topicId": "7d17946a-9a18-4514-abf6-3d9d8f745ba5",
    "table": {"id": "0b0c4c9e-2c53-44c7-9a3e-a2ff3a1f3d0a", "url": "/lake/orders", "version": 12},
    "partitions": [{"partition": 0, "archivedUpTo": 84_211}],
}
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

    async def read(self, request: web.Request) -> web.Response:
        """How far the archive is."""
        return _answer(self._door.topic(request))

    async def report(self, request: web.Request) -> web.Response:
        """Take over what a job has proved; the answer is what holds now."""
        topic = self._door.topic(request)
        report = ArchiveReport.parse(await read_json(self._door, request))
        await self._door.engine.note_archived(topic, report)
        return _answer(topic)


def _answer(topic: Topic) -> web.Response:
    # With its nulls: a job need not know which fields may be missing.
    return json_answer(archive_view(topic).model_dump(mode="json"))


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
        Operation(
            "readArchive",
            "GET",
            PATH,
            TAG,
            "How far the archive of a topic is, partition by partition.",
            guarded(handlers.read),
            (Answer(200, "What is archived, sealed and there.", (Body(JSON, TopicArchive),)),),
            FIND_CODES,
            parameters=(p.TOPIC,),
            needs_token=True,
        ),
        Operation(
            "reportArchive",
            "PUT",
            PATH,
            TAG,
            "What a job has proved to be in the table. Retention may delete that.",
            guarded(handlers.report),
            (Answer(200, "What holds now.", (Body(JSON, TopicArchive),)),),
            (
                *FIND_CODES,
                "invalid-json",
                "invalid-resource",
                "other-topic-id",
                "unknown-partition",
                "beyond-sealed",
                "storage-full",
                "storage-failed",
            ),
            "No offset moves back. A table that is behind in a partition does not take the place of"
            " the one that is known.",
            parameters=(p.TOPIC,),
            bodies=(Body(JSON, ArchiveReport, example=EXAMPLE),),
            needs_token=True,
        ),
    ]
