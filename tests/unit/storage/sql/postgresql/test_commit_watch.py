"""Commits that wait for a standby server of the database: in doubt, and told to the operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from storage.api import StoreError
from storage.sql.postgresql.commit_watch import GOES_ON, WAITS
from storage.sql.postgresql.store import PostgresStore
from tests.support.postgres import Server
from tests.support.tls_listening import until
from tests.unit.storage.sql.postgresql.test_store import (
    OF_BROKERS,
    batch_of,
    held,
    opened,
)


@asynccontextmanager
async def without_standby_server(server: Server) -> AsyncIterator[None]:
    """Have commits wait for a standby server that there is not, as long as the block lasts."""
    await server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    await server.sql("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        await server.sql("ALTER SYSTEM RESET synchronous_standby_names")
        await server.sql("SELECT pg_reload_conf()")


async def until_commits_wait(server: Server) -> None:
    """Wait until a commit waits for a standby server: processes read settings at their time."""
    while True:
        session = await asyncpg.connect(server.url("postgres"))
        try:
            async with asyncio.timeout(1):
                await session.execute("CREATE TEMPORARY TABLE IF NOT EXISTS probe ()")
                await session.execute("SELECT pg_current_xact_id()")
        except TimeoutError:
            return
        finally:
            session.terminate()


async def test_a_commit_of_which_the_standby_is_not_known_is_in_doubt(
    server: Server, database: str
) -> None:
    store = await opened(server.url(database))
    await store.commit(batch_of(1))
    async with without_standby_server(server):
        committing = asyncio.create_task(store.commit(batch_of(2)))
        waits = f"{OF_BROKERS} AND datname = '{database}' AND wait_event = 'SyncRep'"
        while not (waiting := await server.sql(waits)):
            pass
        await server.sql("SELECT pg_cancel_backend($1)", waiting[0]["pid"])
        while not (again := await server.sql(waits)) or again == waiting:
            pass
        assert not committing.done(), "it is committed here, but nothing is known of the standby"
    await committing
    assert await held(server, database) == [1, 2]
    await store.close()


async def test_a_stop_waits_for_no_standby_server(server: Server, database: str) -> None:
    """Nothing is left to write: the next start only does not know that this was no crash."""
    store = await opened(server.url(database))
    await store.commit(batch_of(1))
    async with without_standby_server(server):
        await until_commits_wait(server)
        async with asyncio.timeout(20):
            with pytest.raises(StoreError):
                await store.close()
    assert await held(server, database) == [1]


@pytest.mark.parametrize("at_start", [False, True], ids=["a commit", "a start"])
async def test_a_wait_for_a_standby_server_is_told(
    server: Server, database: str, *, at_start: bool
) -> None:
    told: list[str] = []
    store = PostgresStore(server.url(database))
    store.when_noticed(told.append)
    if not at_start:
        await store.open()
    async with without_standby_server(server):
        waiting = asyncio.create_task(store.open() if at_start else store.commit(batch_of(1)))
        await until(store.waits_for_standby)
        assert not waiting.done()
        assert store.is_away()
    await waiting
    await until(lambda: not store.waits_for_standby())
    assert told == [WAITS, GOES_ON]
    await store.close()
