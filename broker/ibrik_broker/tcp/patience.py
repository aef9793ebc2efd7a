"""How long a client may take: to say something, to finish a command, to read its replies.

Arithmetic on times that are passed in. Nothing here closes anything.
"""

from typing import Literal

from ibrik_broker.settings import LimitSettings

Verdict = Literal["idle", "slow", "unread"]


class Patience:
    def __init__(self, limits: LimitSettings, now: float) -> None:
        self._idle_seconds = limits.idle_timeout_ms / 1_000
        self._slow_seconds = limits.slow_timeout_ms / 1_000
        self._slow_bytes_per_second = limits.slow_bytes_per_second
        self._last_traffic = now
        self._command_began: float | None = None
        self._command_bytes = 0
        self._write_paused: float | None = None

    def on_bytes(self, now: float, count: int, completed: bool, is_between: bool) -> None:
        """Bytes came; `completed` when a command became whole, `is_between` when none is begun."""
        self._last_traffic = now
        if is_between:
            self._command_began = None
        elif completed or self._command_began is None:
            self._command_began, self._command_bytes = now, 0
        else:
            self._command_bytes += count

    def on_reply(self, now: float) -> None:
        self._last_traffic = now

    def on_write_paused(self, now: float) -> None:
        self._write_paused = now

    def on_write_resumed(self, now: float) -> None:
        self._last_traffic, self._write_paused = now, None

    def on_reading_resumed(self, now: float) -> None:
        """While we did not read, the client could not finish its command."""
        if self._command_began is not None:
            self._command_began, self._command_bytes = now, 0

    def judge(self, now: float, *, is_busy: bool, is_reading: bool) -> Verdict | None:
        """What the client has overdone; None when nothing.

        `is_busy` while it waits for us: then only reading too slowly counts.
        """
        if self._write_paused is not None and now - self._write_paused >= self._idle_seconds:
            return "unread"
        if is_busy:
            return None
        if is_reading and self._command_began is not None:
            seconds = now - self._command_began
            if (
                seconds >= self._slow_seconds
                and self._command_bytes < seconds * self._slow_bytes_per_second
            ):
                return "slow"
        return "idle" if now - self._last_traffic >= self._idle_seconds else None
