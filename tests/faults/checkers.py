"""The promises of `docs/reliability.md` as checkers of a history; each yields the violations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.faults.reading import Fate, Reading

Checker = Callable[[Reading], Iterator[str]]


def lost(reading: Reading) -> Iterator[str]:
    """Yield messages that were accepted and never received (P1)."""
    for subject, sent in reading.sent.items():
        if reading.fate(sent) is Fate.DONE:
            for place in reading.places(sent):
                if not reading.seen(place, subject):
                    yield f"{subject} at {place}"


def lost_middle(reading: Reading) -> Iterator[str]:
    """Yield lost messages whose producer has a later one that arrived: a hole, not a torn end."""
    last: dict[tuple[str, str], int] = defaultdict(int)
    for place, subject in reading.receipts:
        producer, number = parts(subject)
        last[place, producer] = max(last[place, producer], number)
    for finding in lost(reading):
        subject, _, place = finding.partition(" at ")
        producer, number = parts(subject)
        if last[place, producer] > number:
            yield finding


def accepted_then_missing(reading: Reading) -> Iterator[str]:
    """Yield messages accepted and delivered whose last known delivery did not consume them."""
    for (place, subject), receipts in reading.receipts.items():
        sent = reading.sent.get(subject)
        stored = sent is not None and reading.fate(sent) is Fate.DONE
        if stored and receipts and reading.is_consumed(receipts[-1]) is Fate.NOT_DONE:
            yield f"{subject} at {place}"


def unexpected(reading: Reading) -> Iterator[str]:
    """Yield messages that were received but never sent, or received at a wrong place."""
    for (place, subject), receipts in reading.receipts.items():
        sent = reading.sent.get(subject)
        if receipts and (sent is None or not reading.may_be_at(sent, place)):
            yield f"{subject} at {place}"


def rejected_then_delivered(reading: Reading) -> Iterator[str]:
    """Yield messages received though the broker refused them or nothing committed them (P2)."""
    for (place, subject), receipts in reading.receipts.items():
        sent = reading.sent.get(subject)
        if receipts and sent is not None and reading.fate(sent) is Fate.NOT_DONE:
            yield f"{subject} at {place}"


def duplicate_unflagged(reading: Reading) -> Iterator[str]:
    """Yield messages received more often without a redelivered flag than they were sent (P6)."""
    for (place, subject), receipts in reading.receipts.items():
        sent = reading.sent.get(subject)
        fresh = sum(not receipt.flagged for receipt in receipts)
        if sent is not None and fresh > max(sent.copies, 1):
            yield f"{subject} at {place}, {fresh} times"


def consumed_then_delivered(reading: Reading) -> Iterator[str]:
    """Yield messages that were delivered again after a commit that consumed them (P3)."""
    for (place, subject), receipts in reading.receipts.items():
        sent = reading.sent.get(subject)
        if sent is not None and sent.copies <= 1:
            for receipt in receipts[:-1]:
                if reading.is_consumed(receipt) is Fate.DONE:
                    yield f"{subject} at {place}"


def reordered(reading: Reading) -> Iterator[str]:
    """Yield messages that arrived after a later one of the same producer and priority (P5).

    Only the first delivery of a message at a place counts; of a link that was alone, every
    delivery.
    """
    for (place, by), deliveries in reading.by_link.items():
        latest: dict[tuple[str, int], int] = {}
        for subject, first in deliveries:
            sent = reading.sent.get(subject)
            if sent is None or sent.copies > 1 or not (first or by in reading.alone):
                continue
            producer, number = parts(subject)
            if number < latest.get((producer, sent.priority), -1):
                yield f"{subject} at {place} by {by}"
            latest[producer, sent.priority] = number


def torn_tx(reading: Reading) -> Iterator[str]:
    """Yield transactions of which one part happened and another did not (P4).

    Also yield those whose effects contradict the outcome that the client was told.
    """
    effects: dict[str, set[bool]] = defaultdict(set)
    for subject, sent in reading.sent.items():
        if sent.transaction and sent.copies:
            seen = {bool(reading.seen(place, subject)) for place in reading.places(sent)}
            effects[sent.transaction] |= seen
    for (_, subject), receipts in reading.receipts.items():
        if is_stored(reading, subject):
            for index, receipt in enumerate(receipts):
                if receipt.transaction and receipt.accepted:
                    effects[receipt.transaction].add(index + 1 == len(receipts))
    wanted = {Fate.DONE: {True}, Fate.NOT_DONE: {False}}
    for transaction, found in effects.items():
        fate = reading.fate_of(transaction)
        if len(found) > 1 or found != wanted.get(fate, found):
            yield f"{transaction}, {fate.value}"


def is_stored(reading: Reading, subject: str) -> bool:
    """Return whether the broker is known to have the message, and exactly one copy of it."""
    sent = reading.sent.get(subject)
    return sent is not None and sent.copies == 1 and reading.fate(sent) is Fate.DONE


def corrupt_body(reading: Reading) -> Iterator[str]:
    """Yield messages received with another body than the one sent (P10)."""
    for (place, subject), receipts in reading.receipts.items():
        sent = reading.sent.get(subject)
        if sent is not None and any(receipt.crc != sent.crc for receipt in receipts):
            yield f"{subject} at {place}"


def parts(subject: str) -> tuple[str, int]:
    """Return the producer and the counter that a message's name consists of; -1 for no counter."""
    producer, _, number = subject.rpartition(".")
    return producer, int(number) if number.isdecimal() else -1


