"""Compares what is in the logs with what was acknowledged. Pure: it is fed records in offset order.

Loss, reordering, duplication and misplacement, as the durability contract defines them:
every acknowledged message is there once, at its acknowledged offset; the messages of one producer
stand in the order in which it sent them; offsets are dense. A message that was never acknowledged
may be there, once. Nothing is there that nobody sent.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.crash.ledger import UNKNOWN, Ledger, place_of

MAX_SENTENCES = 40


@dataclass(slots=True)
class Findings:
    lost: int = 0
    reordered: int = 0
    duplicated: int = 0
    misplaced: int = 0
    sentences: list[str] = field(default_factory=list)

    def note(self, kind: str, sentence: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.sentences) < MAX_SENTENCES:
            self.sentences.append(f"{kind}: {sentence}")

    @property
    def are_none(self) -> bool:
        return not (self.lost or self.reordered or self.duplicated or self.misplaced)

    def __str__(self) -> str:
        return (
            f"lost {self.lost:,}, reordered {self.reordered:,}, "
            f"duplicated {self.duplicated:,}, misplaced {self.misplaced:,}"
        )


class Checker:
    """Fed with every record of every log; remembers which message it has seen, and where."""

    def __init__(self, ledger: Ledger) -> None:
        self.findings = Findings()
        self._ledger = ledger
        self._seen: dict[int, bytearray] = {}
        self._next_offsets: dict[int, int] = {}
        self._last_sequences: dict[tuple[int, int], int] = {}

    def next_offset(self, log_number: int) -> int:
        """From where `scan` goes on in this log."""
        return self._next_offsets.get(log_number, 0)

    def scan(self, log_number: int, records: Iterable[tuple[int, tuple[int, int] | None]]) -> None:
        """Take records of one log: (offset, (producer, sequence) or None for bytes of nobody)."""
        expected = self.next_offset(log_number)
        for offset, message in records:
            if offset != expected:
                self._note("misplaced", log_number, offset, f"follows offset {expected - 1}")
            expected = offset + 1
            if message is None or not self._ledger.was_sent(*message):
                self._note("misplaced", log_number, offset, f"holds {message}, which nobody sent")
            else:
                self._check_message(log_number, offset, *message)
        self._next_offsets[log_number] = expected

    def _check_message(self, log_number: int, offset: int, producer: int, sequence: int) -> None:
        if not self._see(producer, sequence):
            self._note("duplicated", log_number, offset, f"repeats message {producer}:{sequence}")
            return
        known = self._ledger.place(producer, sequence)
        if known not in (UNKNOWN, place_of(log_number, offset)):
            told = self._ledger.describe(known)
            self._note(
                "misplaced",
                log_number,
                offset,
                f"holds {producer}:{sequence}, acknowledged at {told}",
            )
        last = self._last_sequences.get((log_number, producer), -1)
        if sequence < last:
            self._note(
                "reordered",
                log_number,
                offset,
                f"holds {producer}:{sequence} after sequence {last}",
            )
        self._last_sequences[log_number, producer] = max(sequence, last)

    def judge(self, acknowledged: Iterable[tuple[int, int]]) -> None:
        """Of these messages, which the logs scanned so far must hold, name the missing ones."""
        for producer, sequence in acknowledged:
            if not self._has_seen(producer, sequence):
                told = self._ledger.describe(self._ledger.place(producer, sequence))
                self.findings.note(
                    "lost", f"message {producer}:{sequence}, acknowledged at {told}, is not there"
                )

    def judge_all(self) -> None:
        """Every acknowledgement ever given, and the answers that contradicted each other."""
        self.judge(
            (producer, sequence)
            for producer, places in enumerate(self._ledger.places)
            for sequence, place in enumerate(places)
            if place != UNKNOWN
        )
        for sentence in self._ledger.contradictions:
            self.findings.note("misplaced", sentence)

    def _see(self, producer: int, sequence: int) -> bool:
        """Mark the message; False when it was marked before."""
        seen = self._seen.setdefault(producer, bytearray())
        if sequence >= len(seen):
            seen.extend(bytes(sequence + 1024 - len(seen)))
        if seen[sequence]:
            return False
        seen[sequence] = 1
        return True

    def _has_seen(self, producer: int, sequence: int) -> bool:
        seen = self._seen.get(producer, b"")
        return sequence < len(seen) and seen[sequence] == 1

    def _note(self, kind: str, log_number: int, offset: int, sentence: str) -> None:
        self.findings.note(kind, f"{self._ledger.logs[log_number]} offset {offset} {sentence}")
