"""Request bodies: bounded in bytes, in time, and in how far they may grow when decompressed.

The broker's own limits need aiohttp's `auto_decompress` off (`server.py`). A `Claim` holds a
request's share of the memory that all bodies in flight may take, until its answer is decided.
"""

import asyncio
import zlib

import zstandard
from aiohttp import StreamReader, hdrs, web

from ibrik_api.errors import Refusal
from ibrik_broker.settings import LimitSettings

SMALL_BODY_BYTES = 64 * 1024
"""Below this a body is decompressed on the event loop; a thread costs more than the work."""
GROWTH_ALLOWANCE_BYTES = 64 * 1024
"""What any body may grow to whatever the ratio, so that tiny repetitive bodies pass."""
MAX_WINDOW_BYTES = 8 * 2**20
"""Largest zstd window: what RFC 8878 recommends every decoder to support, and no more."""


class BodyGate:
    """Counts the bytes of bodies in flight over the whole broker."""

    __slots__ = ("in_flight_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.in_flight_bytes = 0

    def claim(self) -> "Claim":
        return Claim(self)


class Claim:
    """One request's share, until `release`."""

    __slots__ = ("_gate", "held_bytes")

    def __init__(self, gate: BodyGate) -> None:
        self._gate = gate
        self.held_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Add to the share. Raises Refusal `buffer-full` when the broker holds too much already."""
        gate = self._gate
        if gate.in_flight_bytes + size_bytes > gate.limit_bytes:
            raise Refusal(
                "buffer-full",
                f"Bodies of {gate.in_flight_bytes} bytes are in flight and the broker takes"
                f" {gate.limit_bytes}. Send this request again in a moment.",
            )
        gate.in_flight_bytes += size_bytes
        self.held_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        self._gate.in_flight_bytes -= size_bytes
        self.held_bytes -= size_bytes

    def release(self) -> None:
        """Give the whole share back."""
        self._gate.in_flight_bytes -= self.held_bytes
        self.held_bytes = 0


def read_at_once(request: web.BaseRequest, claim: Claim) -> bytes | None:
    """A plain body that came whole with its head, as small ones do: no await, no deadline.

    Such a body is bounded by the connection's read buffer. None: read it with a `BodyReader`.
    """
    content = request.content
    if not content.is_eof() or hdrs.CONTENT_ENCODING in request.headers:
        return None
    body = content.read_nowait()
    claim.take(len(body))
    return body


class BodyReader:
    """Reads whole bodies within the limits of the broker."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits

    def check_announced(self, request: web.BaseRequest, limit_bytes: int) -> str:
        """What the head alone can refuse, before a byte of the body; returns the encoding."""
        encoding = request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower()
        if encoding not in ("", "identity", "gzip", "zstd"):
            raise Refusal(
                "unsupported-encoding",
                f"Content-Encoding {encoding!r} is not understood. Send gzip, zstd or none.",
            )
        if (request.content_length or 0) > limit_bytes:
            raise too_large(limit_bytes)
        return "" if encoding == "identity" else encoding

    async def read(self, request: web.BaseRequest, limit_bytes: int, claim: Claim) -> bytes:
        """Read the whole body, decompressed, of at most `limit_bytes`."""
        encoding = self.check_announced(request, limit_bytes)
        body = await self._receive(request, limit_bytes, claim)
        if not encoding:
            return body
        return await self._decompress(encoding, body, limit_bytes, claim)

    async def _receive(self, request: web.BaseRequest, limit_bytes: int, claim: Claim) -> bytes:
        content = request.content
        announced = request.content_length
        claim.take(announced or 0)
        body_parts = bytearray()
        deadline = Deadline(self._limits)
        while chunk := await deadline.next_chunk(content):
            body_parts += chunk
            if len(body_parts) > limit_bytes:
                raise too_large(limit_bytes)
            if announced is None:
                claim.take(len(chunk))
        return bytes(body_parts)

    async def _decompress(
        self, encoding: str, body: bytes, limit_bytes: int, claim: Claim
    ) -> bytes:
        ratio = self._limits.compression_ratio
        cap = min(limit_bytes, max(GROWTH_ALLOWANCE_BYTES, int(len(body) * ratio)))
        inflate = _gunzip if encoding == "gzip" else _unzstd
        if len(body) < SMALL_BODY_BYTES:
            claim.take(cap)
            plain = inflate(body, cap)
        else:
            claim.take(cap)
            plain = await asyncio.to_thread(inflate, body, cap)
        if plain is None:
            if cap == limit_bytes:
                raise too_large(limit_bytes)
            raise Refusal(
                "compression-bomb",
                f"The body grows to over {ratio:g} times its size. Send it uncompressed.",
            )
        claim.give_back(cap - len(plain))
        return plain


class Deadline:
    """A body has `slow_timeout_ms`, and longer only while it comes at a decent rate."""

    __slots__ = ("_grace_s", "_limits", "_received_bytes", "_started_s")

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._grace_s = limits.slow_timeout_ms / 1000
        self._received_bytes = 0
        self._started_s = asyncio.get_running_loop().time()

    async def next_chunk(self, content: StreamReader) -> bytes:
        """The next bytes; empty at the end. Raises Refusal `request-timeout`."""
        earned_s = self._received_bytes / self._limits.slow_bytes_per_second
        try:
            async with asyncio.timeout_at(self._started_s + max(self._grace_s, earned_s)):
                chunk = await content.readany()
        except TimeoutError as error:
            raise Refusal(
                "request-timeout",
                f"The body was not complete in time: {self._received_bytes} bytes came in"
                f" {max(self._grace_s, earned_s):g} s. Nothing of it was published.",
            ) from error
        except web.RequestPayloadError as error:
            raise Refusal(
                "body-not-decodable",
                "The body ends too early, or its chunks are broken. Nothing of it was published.",
            ) from error
        except RuntimeError as error:  # how aiohttp says that nobody is there any more
            raise ConnectionResetError("the client went away") from error
        self._received_bytes += len(chunk)
        return chunk


def too_large(limit_bytes: int) -> Refusal:
    return Refusal(
        "request-too-large",
        f"The body is larger than {limit_bytes} bytes. Send it in several requests.",
        limit_bytes=limit_bytes,
    )


def _gunzip(body: bytes, cap: int) -> bytes | None:
    """The plain bytes, or None when they are more than `cap`."""
    plain = b""
    while body:
        inflater = zlib.decompressobj(wbits=31)
        try:
            plain += inflater.decompress(body, cap + 1 - len(plain))
        except zlib.error as error:
            raise _broken("gzip") from error
        if len(plain) > cap:
            return None
        if not inflater.eof:
            raise _broken("gzip")
        body = inflater.unused_data  # gzip members may follow each other (RFC 1952 §2.2)
    return plain


def _unzstd(body: bytes, cap: int) -> bytes | None:
    """The plain bytes of one zstd frame, or None when they are more than `cap`."""
    if not body:
        return body
    inflater = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    try:
        announced_bytes = zstandard.frame_content_size(body)
        if announced_bytes > cap:
            return None
        plain = inflater.decompress(body, max_output_size=cap, allow_extra_data=False)
        if announced_bytes < 0:
            # Such a frame may be followed by anything unnoticed; now that its size is known, look.
            rest = inflater.decompressobj()
            rest.decompress(body)
            if rest.unused_data:
                raise _broken("zstd")
    except zstandard.ZstdError as error:
        # The library says the same of a torn frame and of one that did not fit: look again.
        if _overflows(inflater, body, cap):
            return None
        raise _broken("zstd") from error
    return plain


def _overflows(inflater: zstandard.ZstdDecompressor, body: bytes, cap: int) -> bool:
    try:
        with inflater.stream_reader(body) as reader:
            return len(reader.read(cap + 1)) > cap
    except zstandard.ZstdError:
        return False


def _broken(encoding: str) -> Refusal:
    return Refusal(
        "body-not-decodable",
        f"The body is no complete {encoding} stream. Nothing of it was published.",
    )
