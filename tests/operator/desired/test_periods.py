"""The pause between two runs is read off the schedule."""

import pytest

from ibrik_operator.desired.periods import period_ms

HOUR, DAY = 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("schedule", "wished_ms"),
    [
        ("0 * * * *", HOUR),
        ("*/5 * * * *", HOUR // 12),
        ("* * * * *", 60_000),
        ("0,30 * * * *", HOUR // 2),
        ("5/20 * * * *", HOUR // 3),
        ("10-12 * * * *", 60_000),
        ("0 */6 * * *", 6 * HOUR),
        ("30 3 * * MON", DAY),
        ("50 23,0 * * *", HOUR),
        ("0 0,1 * * SUN", HOUR),
        ("0 8 1 JAN *", DAY),
        ("30-10 * * * *", DAY),
        ("0 0 30 2 *", DAY),
        ("@hourly", HOUR),
        ("@weekly", DAY),
        ("@every 30m", HOUR // 2),
        ("@every 48h", DAY),
    ],
)
def test_the_shortest_pause_counts_and_a_day_at_most(schedule: str, wished_ms: int) -> None:
    assert period_ms(schedule) == wished_ms
