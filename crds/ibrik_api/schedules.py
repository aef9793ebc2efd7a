"""When a job runs, as Kubernetes reads it: five fields of cron, or `@hourly`, or `@every 30m`.

The pattern is the whole check, so that the API server says the same. It is as narrow as what
CronJobs and ScheduledSparkApplications understand; seconds and `TZ=` are not among it.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, StringConstraints, WithJsonSchema

_MINUTE = "[0-5]?[0-9]"
_HOUR = "([01]?[0-9]|2[0-3])"
_DAY = "(0?[1-9]|[12][0-9]|3[01])"
_MONTH = "(0?[1-9]|1[0-2]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)"
_WEEKDAY = "([0-6]|SUN|MON|TUE|WED|THU|FRI|SAT)"
_NAMES = "@(yearly|annually|monthly|weekly|daily|midnight|hourly)"
_COUNT = "[1-9][0-9]{0,5}"
_EVERY = f"@every ({_COUNT}h({_COUNT}m)?({_COUNT}s)?|{_COUNT}m({_COUNT}s)?|{_COUNT}s)"


def _field(value: str) -> str:
    item = rf"(\*|{value}(-{value})?)(/[1-9][0-9]?)?"
    return f"{item}(,{item})*"


_FIELDS = " ".join(map(_field, (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)))
PATTERN = f"^({_NAMES}|{_EVERY}|{_FIELDS})$"
MAX_LENGTH = 100
TIME_ZONE_PATTERN = r"^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$"

_PARSER = re.compile(PATTERN)


def _check_schedule(text: str) -> str:
    if _PARSER.fullmatch(text) is None:
        raise ValueError(
            f"{text[:40]!r} is no schedule: write five fields of cron as in '0 * * * *', "
            "or '@hourly', '@daily', '@every 30m'"
        )
    return text


Schedule = Annotated[
    str,
    StringConstraints(max_length=MAX_LENGTH),
    AfterValidator(_check_schedule),
    WithJsonSchema({"type": "string", "minLength": 6, "maxLength": MAX_LENGTH, "pattern": PATTERN}),
]
TimeZone = Annotated[str, StringConstraints(max_length=64, pattern=TIME_ZONE_PATTERN)]
