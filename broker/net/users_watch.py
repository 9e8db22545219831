"""Looks regularly whether users have changed: a change ends sessions, or their rights."""

from __future__ import annotations

import asyncio
from typing import Final

from broker.links.container import Container
from broker.management.user_changes import UserChanges
from broker.net.login import Login

INTERVAL_S: Final = 2.0
"""Seconds between two looks: a user that is disabled is out within five seconds."""


class UsersWatch:
    """Begins a review of rights when the users of `login` have changed.

    Another process may have given the last user its verifiers: SCRAM is prepared then.
    `changes` records in the audit what has changed; None if the audit is off.
    """

    def __init__(
        self,
        login: Login,
        container: Container,
        changes: UserChanges | None = None,
        *,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._changes: Final = changes
        self._login: Final = login
        self._container: Final = container
        self._interval_s: Final = interval_s
        self._seen: object = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Take the present users as known, and look for the first time after the interval."""
        self._seen = self._login.users.snapshot()
        if self._changes is not None:
            self._changes.know()
        self._login.prepare_scram()
        self._arm()

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._interval_s, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        found = self._login.users.snapshot()
        if found is not self._seen:
            self._seen = found
            self._container.rights_review.begin()
            self._login.prepare_scram()
            if self._changes is not None:
                self._changes.record()
        self._arm()
