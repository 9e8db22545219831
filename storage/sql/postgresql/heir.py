"""The member to which a leader hands over: for two seconds, no other member takes the store."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

HEIR: Final = "heir "
"""Beginning of the name of a mark; the heir's name follows. Its value is the time, in µs since 1970
by the server's clock, until which the others wait."""

WAIT_US: Final = 2_000_000

FORGET: Final = text(f"DELETE FROM mark WHERE name LIKE '{HEIR}%'")  # noqa: S608 - a constant

NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

APPOINT: Final = text(
    f"INSERT INTO mark (name, value) VALUES (:heir, {NOW} + {WAIT_US})"  # noqa: S608
)

HAS_MARKS: Final = text("SELECT to_regclass('mark') IS NOT NULL")

OTHERS: Final = text(
    f"SELECT count(*) FROM mark WHERE name LIKE '{HEIR}%' AND name <> :heir"  # noqa: S608
    f" AND value - {NOW} BETWEEN 1 AND {WAIT_US}"
)
"""A time that is further away has been written before the server's clock was set back."""


def appoint(connection: Connection, name: str) -> None:
    """Make the member `name` the heir, in the leader's last transaction."""
    connection.execute(FORGET)
    connection.execute(APPOINT, {"heir": f"{HEIR}{name}"})


def is_another(connection: Connection, name: str) -> bool:
    """Return whether another member than `name` is to take the store now."""
    if not connection.execute(HAS_MARKS).scalar():
        return False  # no broker has ever led
    return bool(connection.execute(OTHERS, {"heir": f"{HEIR}{name}"}).scalar())
