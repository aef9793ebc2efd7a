"""What a sink answers to an attempt. Pure: the same message and attempt get the same answer.

No script fails so often that the circuit opens for good: less than 70 % of the attempts.
"""

from typing import NamedTuple
from zlib import crc32


class Reply(NamedTuple):
    status: int
    delay_ms: int = 0


HANG = Reply(0)
"""No answer at all, until the other side gives up."""
OK = Reply(204)
FAILED = Reply(500)


def answer(script: str, message: str, attempt: int) -> Reply:
    """`message` is any text that names it."""
    number = crc32(message.encode())
    match script:
        case "ok":
            return OK
        case "one-in-seven":
            return FAILED if (number + attempt) % 7 == 0 else OK
        case "until-third":
            return FAILED if number % 6 == 0 and attempt < 3 else OK
        case "slow":
            return Reply(500 if (number + attempt) % 9 == 0 else 200, 5 + number % 30)
        case "fatal":
            return _fatal(number)
        case "hang":
            return HANG if number % 25 == 0 and attempt < 3 else OK
        case "gone":
            return Reply(410) if number % 40 == 0 and attempt < 3 else OK
    raise KeyError(script)


def _fatal(number: int) -> Reply:
    """Some messages never succeed, and some are refused for good."""
    if number % 11 == 0:
        return Reply(400)
    return FAILED if number % 8 == 0 else OK
