"""Counts events that clients repeat, so that they neither fill the disk nor hide others.

Of events with an equal key the first in a minute is recorded at once. The others are counted, and
the count is recorded at the end of the minute. One source of events may use ORIGIN_KEYS_MAX keys in
a minute, all together KEYS_MAX: further events are counted by their action alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from broker.audit.record import BROKER, AuditEvent

WINDOW_S: Final = 60
"""Seconds for which events are counted."""

KEYS_MAX: Final = 600
"""Maximum keys in a minute, of about 0.5 KiB each: so many such records are written at once."""

ORIGIN_KEYS_MAX: Final = 60
"""Maximum keys in a minute of one address (without its port)."""


class Repeats:
    """The repeated events of the current minute."""

    def __init__(self) -> None:
        self._first: Final[dict[tuple[str, ...], AuditEvent]] = {}
        self._further: Final[Counter[tuple[str, ...]]] = Counter()
        self._of_origin: Final[Counter[str]] = Counter()
        self._left_over: Final[Counter[str]] = Counter()

    def register(self, event: AuditEvent) -> bool:
        """Register `event`; return whether it is to be recorded now. If not, it is counted."""
        key = event.repeat_key
        if key is None:
            return True
        if key in self._first:
            self._further[key] += 1
            return False
        origin = event.actor.address.rpartition(":")[0] or event.actor.address
        if len(self._first) >= KEYS_MAX or self._of_origin[origin] >= ORIGIN_KEYS_MAX:
            self._left_over[event.action] += 1
            return False
        self._of_origin[origin] += 1
        self._first[key] = event
        return True

    def is_idle(self) -> bool:
        """Return whether no minute has begun: there is nothing to be collected."""
        return not self._first and not self._left_over

    def collect(self) -> list[AuditEvent]:
        """End the minute; return the events that record its counts."""
        found = []
        for key, count in self._further.items():
            event = self._first[key]
            after = {**(event.after or {}), "count": count, "within_s": WINDOW_S}
            found.append(replace(event, after=after, repeat_key=None))
        for action, count in self._left_over.items():
            told = {"what": "further ones, too many to tell apart", "count": count}
            found.append(
                AuditEvent(action=action, actor=BROKER, after={**told, "within_s": WINDOW_S})
            )
        for kept in (self._first, self._further, self._of_origin, self._left_over):
            kept.clear()
        return found
