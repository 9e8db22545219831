"""The history of a run: requests of clients, and their results in the order of arrival."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Final


class Phase(Enum):
    """The phase of an action: INVOKE before the request, then its result.

    OK: it happened; FAIL: it did not happen; INFO: no client knows.
    """

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Action(Enum):
    """The kind of a request. An OUTAGE is invoked by the fault, OK when the broker is ready."""

    SEND = "send"
    RECEIVE = "receive"
    SETTLE = "settle"
    COMMIT = "commit"
    OUTAGE = "outage"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a history.

    `subject` is a message, as `producer.counter`, or a transaction. `place` is the address sent to,
    or the queue or subscription received from; `by` is the link, with a new name for each attach. A
    SETTLE with INVOKE accepts a delivery, one with FAIL returns it to the queue. `flagged` is the
    value of JMSRedelivered.
    """

    at_ns: int
    phase: Phase
    action: Action
    subject: str
    place: str = ""
    by: str = ""
    transaction: str = ""
    crc: int = 0
    priority: int = 4
    flagged: bool = False


class Recorder:
    """Records events as they happen, with the time of the monotonic clock."""

    def __init__(self) -> None:
        self.events: Final[list[Event]] = []

    def note(
        self,
        phase: Phase,
        action: Action,
        subject: str,
        *,
        place: str = "",
        by: str = "",
        transaction: str = "",
        crc: int = 0,
        priority: int = 4,
        flagged: bool = False,
    ) -> None:
        """Record an event that happens now."""
        self.events.append(
            Event(
                at_ns=time.monotonic_ns(),
                phase=phase,
                action=action,
                subject=subject,
                place=place,
                by=by,
                transaction=transaction,
                crc=crc,
                priority=priority,
                flagged=flagged,
            )
        )

    def write(self, file: Path) -> None:
        """Write the history to `file` for people to read, one JSON object per line."""
        with file.open("w") as out:
            for event in self.events:
                told = asdict(event) | {"phase": event.phase.value, "action": event.action.value}
                out.write(json.dumps(told) + "\n")
