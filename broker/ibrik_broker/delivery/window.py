"""How many messages may be on their way to a destination: learnt from how it answers. Pure.

Additive increase, multiplicative decrease, as TCP does it (RFC 5681): each success adds one, each
sign of overload halves. So a new destination is approached carefully, and one that hangs soon holds
one connection instead of all that it may.
"""

from ibrik_broker.delivery.answers import Answer

FIRST = 4.0
LEAST = 1.0
OVERLOAD_ERRORS = frozenset({"timeout", "connect-failed"})
OVERLOAD_STATUSES = frozenset({429, 503, 504})


class Window:
    __slots__ = ("_size",)

    def __init__(self) -> None:
        self._size = FIRST

    def size(self, limit: int) -> int:
        """At most `limit`, at least one."""
        return max(1, min(limit, int(self._size)))

    def learn(self, answer: Answer, limit: int) -> None:
        if answer.error is None:
            self._size = min(self._size + 1, float(max(limit, FIRST)))
        elif answer.error in OVERLOAD_ERRORS or answer.status in OVERLOAD_STATUSES:
            self._size = max(LEAST, self._size / 2)

    def reset(self) -> None:
        self._size = FIRST
