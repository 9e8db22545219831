"""The messages that a request means: named by identities, or found by a scan of a queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.management.request import BAD_REQUEST, Refused, Request
from broker.management.response import Response
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.record_mapping import stored_position
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_inspection import (
    check_loaded,
    entry_of,
    goes_on,
    peek,
    with_held,
)
from broker.routing.selector import Facts, Selector, parse_selector

SCAN_MAX: Final = 10_000
"""Maximum messages that one request examines, whether a selector matches them or not."""

STEPS_MAX: Final = 200_000
"""Steps of a selector, or of the properties it passes over, after which a request examines no
further message: 20 ms at most. It examines one in any case."""

CHANGED_MAX: Final = 1000
"""Maximum messages that one request moves or deletes."""

NUMBER_DIGITS: Final = 18

CHOICE: Final = (
    *("queue", "subscription", "identities", "selector", "all", "after", "count"),
    "scan",
)
"""The arguments that choose messages."""

WAITING: Final = "waiting"
SCHEDULED: Final = "scheduled"
PAUSED: Final = "paused"
"""Not delivered yet: the message has failed, and waits for its redelivery delay."""

HELD: Final = "held"
"""Not delivered: the message is to be moved to a dead-letter or expiry node, and could not be."""


def identity_of(entry: QueueEntry) -> str:
    """Return the number that identifies `entry` within its queue."""
    return str(int(stored_position(entry)))


def number_in(identity: str) -> int:
    """Return an identity as a number; Refused if it is none."""
    if not (identity.isascii() and identity.isdigit() and len(identity) <= NUMBER_DIGITS):
        raise Refused(BAD_REQUEST, f"{identity:.50} is no identity: that of a message is a number")
    return int(identity)


def identities_in(request: Request) -> list[str]:
    """Return the identities that `request` gives; Refused if it gives none."""
    found = request.texts("identities", at_most=CHANGED_MAX)
    if not found:
        raise Refused(BAD_REQUEST, "identities names the messages")
    return found


def selector_of(request: Request) -> Selector | None:
    """Return the selector that `request` gives, None if it gives none."""
    text = request.text("selector", "")
    return parse_selector(text) if text else None


def scan_of(request: Request) -> int:
    """Return the number of messages that `request` may examine."""
    return request.number("scan", SCAN_MAX, low=1, high=SCAN_MAX)


class Examination:
    """The evaluations of a selector by one request; without a selector, all messages match."""

    def __init__(self, selector: Selector | None) -> None:
        self._selector: Final = selector
        self._left = STEPS_MAX

    def is_over(self) -> bool:
        """Return whether the request has to be sent again, to examine what follows."""
        return self._left <= 0

    def matches(self, entry: QueueEntry) -> bool:
        """Return whether the message of `entry` matches."""
        if self._selector is None:
            return True
        facts = Facts(entry.message)
        is_match = self._selector.admits(facts)
        self._left -= int(facts.steps)
        return is_match


class MessageScan:
    """A scan of a queue for entries behind `after` that a selector matches.

    Stops after `count` matches, or after examining `scan` entries or STEPS_MAX steps. Scans the
    entries in `state`, WAITING or HELD, by default those in either. `next` is the identity after
    which to continue, None at the end.
    """

    def __init__(self, request: Request, count: int, state: str = "") -> None:
        after = request.text("after", "")
        self._selector: Final = selector_of(request)
        self._after: Final = number_in(after) if after else -1
        self._count: Final = count
        self._scan: Final = scan_of(request)
        self._state: Final = state
        self.next: str | None = None
        # whether entries follow that are not in memory
        self._is_cut = False

    def entries(self, queue: Queue) -> Iterator[QueueEntry]:
        """Yield the matching entries. The caller may withdraw each one."""
        looked_at = self._walk(queue)
        examination = Examination(self._selector)
        left = self._count
        for number, entry in enumerate(looked_at):
            if left == 0 or number == self._scan or examination.is_over():
                return
            self.next = identity_of(entry)
            if examination.matches(entry):
                left -= 1
                yield entry
        if not self._is_cut:
            self.next = None

    def _walk(self, queue: Queue) -> list[QueueEntry]:
        at_most = self._count if self._selector is None else self._scan
        found: list[QueueEntry] = []
        if self._state != HELD:
            found = peek(queue.backlogs, self._after, at_most + 1)
            self._is_cut = bool(found) and goes_on(queue.backlogs, found[-1])
        held = queue.state.held_for_move() if self._state != WAITING else []
        if held:
            is_cut = self._is_cut or len(found) > at_most
            found = with_held(found, held, self._after, at_most=at_most + 1, is_cut=is_cut)
        return found


class ChosenMessages:
    """The messages to change: those in `identities`, or else the first that a scan finds."""

    def __init__(self, request: Request) -> None:
        self._identities: Final = request.texts("identities", at_most=CHANGED_MAX)
        if not (self._identities or request.flag("all") or request.text("selector", "")):
            raise Refused(BAD_REQUEST, "say which messages: identities, selector, or all")
        count = request.number("count", CHANGED_MAX, low=1, high=CHANGED_MAX)
        self._scan: Final = MessageScan(request, count)
        self.missing: Final[list[int]] = []

    def entries(self, queue: Queue) -> Iterator[QueueEntry]:
        """Yield the chosen entries that exist. The caller may withdraw each one."""
        if not self._identities:
            yield from self._scan.entries(queue)
            return
        chosen = list(dict.fromkeys(number_in(identity) for identity in self._identities))
        check_loaded(queue.backlogs, chosen)
        for number in chosen:
            entry = loaded_entry(queue, number)
            if entry is None:
                self.missing.append(number)
            else:
                yield entry

    def response(self, **done: object) -> Response:
        """Return the counts in `done`, the named messages not found, and where to continue."""
        missing = [str(number) for number in self.missing]
        return Response(body={**done, "missing": missing, "next": self._scan.next})


def loaded_entry(queue: Queue, number: int) -> QueueEntry | None:
    """Return the waiting or held entry of that number, or None; NotLoaded if it must be loaded."""
    held = None if queue.state.schedule is None else queue.state.schedule.held.get(number)
    return entry_of(queue.backlogs, number) if held is None else held
