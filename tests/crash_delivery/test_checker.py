"""The checker notices what it is there for: a run that says zero must be able to say one."""

from collections.abc import Iterable, Sequence

import pytest

from tests.crash_delivery.checker import (
    KINDS,
    Cursors,
    DeadLetter,
    Findings,
    Stored,
    by_place,
    check_parts,
    check_published,
)
from tests.crash_delivery.diary import Begun, Ended, Event, Place, Settled
from tests.crash_delivery.stage import Part

PLAIN = Part("plain", "orders", "ok", max_attempts=3)
KEYED = Part("keyed", "orders", "ok", ordering="key", max_attempts=3)
STRICT = Part("strict", "orders", "ok", ordering="strict", max_attempts=3)
ONCE = Part("once", "orders", "ok", is_once=True)
REDS = Part("reds", "orders", "ok", colour="red")
PULL = Part("pull", "orders", max_attempts=3)

# Four messages of one partition, of two keys in turn.
LOG = {
    Place(0, offset): Stored(f"0:{offset}", "ab"[offset % 2], "red" if offset < 2 else "blue")
    for offset in range(4)
}
LOGS = {"orders": LOG}
ALL = range(4)

Try = tuple[int, int, int | None]
"""Offset, attempt, status."""


def tried(part: Part, tries: Iterable[Try], at_ms: int = 1_000) -> list[Event]:
    """Attempts one after the other."""
    events: list[Event] = []
    for number, (offset, attempt, status) in enumerate(tries):
        place = Place(0, offset)
        events.append(Begun(number, at_ms, part.name, place, attempt, f"0:{offset}"))
        events.append(Ended(number, status))
    return events


def judged(
    part: Part, events: Sequence[Event], dead: dict[int, DeadLetter] | None = None
) -> Findings:
    findings = Findings()
    letters = {Place(0, offset): letter for offset, letter in (dead or {}).items()}
    check_parts([part], LOGS, {part.name: letters}, events, findings)
    return findings


def counts(findings: Findings) -> dict[str, int]:
    """What was found, without the zeros."""
    assert len(findings.sentences) == sum(getattr(findings, kind) for kind in KINDS)
    return {kind: getattr(findings, kind) for kind in KINDS if getattr(findings, kind)}


def buried(offset: int, at_ms: int = 500) -> DeadLetter:
    return DeadLetter(LOG[Place(0, offset)], at_ms)


DELIVERED = [(offset, 1, 200) for offset in ALL]


@pytest.mark.parametrize("part", [PLAIN, KEYED, STRICT, ONCE, PULL])
def test_messages_that_arrive_in_order_are_no_finding(part: Part) -> None:
    findings = judged(part, tried(part, DELIVERED))
    assert findings.are_none
    assert counts(findings) == {}


def test_all_deliveries_are_counted() -> None:
    events = tried(PLAIN, [*DELIVERED, (0, 2, 200), (1, 2, 500)])
    assert check_parts([PLAIN], LOGS, {PLAIN.name: {}}, events, Findings()) == 5


def test_a_message_that_never_arrived_is_below_once() -> None:
    assert counts(judged(PLAIN, tried(PLAIN, DELIVERED[:-1]))) == {"below_once": 1}


@pytest.mark.parametrize("status", [500, 410, None])
def test_a_message_that_was_tried_and_not_taken_is_below_once(status: int | None) -> None:
    events = tried(PLAIN, [(0, 1, status), *DELIVERED[1:]])
    assert counts(judged(PLAIN, events)) == {"below_once": 1}


def test_a_dead_letter_need_not_arrive() -> None:
    events = tried(PLAIN, DELIVERED[1:])
    assert judged(PLAIN, events, {0: buried(0)}).are_none


def test_a_message_whose_last_attempt_failed_is_a_lost_dead_letter() -> None:
    events = tried(PLAIN, [(0, 1, 500), (0, 2, 500), (0, 3, 500), *DELIVERED[1:]])
    assert counts(judged(PLAIN, events)) == {"dead_lost": 1}
    assert judged(PLAIN, events, {0: buried(0)}).are_none


def test_a_message_that_was_refused_for_good_is_a_lost_dead_letter() -> None:
    events = tried(PLAIN, [(0, 1, 400), *DELIVERED[1:]])
    assert counts(judged(PLAIN, events)) == {"dead_lost": 1}


def test_a_dead_letter_with_other_bytes_is_lost() -> None:
    events = tried(PLAIN, DELIVERED[1:])
    changed = DeadLetter(Stored("", "a", "red"), 500)
    assert counts(judged(PLAIN, events, {0: changed})) == {"dead_lost": 1}


def test_a_dead_letter_is_written_once() -> None:
    findings = Findings()
    letters = [(Place(0, 0), buried(0)), (Place(0, 1), buried(1))]
    assert by_place(PLAIN, letters, findings) == dict(letters)
    assert findings.are_none
    again = [*letters, (Place(0, 0), buried(0, at_ms=900))]
    assert by_place(PLAIN, again, findings) == dict(letters)
    assert counts(findings) == {"dead_twice": 1}


def test_fire_and_forget_may_lose_but_not_repeat() -> None:
    assert judged(ONCE, tried(ONCE, [(0, 1, 500), (1, 1, None)])).are_none
    assert counts(judged(ONCE, tried(ONCE, [(0, 1, 500), (0, 1, 200)]))) == {"above_once": 1}


