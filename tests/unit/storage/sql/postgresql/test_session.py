"""Sessions with a server: the lock of a store, and knowledge of a commit."""

from collections.abc import AsyncIterator

import pytest

from storage.api import StoreError
from storage.sql.postgresql.session import Session, application_name
from storage.sql.schema import bring_up_to_date
from tests.support import postgres
from tests.support.postgres_proxy import Proxy


@pytest.fixture
def url() -> str:
    server = postgres.server()
    return server.url(server.database())


@pytest.fixture
async def session(url: str) -> AsyncIterator[Session]:
    opened = Session(url, "jms-broker 1 first")
    await opened.connect()
    yield opened
    opened.drop()


def test_names_of_sessions_are_their_broker_s_alone() -> None:
    assert application_name(1) != application_name(1)


async def test_one_session_has_the_lock(url: str, session: Session) -> None:
    assert await session.lock()
    other = Session(url, "jms-broker 2 other")
    await other.connect()
    assert not await other.lock()
    assert await other.holder() == (
        f"jms-broker 1 first from this host (its session is {session.raw.get_server_pid()})"
    )
    await session.close()
    assert await other.lock()
    await other.close()


async def test_the_session_with_lock_and_epoch_leads(url: str, session: Session) -> None:
    assert await session.lock()
    await session.run(bring_up_to_date)
    assert (await session.begin_epoch(), session.epoch) == (0, 1)
    assert await session.leads()
    await session.raw.execute("SELECT pg_advisory_unlock_all()")
    assert not await session.leads()
    other = Session(url, "jms-broker 2 other")
    await other.connect()
    assert await other.lock()
    assert (await other.begin_epoch(), other.epoch) == (0, 2)
    assert await other.leads()
    await other.close()
    assert await session.lock()
    assert not await session.leads()


async def test_a_session_that_was_given_up_is_ended_by_the_next(url: str, session: Session) -> None:
    assert await session.lock()
    later = Session(url, "jms-broker 1 first")
    await later.connect()
    assert await later.lock()
    await later.close()


async def test_stores_in_other_schemas_are_no_concern(url: str, session: Session) -> None:
    await session.raw.execute("CREATE SCHEMA other")
    assert await session.lock()
    there = Session(f"{url}?search_path=other", "jms-broker 2 other")
    await there.connect()
    assert await there.lock()
    await there.close()


async def test_a_pooler_is_refused(url: str) -> None:
    async with Proxy(postgres.server(), pools=True) as proxy:
        session = Session(proxy.url(url.rpartition("/")[2]), "jms-broker 1 first")
        with pytest.raises(StoreError, match="pooler"):
            await session.connect()
        session.drop()


async def test_what_is_not_durable_is_refused(url: str) -> None:
    session = Session(f"{url}?synchronous_commit=off", "jms-broker 1 first")
    with pytest.raises(StoreError, match="synchronous_commit is off") as refused:
        await session.connect()
    assert postgres.PASSWORD not in str(refused.value)
    session.drop()