CHECKERS: Final[dict[str, Checker]] = {
    "lost": lost,
    "lost-middle": lost_middle,
    "unexpected": unexpected,
    "duplicate-unflagged": duplicate_unflagged,
    "consumed-then-delivered": consumed_then_delivered,
    "reordered": reordered,
    "torn-tx": torn_tx,
    "accepted-then-missing": accepted_then_missing,
    "rejected-then-delivered": rejected_then_delivered,
    "corrupt-body": corrupt_body,
}


@dataclass(frozen=True)
class Verdict:
    """The judgement of a history: its figures, and the findings of each checker."""

    attempts: int
    acked: int
    duplicates_flagged: int
    indeterminate: int
    unavailable_ms: float
    findings: dict[str, list[str]]

    @property
    def holds(self) -> bool:
        """Return whether every promise was kept."""
        return not any(self.findings.values())

    def line(self) -> str:
        """Return the figures in one line."""
        words = {
            "attempts": self.attempts,
            "acked": self.acked,
            "lost": len(self.findings["lost"]),
            "dup(flagged)": self.duplicates_flagged,
            "dup(unflagged)": len(self.findings["duplicate-unflagged"]),
            "reordered": len(self.findings["reordered"]),
            "torn": len(self.findings["torn-tx"]),
            "indeterminate": self.indeterminate,
            "max-unavailability-ms": round(self.unavailable_ms),
        }
        return " / ".join(f"{name} {value}" for name, value in words.items())

    def problems(self, most: int = 5) -> Iterator[str]:
        """Yield a line for each checker with findings, which names at most `most` of them."""
        for name, found in self.findings.items():
            if found:
                more = f" and {len(found) - most} more" if len(found) > most else ""
                yield f"{name}: {', '.join(found[:most])}{more}"


def judge(reading: Reading) -> Verdict:
    """Apply all checkers to `reading` and return the verdict."""
    fates = [reading.fate(sent) for sent in reading.sent.values()]
    return Verdict(
        attempts=sum(sent.attempts for sent in reading.sent.values()),
        acked=fates.count(Fate.DONE),
        duplicates_flagged=sum(
            receipt.flagged for receipts in reading.receipts.values() for receipt in receipts[1:]
        ),
        indeterminate=fates.count(Fate.IN_DOUBT),
        unavailable_ms=max(reading.outages_ms, default=0.0),
        findings={name: list(checker(reading)) for name, checker in CHECKERS.items()},
    )
