"""How long a schedule waits between two runs. Pure."""

from ibrik_api.durations import DAY_MS, HOUR_MS, parse_duration

DAY_MINUTES = 24 * 60
NAMED_MS = {"@hourly": HOUR_MS}


def period_ms(schedule: str) -> int:
    """The shortest pause between two runs, at most a day; of a schedule that was checked."""
    if schedule.startswith("@every "):
        return min(parse_duration(schedule.removeprefix("@every ")), DAY_MS)
    if schedule.startswith("@"):
        return NAMED_MS.get(schedule, DAY_MS)
    minute, hour, *_days = schedule.split()
    ticks = sorted(60 * h + m for h in _values(hour, 24) for m in _values(minute, 60))
    if not ticks:  # Such as 30-10, which whoever runs it refuses.
        return DAY_MS
    pauses = [
        (after - before) % DAY_MINUTES or DAY_MINUTES
        for before, after in zip(ticks, [*ticks[1:], ticks[0]], strict=True)
    ]
    return min(pauses) * 60_000


def _values(field: str, end: int) -> set[int]:
    """Of a list of `*`, numbers and ranges, each maybe with a step."""
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        if first == "*":
            first, last = "0", str(end - 1)
        elif step and not last:
            last = str(end - 1)  # `5/15` begins at 5 and goes on to the end.
        found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return found
