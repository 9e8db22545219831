"""The members of a group: each writes its addresses, and is up as long as it has a session."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from storage.members import StoredMember
from storage.sql.postgresql.leadership import APPLICATION, Group
from storage.sql.transaction import transaction

HAS_TABLE: Final = text("SELECT to_regclass('member') IS NOT NULL")

FORGET: Final = text("DELETE FROM member WHERE name = :name")

ANNOUNCE: Final = text("INSERT INTO member VALUES (:name, :kind, :host, :port)")

UP: Final = text(
    "SELECT DISTINCT split_part(application_name, '/', 2) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE :pattern"
)

ADDRESSES: Final = text("SELECT name, kind, host, port FROM member ORDER BY name, kind")


def announce(connection: Connection, group: Group) -> None:
    """Write the addresses of this member, instead of those that it wrote before.

    A standby whose store has an older schema writes nothing: it does so when it leads.
    """
    if not connection.execute(HAS_TABLE).scalar():
        return
    with transaction(connection):
        connection.execute(FORGET, {"name": group.name})
        for kind, (host, port) in group.addresses.items():
            row = {"name": group.name, "kind": kind, "host": host, "port": port}
            connection.execute(ANNOUNCE, row)


def members(connection: Connection) -> list[StoredMember]:
    """Return the members that are up, ordered by name, with the addresses that are known."""
    names = sorted(connection.execute(UP, {"pattern": f"{APPLICATION}%"}).scalars())
    found: dict[str, dict[str, tuple[str, int]]] = {name: {} for name in names}
    if connection.execute(HAS_TABLE).scalar():
        for name, kind, host, port in connection.execute(ADDRESSES):
            if name in found:
                found[name][kind] = (host, port)
    return [StoredMember(name, addresses) for name, addresses in found.items()]
