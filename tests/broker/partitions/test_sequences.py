"""Producer sequences: repeats are found, gaps and unknown producers are different refusals."""

import pytest

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.sequences import (
    REMEMBERED_PRODUCERS,
    SEQUENCE_LIMIT,
    ProducerSequences,
)
from ibrik_log.batch import Producer


def appended(*batches: tuple[int, int, int, int, int]) -> ProducerSequences:
    """Sequences after batches of (id, epoch, sequence, count, base offset)."""
    sequences = ProducerSequences()
    for producer_id, epoch, sequence, count, base_offset in batches:
        producer = Producer(producer_id, epoch, sequence)
        assert sequences.check(producer, count) is None
        sequences.record(producer, count, base_offset, 1_000)
    return sequences


def refusal_code(sequences: ProducerSequences, producer: Producer, count: int = 1) -> str:
    with pytest.raises(Refusal) as caught:
        sequences.check(producer, count)
    return caught.value.code


def test_the_next_sequence_is_accepted() -> None:
    assert appended((7, 0, 0, 3, 100)).check(Producer(7, 0, 3), 2) is None


def test_a_repeat_is_told_its_original_offset() -> None:
    sequences = appended((7, 0, 0, 3, 100), (7, 0, 3, 2, 200))
    known = sequences.check(Producer(7, 0, 0), 3)
    assert known is not None
    assert known.base_offset == 100


def test_the_last_five_batches_are_remembered_and_no_more() -> None:
    sequences = appended(*((7, 0, n, 1, n) for n in range(6)))
    known = sequences.check(Producer(7, 0, 1), 1)
    assert known is not None
    assert refusal_code(sequences, Producer(7, 0, 0)) == "out-of-order-sequence"


def test_a_gap_says_which_sequence_comes_next() -> None:
    with pytest.raises(Refusal) as caught:
        appended((7, 0, 0, 3, 100)).check(Producer(7, 0, 5), 1)
    assert caught.value.code == "out-of-order-sequence"
    assert caught.value.facts["expected_sequence"] == 3


def test_a_repeat_of_other_length_is_a_gap_not_a_repeat() -> None:
    assert refusal_code(appended((7, 0, 0, 3, 1)), Producer(7, 0, 0), 2) == "out-of-order-sequence"


def test_an_unknown_producer_is_not_a_gap() -> None:
    assert refusal_code(ProducerSequences(), Producer(7, 0, 5)) == "unknown-producer"


def test_an_unknown_producer_begins_at_zero() -> None:
    assert ProducerSequences().check(Producer(7, 0, 0), 1) is None


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    sequences = appended((7, 0, 0, 3, 100), (7, 1, 0, 1, 103))
    assert refusal_code(sequences, Producer(7, 0, 3)) == "producer-fenced"
    assert refusal_code(sequences, Producer(7, 2, 4)) == "out-of-order-sequence"


def test_sequences_start_again_at_zero_after_31_bits() -> None:
    sequences = ProducerSequences()
    sequences.record(Producer(7, 0, SEQUENCE_LIMIT - 1), 2, 10, 1_000)
    assert sequences.check(Producer(7, 0, 1), 1) is None
    assert sequences.check(Producer(7, 0, SEQUENCE_LIMIT - 1), 2) is not None


def test_the_producer_that_wrote_longest_ago_is_forgotten_first() -> None:
    sequences = appended(*((n, 0, 0, 1, n) for n in range(REMEMBERED_PRODUCERS + 1)))
    assert refusal_code(sequences, Producer(0, 0, 1)) == "unknown-producer"
    assert sequences.check(Producer(1, 0, 1), 1) is None


def test_rows_bring_everything_back() -> None:
    sequences = appended((7, 0, 0, 3, 100), (8, 2, 0, 1, 103), (7, 0, 3, 2, 104))
    restored = ProducerSequences()
    for row in sequences.rows():
        restored.restore(row)
    assert list(restored.rows()) == list(sequences.rows())
    assert restored.check(Producer(7, 0, 3), 2) is not None
