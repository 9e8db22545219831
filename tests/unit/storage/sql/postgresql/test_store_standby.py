"""A store of a standby whose connection with the database is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from storage.api import LeadershipError
from storage.sql.postgresql.leadership import Group
from storage.sql.postgresql.store import PostgresStore
from tests.support.postgres import Server
from tests.support.postgres_proxy import Proxy
from tests.support.tls_listening import until
from tests.unit.storage.sql.postgresql.test_store import opened


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(server) as opened:
        yield opened


async def test_a_standby_that_loses_the_database_as_it_takes_over_stands_by_again(
    database: str, proxy: Proxy
) -> None:
    """It may lead once the database is back: its process does not end for good."""
    group = Group("one", silence_ms=3000)
    store = PostgresStore(proxy.url(database), grace_ms=200, group=group)
    await store.lead(lambda *_: None)
    proxy.refuse()
    proxy.cut()
    with pytest.raises(LeadershipError):
        await store.open()
    await store.close()


async def test_a_standby_whose_link_only_swallows_connects_again(
    server: Server, database: str, proxy: Proxy
) -> None:
    """The machine of its database has lost its power, for instance, and another has its address."""
    leader = await opened(server.url(database))
    told: list[tuple[str, str]] = []
    store = PostgresStore(proxy.url(database), group=Group("one", silence_ms=3000))
    leading = asyncio.create_task(store.lead(lambda *each: told.append(each)))
    await until(lambda: bool(told))
    proxy.hold(b"jms-broker/")
    proxy.held.clear()
    await leader.close()
    async with asyncio.timeout(30):
        await leading
    await store.open()
    await store.close()
