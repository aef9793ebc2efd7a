"""A local endpoint that prints what arrives: for trying channels out, never for production.

`judge` and the lines are pure; `Endpoint` is the aiohttp handler around them. Bodies are bounded,
nothing is kept but counts.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from aiohttp import web

from ibrik_api.signatures import verify
from ibrik_api.timestamps import format_timestamp
from ibrik_cli.output import clock_text
from ibrik_cli.records import readable

BODY_WITHIN_S = 30.0
SHOWN_BYTES = 200
FAILURE_STATUS = 503
OK, WRONG, MISSING = "ok", "wrong", "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How the endpoint behaves."""

    secrets: Sequence[bytes] = ()
    """Signatures are checked when there are any; what is signed wrong is answered with 401."""
    status: int = 200
    fail_every: int = 0
    """Each n-th request is answered with 503; 0: none."""
    delay_s: float = 0.0
    max_body_bytes: int


@dataclass(slots=True)
class Counts:
    """What arrived so far."""

    requests: int = 0
    accepted: int = 0
    wrong: int = 0
    too_large: int = 0

    def text(self) -> str:
        """`3 requests: 2 accepted, 1 refused, 1 signature wrong or missing`."""
        parts = [f"{self.accepted:,} accepted", f"{self.requests - self.accepted:,} refused"]
        if self.wrong:
            parts.append(f"{self.wrong:,} with a signature that is wrong or missing")
        if self.too_large:
            parts.append(f"{self.too_large:,} too large")
        return f"{self.requests:,} request{'' if self.requests == 1 else 's'}: {', '.join(parts)}"


def judge(
    secrets: Sequence[bytes], headers: Mapping[str, str], body: bytes, now_s: float
) -> str | None:
    """`ok`, `wrong` or `missing`; None when nobody asked for signatures to be checked."""
    if not secrets:
        return None
    signature = headers.get("webhook-signature", "")
    if not signature:
        return MISSING
    is_right = verify(
        secrets,
        message_id=headers.get("webhook-id", ""),
        timestamp=headers.get("webhook-timestamp", ""),
        signature=signature,
        body=body,
        now_s=now_s,
    )
    return OK if is_right else WRONG


def arrival_document(
    headers: Mapping[str, str], target: str, body: bytes | None, now_ms: int
) -> dict[str, Any]:
    """One request as a JSON object; members that it does not say are left out."""
    key = headers.get("ibrik-key")
    said: dict[str, Any] = {
        "time": format_timestamp(now_ms),
        "request": readable(target.encode(errors="replace")),
        "message": _message_place(headers),
        "subscription": _text(headers, "ibrik-subscription"),
        "channel": _text(headers, "ibrik-channel"),
        "replay": _text(headers, "ibrik-replay"),
        "attempt": _text(headers, "ibrik-attempt"),
        "id": _text(headers, "webhook-id"),
        "type": _text(headers, "ce-type"),
        "key": None if key is None else readable(unquote_to_bytes(key)),
        "size_bytes": None if body is None else len(body),
        "body": None if body is None else readable(_whole_characters(body[:SHOWN_BYTES])),
    }
    return {name: value for name, value in said.items() if value is not None}


def arrival_line(document: Mapping[str, Any]) -> str:
    """`10:00:00.123  200  signature ok  orders/0/17  billing  attempt 1  order.paid  key=7  …`."""
    labels = {"attempt": "attempt {}", "key": "key={}", "signature": "signature {}"}
    names = ("signature", "message", "subscription", "replay", "attempt", "type", "key")
    cells = [clock_text(document["time"]), str(document["status"])]
    if "message" not in document:
        cells.append(document["request"])
    cells += [labels.get(n, "{}").format(document[n]) for n in names if n in document]
    more = "…" if document.get("size_bytes", 0) > SHOWN_BYTES else ""
    return "  ".join([*cells, document.get("body", "(too large)") + more])


@dataclass(slots=True)
class Endpoint:
    """Answers each request as its manners say, and tells what arrived."""

    manners: Manners
    tell: Callable[[dict[str, Any]], None]
    counts: Counts = field(default_factory=Counts)

    async def handle(self, request: web.Request) -> web.Response:
        self.counts.requests += 1
        number = self.counts.requests
        body = await self._read(request)
        now_s = time.time()
        secrets = self.manners.secrets
        signature = None if body is None else judge(secrets, request.headers, body, now_s)
        status = self._status(number, body, signature)
        if self.manners.delay_s:
            await asyncio.sleep(self.manners.delay_s)
        target = f"{request.method} {request.rel_url.raw_path}"
        document = arrival_document(request.headers, target, body, int(now_s * 1000))
        if signature is not None:
            document["signature"] = signature
        self.tell(document | {"status": status})
        return web.Response(status=status)

    def _status(self, number: int, body: bytes | None, signature: str | None) -> int:
        if body is None:
            self.counts.too_large += 1
            return 413
        if signature in (WRONG, MISSING):
            self.counts.wrong += 1
            return 401
        is_meant_to_fail = self.manners.fail_every and number % self.manners.fail_every == 0
        status = FAILURE_STATUS if is_meant_to_fail else self.manners.status
        self.counts.accepted += 200 <= status < 300
        return status

    async def _read(self, request: web.Request) -> bytes | None:
        """The body as it was sent; None when it is too large, or does not come in time."""
        limit = self.manners.max_body_bytes
        if (request.content_length or 0) > limit:
            return None
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_WITHIN_S):
                async for chunk in request.content.iter_any():
                    body += chunk
                    if len(body) > limit:
                        return None
        except TimeoutError:
            return None
        return bytes(body)


async def serve(endpoint: Endpoint, port: int, on_ready: Callable[[str], None]) -> None:
    """Listen on loopback until it is cancelled; `on_ready` hears the address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", endpoint.handle)
    # What is signed is what was sent: nothing is unpacked on the way.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, auto_decompress=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        on_ready(f"http://127.0.0.1:{runner.addresses[0][1]}")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _message_place(headers: Mapping[str, str]) -> str | None:
    names = ("ibrik-topic", "ibrik-partition", "ibrik-offset")
    parts = [headers[name] for name in names if name in headers]
    return readable("/".join(parts).encode(errors="replace")) if len(parts) == 3 else None


def _text(headers: Mapping[str, str], name: str) -> str | None:
    value = headers.get(name)
    return None if value is None else readable(value.encode(errors="replace"))


def _whole_characters(content: bytes) -> bytes:
    """Without the first half of a character that a cut left at the end."""
    for cut in range(min(4, len(content))):
        try:
            content[: len(content) - cut].decode()
        except UnicodeDecodeError:
            continue
        return content[: len(content) - cut]
    return content
