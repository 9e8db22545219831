"""Finds another member of the group under the name of this one: two would be taken for one.

A member that has crashed and comes back may find its former session: that of a machine without
power stays for `silence_ms`. But nothing happens in it any more, while a member that is up asks the
server several times a second. One that is stopping does so for a few seconds.
"""

from __future__ import annotations

from typing import Final, final

from sqlalchemy import Connection, text

from storage.api import StoreError
from storage.sql.postgresql.leadership import APPLICATION, Group
from storage.sql.postgresql.lock import HELD, JOINED

LOOK_US: Final = 1_000_000
"""Microseconds between two looks at the sessions of this name."""

PATIENCE_US: Final = 10_000_000
"""Microseconds for which another session must be at work: a member stops within 8 s."""

PAUSE_US: Final = 2_000_000
"""Maximum microseconds between two statements of a session that is at work."""

NAMESAKES: Final = text(f"""
SELECT application_name, coalesce(host(client_addr), 'this host') AS host, state_change
FROM pg_locks JOIN pg_stat_activity AS other USING (pid)
WHERE {JOINED} AND application_name <> :application
AND starts_with(application_name, '{APPLICATION}') AND split_part(application_name, '/', 2) = :name
AND (EXISTS (SELECT FROM pg_locks AS held WHERE held.pid = other.pid AND {HELD})
    OR backend_start < (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()))
""")  # noqa: S608 - nothing of a peer's is in it
"""Other sessions of this name that lead, or are older: of two standbys, the younger one gives way.
Of sessions of another database user only the lock is seen: they have no name here."""


@final
class Work:
    """The time since which a session has been seen at work, and its last statement."""

    def __init__(self, since_us: int, statement: object) -> None:
        self.since_us = since_us
        self.last_us = since_us
        self.statement = statement

    def lasts_us(self, statement: object, now_us: int) -> int:
        """Return for how long the session has worked without a pause; `statement` is its last."""
        if now_us - self.last_us > PAUSE_US:
            self.since_us = now_us
        if statement == self.statement:
            return 0
        self.statement, self.last_us = statement, now_us
        return now_us - self.since_us


@final
class Namesakes:
    """Looks for another member of the name of this one, which stands by."""

    def __init__(self, group: Group, store: str) -> None:
        """`store` is the name of the store, for the operator."""
        self._group: Final = group
        self._store: Final = store
        self._next_us = 0
        self._seen: dict[str, Work] = {}

    def step(self, connection: Connection, now_us: int) -> None:
        """Look if it is time. Raise StoreError if another member of this name is up."""
        if now_us < self._next_us:
            return
        self._next_us = now_us + LOOK_US
        asked = {"name": self._group.name, "application": self._group.application}
        seen: dict[str, Work] = {}
        for application, host, statement in connection.execute(NAMESAKES, asked):
            work = self._seen.get(application) or Work(now_us, statement)
            seen[application] = work
            if work.lasts_us(statement, now_us) >= PATIENCE_US:
                raise StoreError(
                    f"the group on the store {self._store} has another member with the name"
                    f" '{self._group.name}', at {host}: set ha.name to a name of its own for each"
                    " member, or stop that one"
                )
        self._seen = seen
