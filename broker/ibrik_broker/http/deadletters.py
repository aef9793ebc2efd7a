"""Dead letters over HTTP: browse those of a subscription, deliver them again, delete them."""

from collections.abc import Callable

import msgspec
from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_api.recovering import (
    DeadLetterList,
    ExpiredLetter,
    LetterOrigin,
    PurgeRequest,
    PurgeResult,
    RedriveRequest,
    RedriveResult,
)
from ibrik_broker.delivery import redriving
from ibrik_broker.delivery.filters import compile_filter
from ibrik_broker.delivery.letters import Choice, Letter, LetterState, Origin
from ibrik_broker.delivery.redrive import START, Page, Redrive
from ibrik_broker.delivery.redriving import Place
from ibrik_broker.http import parameters as p
from ibrik_broker.http.crud import (
    BodyT,
    format_page_token,
    json_answer,
    parse_choice,
    parse_page,
    parse_page_token,
    read_json,
)
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Operation, Parameter
from ibrik_broker.http.views import message_view
from ibrik_broker.partitions.topic import Topic

PATH = "/v1/deadletters/{subscription}"
TAG = "recover"
FIND_CODES = (
    "invalid-name",
    "unknown-subscription",
    "subscription-detached",
    "topic-detached",
    "topic-unavailable",
    "metadata-unavailable",
)


class DeadLetterHandlers:
    def __init__(self, door: Door, redrive: Redrive, find: Callable[[str], str]) -> None:
        self._door = door
        self._redrive = redrive
        self._find = find

    async def browse(self, request: web.Request) -> web.Response:
        """A page of dead letters, in the order of their offsets."""
        page = parse_page(request)
        name, subscription_id = self._subscription(request)
        found = await self._redrive.browse(
            subscription_id,
            _choice(request),
            most=page.size,
            start=_start(request),
        )
        return web.Response(body=_list_view(name, found), content_type=JSON)

    async def redrive(self, request: web.Request) -> web.Response:
        """Deliver the messages again, to this subscription only."""
        _, subscription_id = self._subscription(request)
        body = await self._body(request, RedriveRequest)
        text = None if isinstance(body.filter, msgspec.UnsetType) else body.filter
        places = None
        if not isinstance(body.offsets, msgspec.UnsetType):
            places = [Place(place.partition, place.offset) for place in body.offsets]
        result = await self._redrive.redrive(
            subscription_id,
            Choice(filter=None if text is None else compile_filter(text)),
            places=places,
            rate=body.rate,
            dry_run=body.dry_run,
        )
        return json_answer(_redrive_view(result, dry_run=body.dry_run))

    async def purge(self, request: web.Request) -> web.Response:
        """Delete the dead letters."""
        _, subscription_id = self._subscription(request)
        body = await self._body(request, PurgeRequest)
        result = await self._redrive.purge(subscription_id, dry_run=body.dry_run)
        return json_answer(PurgeResult(result.topic, body.dry_run, result.purged))

    def _subscription(self, request: web.Request) -> tuple[str, str]:
        name = check_name(request.match_info["subscription"], what="subscription")
        return name, self._find(name)

    async def _body(self, request: web.Request, shape: type[BodyT]) -> BodyT:
        """One that is left out means what the defaults say."""
        document = await read_json(self._door, request) if request.can_read_body else {}
        try:
            return msgspec.convert(document, shape)
        except msgspec.ValidationError as error:
            raise Refusal("invalid-request", f"The body is not as documented: {error}.") from error


def _choice(request: web.Request) -> Choice:
    query = request.rel_url.query
    status, text = query.get("status"), query.get("filter")
    if status is not None and not (status.isascii() and status.isdigit() and len(status) == 3):
        raise Refusal("invalid-request", f"status={status[:40]!r}: write a status of HTTP, as 503.")
    return Choice(
        reason=query.get("reason"),
        status=None if status is None else int(status),
        state=parse_choice(request, "state", LetterState),
        filter=None if text is None else compile_filter(text),
    )


def _start(request: web.Request) -> Place:
    """The place that a page token stands for."""
    token = parse_page_token(request.rel_url.query.get("page_token", ""))
    if not token:
        return START
    partition, _, offset = token.partition("/")
    for text in (partition, offset):
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise Refusal("invalid-request", "page_token is none that this list answered with.")
    return Place(int(partition), int(offset))


def _list_view(name: str, page: Page) -> bytes:
    """`DeadLetterList` of `ibrik_api.recovering`."""
    topic = page.topic
    head = {"subscription": name, "topic": None if topic is None else topic.name}
    letters = []
    if topic is not None:
        letters = [_letter_view(topic, letter, state) for letter, state in page.letters]
    parts = [msgspec.json.encode(head)[:-1], b',"items":[', b",".join(letters), b"]"]
    if page.next is not None:
        token = format_page_token(f"{page.next.partition}/{page.next.offset}")
        parts.append(f',"next_page_token":"{token}"'.encode())
    return b"".join([*parts, b"}"])