def test_an_attempt_that_repeats_or_falls_is_miscounted() -> None:
    repeated = tried(PLAIN, [(0, 1, 500), (0, 1, 200), *DELIVERED[1:]])
    assert counts(judged(PLAIN, repeated)) == {"miscounted": 1}
    fallen = tried(PLAIN, [(0, 2, 500), (0, 1, 200), *DELIVERED[1:]])
    assert counts(judged(PLAIN, fallen)) == {"miscounted": 1}


def test_an_attempt_may_be_skipped() -> None:
    assert judged(PLAIN, tried(PLAIN, [(0, 1, None), (0, 3, 200), *DELIVERED[1:]])).are_none


def test_an_attempt_above_the_limit_is_one_too_many() -> None:
    events = tried(PLAIN, [(0, 4, 200), *DELIVERED[1:]])
    assert counts(judged(PLAIN, events)) == {"beyond_limit": 1}


def test_a_message_of_a_key_waits_for_the_one_before() -> None:
    early = tried(KEYED, [(0, 1, 500), (2, 1, 200), (1, 1, 200), (3, 1, 200), (0, 2, 200)])
    # Offset 2 overtook offset 0, and offset 0 came after it.
    assert counts(judged(KEYED, early)) == {"disordered": 2}


def test_an_attempt_that_was_not_answered_keeps_its_lane() -> None:
    events = tried(KEYED, [(0, 1, None), (2, 1, 200), (1, 1, 200), (3, 1, 200)])
    dead = {0: buried(0, at_ms=2_000)}
    assert counts(judged(KEYED, events, dead)) == {"disordered": 1}


def test_other_keys_and_no_order_need_not_wait() -> None:
    mixed = [(1, 1, 200), (0, 1, 500), (3, 1, 200), (0, 2, 200), (2, 1, 200)]
    assert judged(KEYED, tried(KEYED, mixed)).are_none
    assert judged(PLAIN, tried(PLAIN, reversed(DELIVERED))).are_none


def test_a_strict_partition_is_one_lane() -> None:
    events = tried(STRICT, [(1, 1, 200), (0, 1, 200), (2, 1, 200), (3, 1, 200)])
    assert counts(judged(STRICT, events)) == {"disordered": 2}


def test_the_message_that_was_on_its_way_may_come_again() -> None:
    events = tried(STRICT, [(0, 1, 200), (0, 2, 200), *DELIVERED[1:]])
    assert judged(STRICT, events).are_none


def test_a_message_may_not_come_again_after_a_later_one_of_its_lane() -> None:
    events = tried(STRICT, [(0, 1, 200), (1, 1, 500), (0, 2, 200), (1, 2, 200), *DELIVERED[2:]])
    assert counts(judged(STRICT, events)) == {"disordered": 1}


def test_a_lane_goes_on_when_the_dead_letter_is_written() -> None:
    events = tried(STRICT, [(0, 1, 500), *DELIVERED[1:]], at_ms=1_000)
    assert judged(STRICT, events, {0: buried(0, at_ms=1_000)}).are_none
    late = judged(STRICT, events, {0: buried(0, at_ms=1_001)})
    assert counts(late) == {"disordered": 3}


def test_what_the_filter_leaves_out_may_not_arrive() -> None:
    assert judged(REDS, tried(REDS, DELIVERED[:2])).are_none
    assert counts(judged(REDS, tried(REDS, DELIVERED[:3]))) == {"misfiltered": 1}
    assert counts(judged(REDS, tried(REDS, DELIVERED[:1]))) == {"below_once": 1}


def test_what_the_log_does_not_hold_may_not_arrive() -> None:
    events = tried(PLAIN, [*DELIVERED, (9, 1, 200)])
    assert counts(judged(PLAIN, events)) == {"misfiltered": 1}


def test_other_bytes_than_those_of_the_log_are_another_message() -> None:
    events = tried(PLAIN, DELIVERED)
    events[0] = Begun(0, 1_000, PLAIN.name, Place(0, 0), 1, "")
    assert counts(judged(PLAIN, events)) == {"misfiltered": 1}


def test_a_settled_lease_may_not_come_again() -> None:
    events = [*tried(PULL, DELIVERED), Settled(0)]
    assert judged(PULL, events).are_none
    again = [Begun(9, 2_000, PULL.name, Place(0, 0), 2, "0:0"), Ended(9, 200)]
    assert judged(PULL, [*tried(PULL, DELIVERED), *again]).are_none
    assert counts(judged(PULL, [*events, *again])) == {"leased_again": 1}


def test_what_was_acknowledged_is_in_the_log() -> None:
    findings = Findings()
    check_published({("orders", "0:0"): Place(0, 0)}, LOGS, findings)
    assert findings.are_none
    check_published({("orders", "0:0"): Place(0, 1)}, LOGS, findings)
    check_published({("orders", "0:9"): Place(0, 9)}, LOGS, findings)
    assert counts(findings) == {"below_once": 2}


def test_a_cursor_may_stand_still_but_not_go_back() -> None:
    findings = Findings()
    cursors = Cursors(findings)
    for partition, offset in ((0, 5), (0, 5), (1, 0), (0, 7)):
        cursors.take("plain", partition, offset, life=1)
    assert findings.are_none
    cursors.take("plain", 0, 6, life=2)
    cursors.take("plain", 0, 7, life=2)
    assert counts(findings) == {"backwards": 1}


def test_the_verdict_names_every_kind() -> None:
    findings = Findings()
    for kind in KINDS:
        findings.note(kind, "one")
    assert str(findings) == ", ".join(f"{words} 1" for words in KINDS.values())
    assert not findings.are_none
