"""How long a schedule waits between two runs. Pure; a library reads cron."""

from datetime import datetime, timedelta
from itertools import pairwise, takewhile

from cronsim import CronSim, CronSimError

from ibrik_api.durations import DAY_MS, HOUR_MS, parse_duration

NAMED_MS = {"@hourly": HOUR_MS}
SOME_DAY = datetime(2026, 1, 1)  # noqa: DTZ001 - of no place: clocks that change do not count
DAY = timedelta(days=1)


def period_ms(schedule: str) -> int:
    """The shortest pause between two runs, at most a day; of a schedule that was checked."""
    if schedule.startswith("@every "):
        return min(parse_duration(schedule.removeprefix("@every ")), DAY_MS)
    if schedule.startswith("@"):
        return NAMED_MS.get(schedule, DAY_MS)
    try:
        runs = CronSim(schedule, SOME_DAY)
        first = next(runs)
        day = [first, *takewhile(lambda run: run <= first + DAY, runs)]
    except (CronSimError, StopIteration):  # Such as 30-10, which whoever runs it refuses.
        return DAY_MS
    pauses = (after - before for before, after in pairwise(day))
    return min(pauses, default=DAY) // timedelta(milliseconds=1)