def _letter_view(topic: Topic, letter: Letter, state: LetterState) -> bytes:
    """`DeadLetter` of `ibrik_api.recovering`."""
    more = msgspec.json.encode(
        {
            "reason": letter.reason,
            "status": letter.status,
            "error": letter.error,
            "attempts": letter.attempts,
            "first_attempt": letter.first_attempt,
            "last_attempt": letter.last_attempt,
            "origin": _origin_view(letter.origin),
            "state": state.value,
        }
    )
    return message_view(topic, letter.partition, letter.record, b"," + more[1:-1])


def _origin_view(origin: Origin) -> LetterOrigin:
    return LetterOrigin(origin.topic, origin.partition, origin.offset)


def _redrive_view(result: redriving.RedriveResult, *, dry_run: bool) -> RedriveResult:
    view = RedriveResult(
        topic=result.topic,
        dry_run=dry_run,
        matched=result.matched,
        redriven=result.redriven,
        waiting=result.waiting,
        expired=result.expired,
        expired_letters=[
            ExpiredLetter(place.partition, place.offset, _origin_view(origin))
            for place, origin in result.expired_first
        ],
        complete=result.is_complete,
    )
    if not result.is_complete:
        view.advice = "There are more: send the request again, or purge what is done with."
    elif result.expired:
        view.advice = (
            f"{result.expired} originals are not in their topic any more. Replay the dead letters"
            f" themselves to a channel: POST /v1/replays with the source topic {result.topic}."
        )
    return view


# --- the table of operations ----------------------------------------------------------------------


def dead_letter_operations(
    door: Door, redrive: Redrive, find: Callable[[str], str]
) -> list[Operation]:
    """`find` gives the id of a subscription by name; raises Refusal `unknown-subscription`."""
    handlers = DeadLetterHandlers(door, redrive, find)
    return [_browse(handlers), _redrive(handlers), _purge(handlers)]


def _browse(handlers: DeadLetterHandlers) -> Operation:
    states: list[str] = [state.value for state in LetterState]
    return Operation(
        "listDeadLetters",
        "GET",
        PATH,
        TAG,
        "Dead letters of a subscription, page by page.",
        handlers.browse,
        (Answer(200, "One page; empty when there is none.", (Body(JSON, DeadLetterList),)),),
        (*FIND_CODES, "invalid-filter"),
        "A page may hold fewer than were asked for, also none, and still have a next one: a request"
        " looks at so many only. `state` says whether the message was sent again.",
        parameters=(
            p.SUBSCRIPTION,
            *p.PAGE,
            Parameter("reason", "query", "Only those that ended so, such as timeout."),
            Parameter(
                "status",
                "query",
                "Only those that were answered with this status of HTTP.",
                {"type": "string", "pattern": "^[0-9]{3}$"},
            ),
            Parameter(
                "state", "query", "Only those in this state.", {"type": "string", "enum": states}
            ),
            Parameter(
                "filter",
                "query",
                "Only those that this CEL expression fits; headers hold dlq-reason and so on.",
                example='headers["dlq-reason"] == "timeout"',
            ),
        ),
    )


def _redrive(handlers: DeadLetterHandlers) -> Operation:
    return Operation(
        "redriveDeadLetters",
        "POST",
        f"{PATH}:redrive",
        TAG,
        "Deliver the messages of dead letters again, to this subscription only.",
        handlers.redrive,
        (Answer(200, "What became of them.", (Body(JSON, RedriveResult),)),),
        (
            *FIND_CODES,
            "unknown-topic",
            "unknown-partition",
            "invalid-json",
            "invalid-filter",
            "offset-below-start",
            "offset-above-end",
            "precondition-failed",
        ),
        "Each message has all its attempts again. Asked twice, a dead letter is redriven once; one"
        " that fails again is another dead letter.",
        parameters=(p.SUBSCRIPTION,),
        bodies=(
            Body(
                JSON,
                RedriveRequest,
                example={"filter": 'headers["dlq-reason"] == "timeout"', "rate": 50},
            ),
        ),
        is_body_required=False,
        is_registration=True,
    )


def _purge(handlers: DeadLetterHandlers) -> Operation:
    return Operation(
        "purgeDeadLetters",
        "POST",
        f"{PATH}:purge",
        TAG,
        "Delete the dead letters of a subscription. The messages themselves stay.",
        handlers.purge,
        (Answer(200, "How many there were.", (Body(JSON, PurgeResult),)),),
        (*FIND_CODES, "resource-conflict", "invalid-json", "storage-failed"),
        parameters=(p.SUBSCRIPTION,),
        bodies=(Body(JSON, PurgeRequest, example={"dry_run": True}),),
        is_body_required=False,
        is_registration=True,
    )
