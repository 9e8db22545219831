"""The members of a group: each writes its addresses, and is up as long as it has a session."""

from __future__ import annotations

from typing import Final, final

from sqlalchemy import Connection, text

from storage.members import StoredMember
from storage.sql.postgresql.leadership import Group
from storage.sql.postgresql.lock import JOINED
from storage.sql.transaction import transaction
from storage.steady_clock import steady_us

HAS_TABLE: Final = text("SELECT to_regclass('member') IS NOT NULL")

FORGET: Final = text("DELETE FROM member WHERE name = :name")

ANNOUNCE: Final = text("INSERT INTO member VALUES (:name, :kind, :host, :port)")

UP: Final = text(f"""
SELECT DISTINCT split_part(application_name, '/', 2)
FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE {JOINED}
""")  # noqa: S608 - nothing of a peer's is in it

WISH: Final = "leads"
"""In place of a kind of listener: the member is to lead instead of the one that does."""

PREFERRED_AFTER_US: Final = 60_000_000
"""Microseconds for which a preferred member is warm before it asks to lead: a member that fails
again and again is not to interrupt the others each time."""

ADDRESSES: Final = text("SELECT name, kind, host, port FROM member ORDER BY name, kind")


def announce(connection: Connection, group: Group) -> bool:
    """Write the addresses of this member, instead of those that it wrote before.

    Return whether they are written. If the store has no such table yet, they are not: the leader
    makes it, of an empty or an older store.
    """
    if not connection.execute(HAS_TABLE).scalar():
        return False
    with transaction(connection):
        connection.execute(FORGET, {"name": group.name})
        for kind, (host, port) in group.addresses.items():
            row = {"name": group.name, "kind": kind, "host": host, "port": port}
            connection.execute(ANNOUNCE, row)
    return True


def members(connection: Connection) -> list[StoredMember]:
    """Return all members that are up or have an address, ordered by name."""
    up = set(connection.execute(UP).scalars())
    found: dict[str, dict[str, tuple[str, int]]] = {name: {} for name in up}
    wishing: set[str] = set()
    if connection.execute(HAS_TABLE).scalar():
        for name, kind, host, port in connection.execute(ADDRESSES):
            if kind == WISH:
                wishing.add(name)
            else:
                found.setdefault(name, {})[kind] = (host, port)
    return [
        StoredMember(name, found[name], is_up=name in up, wants_to_lead=name in up & wishing)
        for name in sorted(found)
    ]


def forget(connection: Connection, name: str) -> None:
    """Delete the addresses of a member that is no more."""
    connection.execute(FORGET, {"name": name})


@final
class Wish:
    """The wish of a standby to lead, if its group prefers it, from its session's beginning on."""

    def __init__(self, group: Group) -> None:
        self._group: Final = group
        self._warm_since_us = -1
        self._is_told = not group.prefers

    def step(self, connection: Connection, *, is_warm: bool) -> None:
        """Write the wish if it is time; `is_warm` is whether the member can take over soon."""
        if self._is_told:
            return
        now_us = steady_us()
        if not is_warm or self._warm_since_us < 0:
            self._warm_since_us = now_us if is_warm else -1
        if is_warm and now_us - self._warm_since_us >= PREFERRED_AFTER_US:
            row = {"name": self._group.name, "kind": WISH, "host": "", "port": 0}
            connection.execute(ANNOUNCE, row)
            self._is_told = True
