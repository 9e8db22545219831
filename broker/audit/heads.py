"""The head of the audit's chain in the log, so that the log proves later that it is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from broker.audit.audit import Audit

EVERY_S: Final = 3600.0
"""Seconds between two lines."""


class HeadLog:
    """Reports the head every EVERY_S seconds, and at the end, if records have been added.

    `tell` gets it as `jms-broker audit verify --head` takes it: the number and the hash of the last
    record.
    """

    def __init__(self, audit: Audit, tell: Callable[[str], None]) -> None:
        self._audit: Final = audit
        self._tell: Final = tell
        self._told = ""
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Report the head after EVERY_S seconds, and so on; nothing if the audit is off."""
        if self._audit.is_on:
            self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._due)

    def _due(self) -> None:
        self.report()
        self.start()

    def report(self) -> None:
        """Report the head, unless that has been done."""
        head = self._audit.head()
        if head is not None and (text := f"{head.seq}:{head.hash}") != self._told:
            self._told = text
            self._tell(text)

    def stop(self) -> None:
        """Report nothing more."""
        if self._timer is not None:
            self._timer.cancel()
