"""Check of a PostgreSQL server that a store is in."""

from __future__ import annotations

import asyncio
from typing import Final

from broker.doctor.finding import CheckResult, failure, well

TIMEOUT_S: Final = 5.0


def server_settings(url: str) -> CheckResult:
    """Return whether the server at `url` may be used by the broker, as its start would decide."""
    try:
        from storage.sql.postgresql import postgres
    except ModuleNotFoundError as error:
        return failure(
            f"{error.name} is not installed, which a store in PostgreSQL needs",
            "pip install 'jms-broker[postgresql]'",
        )
    name = postgres.name_of(url)
    try:
        refusal, version = asyncio.run(_asked(url))
    except _errors() as error:
        return failure(
            f"{name} cannot be reached: {str(error) or type(error).__name__}",
            "see the server, and the user and the password in store",
        )
    if refusal:
        return failure(f"{name}: {refusal}", "change the server as the finding says")
    return well(f"{name}: PostgreSQL {version // 10_000}, its settings keep what is accepted")


def _errors() -> tuple[type[Exception], ...]:
    """Return the errors of a server that cannot be reached or asked."""
    import asyncpg

    return OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError


async def _asked(url: str) -> tuple[str, int]:
    """Return why the server must not be used, empty if it may be, and its version."""
    import asyncpg

    from storage.sql.postgresql import postgres
    from storage.sql.postgresql.servers import places_of

    session = await asyncpg.connect(url, timeout=TIMEOUT_S)
    try:
        facts = await postgres.facts_of(session, len(places_of(url)))
    finally:
        await session.close(timeout=TIMEOUT_S)
    return postgres.refusal(facts), facts.version
