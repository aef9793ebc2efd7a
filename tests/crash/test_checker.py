"""The checker notices what it is there for: a run that says zero must be able to say one."""

import random

import pytest

from tests.crash.checker import Checker, Findings
from tests.crash.ledger import Ledger, LogName, parse_value, value_of

Record = tuple[int, tuple[int, int] | None]
ORDERS = LogName("orders", 0)


def acknowledged_log(producers: int = 3, messages: int = 60) -> tuple[Ledger, list[Record]]:
    """A ledger and the log that fits it: producers interleaved, everything acknowledged."""
    ledger = Ledger()
    log_number = ledger.log_number(ORDERS)
    names = [ledger.new_producer() for _ in range(producers)]
    rng = random.Random(7)
    records: list[Record] = []
    for offset in range(messages):
        producer = rng.choice(names)
        sequence = ledger.send(producer)
        ledger.acknowledge(producer, sequence, log_number, offset)
        records.append((offset, (producer, sequence)))
    return ledger, records


def check(ledger: Ledger, records: list[Record]) -> Findings:
    checker = Checker(ledger)
    checker.scan(0, records)
    checker.judge_all()
    return checker.findings


def test_a_whole_log_has_no_findings() -> None:
    assert check(*acknowledged_log()).are_none


def test_a_log_may_be_scanned_in_parts() -> None:
    ledger, records = acknowledged_log()
    checker = Checker(ledger)
    checker.scan(0, records[:20])
    assert checker.next_offset(0) == 20
    checker.scan(0, records[20:])
    checker.judge(ledger.take_recent())
    assert checker.findings.are_none
    assert ledger.take_recent() == []


def test_a_missing_tail_is_lost() -> None:
    ledger, records = acknowledged_log()
    findings = check(ledger, records[:-2])
    assert (findings.lost, findings.reordered, findings.duplicated, findings.misplaced) == (
        2,
        0,
        0,
        0,
    )


def test_a_message_missing_in_the_middle_is_lost_and_what_follows_is_misplaced() -> None:
    ledger, records = acknowledged_log()
    kept = [message for _, message in records[:10] + records[11:]]
    findings = check(ledger, list(enumerate(kept)))
    assert (findings.lost, findings.misplaced) == (1, len(kept) - 10)


def test_a_hole_in_the_offsets_is_misplaced() -> None:
    ledger, records = acknowledged_log()
    findings = check(ledger, records[:10] + records[11:])
    assert (findings.lost, findings.misplaced) == (1, 1)


def test_two_messages_of_one_producer_swapped_are_reordered() -> None:
    ledger = Ledger()
    ledger.log_number(ORDERS)
    producer = ledger.new_producer()
    for _ in range(3):
        ledger.send(producer)
    findings = check(ledger, [(0, (producer, 1)), (1, (producer, 0)), (2, (producer, 2))])
    assert (findings.lost, findings.reordered, findings.duplicated, findings.misplaced) == (
        0,
        1,
        0,
        0,
    )


def test_producers_may_interleave_in_any_way() -> None:
    ledger = Ledger()
    ledger.log_number(ORDERS)
    first, second = ledger.new_producer(), ledger.new_producer()
    for producer in (first, second):
        ledger.send(producer)
    assert check(ledger, [(0, (second, 0)), (1, (first, 0))]).are_none


def test_the_order_of_a_producer_is_kept_in_each_log_for_itself() -> None:
    ledger = Ledger()
    ledger.log_number(ORDERS)
    ledger.log_number(LogName("orders", 1))
    producer = ledger.new_producer()
    for _ in range(2):
        ledger.send(producer)
    checker = Checker(ledger)
    checker.scan(0, [(0, (producer, 1))])
    checker.scan(1, [(0, (producer, 0))])
    checker.judge_all()
    assert checker.findings.are_none


def test_a_message_stored_twice_is_duplicated() -> None:
    ledger, records = acknowledged_log()
    findings = check(ledger, [*records, (len(records), records[5][1])])
    assert (findings.lost, findings.reordered, findings.duplicated, findings.misplaced) == (
        0,
        0,
        1,
        0,
    )


def test_an_unacknowledged_message_may_be_there_once_or_not_at_all() -> None:
    ledger, records = acknowledged_log()
    sequence = ledger.send(0)
    assert check(ledger, records).are_none
    once = [*records, (len(records), (0, sequence))]
    assert check(ledger, once).are_none
    assert check(ledger, [*once, (len(once), (0, sequence))]).duplicated == 1


def test_a_message_in_another_log_than_acknowledged_is_misplaced() -> None:
    ledger, records = acknowledged_log()
    ledger.log_number(LogName("orders", 1))
    checker = Checker(ledger)
    checker.scan(0, records[:-1])
    checker.scan(1, [(0, records[-1][1])])
    checker.judge_all()
    assert (checker.findings.lost, checker.findings.misplaced) == (0, 1)


def test_a_message_that_nobody_sent_is_misplaced() -> None:
    ledger, records = acknowledged_log()
    assert check(ledger, [*records, (len(records), (0, 10_000))]).misplaced == 1
    assert check(ledger, [*records, (len(records), None)]).misplaced == 1


def test_a_retry_must_be_answered_with_the_first_place() -> None:
    ledger, records = acknowledged_log()
    producer, sequence = records[3][1] or (0, 0)
    ledger.acknowledge(producer, sequence, 0, 3)
    assert check(ledger, records).are_none
    ledger.acknowledge(producer, sequence, 0, 4)
    assert check(ledger, records).misplaced == 1
    assert ledger.acknowledged == len(records)


@pytest.mark.parametrize("sequence", [0, 7, 1008])
def test_a_value_names_its_message_and_shows_damage(sequence: int) -> None:
    value = value_of(12, sequence)
    assert parse_value(value) == (12, sequence)
    assert parse_value(value[:-1]) is None
    assert parse_value(b"1" + value) is None
    assert parse_value(b"x") is None
