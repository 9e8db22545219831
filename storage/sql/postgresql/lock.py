"""The locks of a store: advisory locks of PostgreSQL, which a session holds until it ends."""

from __future__ import annotations

from typing import Final

KEY: Final = "hashtextextended('jms-broker ' || coalesce(current_schema(), ''), 0)"
"""SQL for the key of the lock: there is one store per schema."""

MEMBERS_KEY: Final = (
    "hashtextextended('jms-broker members of ' || coalesce(current_schema(), ''), 0)"
)
"""SQL for the key of a lock that the sessions of all members of a store's group share."""

TRY_LOCK: Final = f"SELECT pg_try_advisory_lock({KEY})"

UNLOCK: Final = f"SELECT pg_advisory_unlock({KEY})"

JOIN: Final = f"SELECT pg_advisory_lock_shared({MEMBERS_KEY})"


def _held(key: str) -> str:
    """Return SQL for the condition of rows of `pg_locks` that they are the lock with that key."""
    return f"""locktype = 'advisory' AND granted AND objsubid = 1
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (classid::bigint << 32 | objid::bigint) = {key}"""  # noqa: S608 - nothing of a peer's is in it


HELD: Final = _held(KEY)
JOINED: Final = _held(MEMBERS_KEY)

HOLDER: Final = f"""
SELECT pid, application_name, coalesce(host(client_addr), 'this host')
FROM pg_locks LEFT JOIN pg_stat_activity USING (pid) WHERE {HELD}
"""  # noqa: S608
"""The session that holds the lock: its process id, application and host."""
