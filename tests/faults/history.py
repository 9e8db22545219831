"""What clients tried and were told, in the order in which they learned of it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Final


class Phase(Enum):
    """INVOKE before it is asked for; then OK, FAIL (it did not happen), or INFO: nobody knows."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Action(Enum):
    """What was asked for. An OUTAGE is invoked by the fault and is OK when the broker is ready."""

    SEND = "send"
    RECEIVE = "receive"
    SETTLE = "settle"
    COMMIT = "commit"
    OUTAGE = "outage"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a history.

    `subject` is a message, `producer.counter`, or a transaction. `place` is the address sent to, or
    the queue or subscription received from; `by` the link, anew with each attach. A SETTLE
    that is invoked accepts, one that FAILs gives back. `flagged` is what JMSRedelivered would say.
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
    """Notes events as they happen, on the monotonic clock."""

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
        """It happens now."""
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
        """Keep it for people, a JSON object a line."""
        with file.open("w") as out:
            for event in self.events:
                told = asdict(event) | {"phase": event.phase.value, "action": event.action.value}
                out.write(json.dumps(told) + "\n")
