"""A store in PostgreSQL over restarts, lost connections and lost answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from storage.api import StoreError
from storage.batch import Batch
from storage.records import StoredNode
from storage.sql.index import NUMBERS_AT_ONCE
from storage.sql.postgresql import store as postgres_store
from storage.sql.postgresql.store import PostgresStore
from storage.sql.reading import segment_of
from storage.sql.segments.packing import numbers_of
from storage.sql.tables import METADATA
from tests.support import postgres
from tests.support.postgres import Server
from tests.support.postgres_proxy import Proxy
from tests.support.stored import stored_messages
from tests.support.tls_listening import until
from tests.unit.storage.test_batch import stored

OF_BROKERS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'jms-broker%'"

SLOW = "SELECT count(*) FROM pg_sleep(0.2)"


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(server) as opened:
        yield opened


async def opened(url: str, *, grace_ms: int = 20_000) -> PostgresStore:
    store = PostgresStore(url, grace_ms=grace_ms)
    await store.open()
    return store


def batch_of(*numbers: int) -> Batch:
    batch = Batch()
    for number in numbers:
        batch.append(stored(number))
    return batch


async def numbers(store: PostgresStore) -> list[int]:
    return [int(message.number) for message in await stored_messages(store, "q")]


async def held(server: Server, database: str) -> list[int]:
    """Return the numbers of all messages in the database."""
    rows = await server.sql("SELECT * FROM segment ORDER BY number", database=database)
    return [number for row in rows for number in numbers_of(segment_of(row))]


async def end_sessions(server: Server, database: str) -> None:
    """End all sessions of brokers with this database."""
    await server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = $1 AND application_name LIKE 'jms-broker%'",
        database,
    )


async def committing_in_vain(store: PostgresStore, proxy: Proxy) -> asyncio.Task[None]:
    """Commit one batch; return the task that commits another one, which never arrives."""
    await store.commit(batch_of(1))
    proxy.lose_requests = True
    committing = asyncio.create_task(store.commit(batch_of(2)))
    await proxy.lost.wait()
    return committing


@pytest.mark.requirement("PRD-03")
async def test_what_was_committed_is_there_after_a_restart(server: Server, database: str) -> None:
    url = server.url(database)
    store = await opened(url)
    assert store.first_number == 1
    batch = batch_of(1, 2)
    batch.add_node(StoredNode(address="q", kind="queue"))
    batch.mark_delivered("q", 10)
    await store.commit(batch)
    await store.close()
    again = await opened(url)
    assert await numbers(again) == [1, 2]
    assert again.first_number == 1 + 2 + NUMBERS_AT_ONCE
    await end_sessions(server, database)
    batch = batch_of(3)
    batch.mark_delivered("q", 20)
    await again.commit(batch)
    await again.close()
    third = await opened(url)
    assert (await numbers(third), await third.delivered()) == ([1, 2, 3], {})
    batch = batch_of(4)
    batch.mark_delivered("q", 30)
    await third.commit(batch)
    third._closing = True  # as if its broker had been killed
    third._ready().drop()
    killed = await opened(url)
    assert await killed.delivered() == {"q": 30}
    await killed.close()


async def test_a_close_waits_for_the_question_under_way(server: Server, database: str) -> None:
    """Otherwise it would end the session, and the next start would find that there was no close."""
    url = server.url(database)
    store = await opened(url)
    batch = batch_of(1)
    batch.add_node(StoredNode(address="q", kind="queue"))
    batch.mark_delivered("q", 10)
    await store.commit(batch)
    asking = asyncio.create_task(store._run(lambda core: core.exec_driver_sql(SLOW).scalar()))
    await until(store._turn.locked)
    await store.close()
    await asking
    again = await opened(url)
    assert await again.delivered() == {}
    await again.close()


async def test_migrations_make_the_tables(server: Server, database: str) -> None:
    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), METADATA))

    store = await opened(server.url(database))
    assert await store._ready().run(differences) == []
    await store.close()


async def test_a_second_broker_is_refused_and_the_first_unharmed(
    server: Server, database: str
) -> None:
    store = await opened(server.url(database))
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(StoreError, match="in use by jms-broker") as refused:
        await opened(server.url(database))
    assert loop.time() - began < 5  # two seconds on an idle machine
    assert postgres.PASSWORD not in f"{refused.value} {store.name}"
    await store.commit(batch_of(1))
    assert await numbers(store) == [1]
    await store.close()


async def test_nobody_there_is_told_at_once(server: Server) -> None:
    with pytest.raises(StoreError, match="createdb"):
        await opened(server.url("nowhere"))


async def test_a_batch_whose_answer_was_lost_is_not_written_again(
    server: Server, database: str, proxy: Proxy
) -> None:
    store = await opened(proxy.url(database))
    await store.commit(batch_of(1))
    await store.commit(batch_of(2))  # this prepares the statement
    proxy.lose_answers = True
    committing = asyncio.create_task(store.commit(batch_of(3)))
    await proxy.lost.wait()
    assert await held(server, database) == [1, 2, 3]
    assert not committing.done()
    proxy.cut()
    await committing
    await store.commit(batch_of(4))
    assert await held(server, database) == [1, 2, 3, 4]
    await store.close()


async def test_a_batch_that_never_arrived_is_written_again(
    server: Server, database: str, proxy: Proxy
) -> None:
    store = await opened(proxy.url(database))
    committing = await committing_in_vain(store, proxy)
    assert await held(server, database) == [1]
    proxy.cut()
    await committing
    assert await held(server, database) == [1, 2]
    await store.close()


async def test_a_link_that_only_swallows_is_given_up(
    server: Server, database: str, proxy: Proxy
) -> None:
    """The previous session still holds the lock on the server: the next session ends it."""
    store = await opened(proxy.url(database), grace_ms=1500)
    committing = await committing_in_vain(store, proxy)
    proxy.lose_requests = False
    await committing
    assert await held(server, database) == [1, 2]
    await store.close()


async def test_a_database_that_stays_away_ends_it(
    server: Server, database: str, proxy: Proxy
) -> None:
    store = await opened(proxy.url(database), grace_ms=500)
    ended = asyncio.get_running_loop().create_future()
    store.when_failed(ended.set_result)
    proxy.refuse()
    proxy.cut()
    failure = await ended
    with pytest.raises(StoreError) as failed:
        await store.commit(batch_of(1))
    assert failed.value is failure
    assert postgres.PASSWORD not in str(failed.value)
    await store.close()
    assert await held(server, database) == []


async def test_a_store_is_closed_though_its_database_is_away(
    server: Server, database: str, proxy: Proxy
) -> None:
    store = await opened(proxy.url(database))
    await store.commit(batch_of(1))
    proxy.lose_requests = True
    committing = asyncio.create_task(store.commit(batch_of(2)))
    await proxy.lost.wait()
    await store.close()
    with pytest.raises(StoreError):
        await committing
    assert await held(server, database) == [1]


async def test_who_was_away_too_long_does_not_come_back(
    server: Server, database: str, proxy: Proxy
) -> None:
    store = await opened(proxy.url(database))
    ended = asyncio.get_running_loop().create_future()
    store.when_failed(ended.set_result)
    port = proxy.port
    proxy.refuse()
    proxy.cut()
    other = await opened(server.url(database))
    await other.commit(batch_of(1))
    await proxy.listen(port)
    assert "taken over" in str(await ended)
    with pytest.raises(StoreError, match="taken over"):
        await store.commit(batch_of(2))
    assert await held(server, database) == [1]
    await other.close()
    await store.close()


async def test_a_store_without_patience_works_while_its_database_answers(
    server: Server, database: str
) -> None:
    store = await opened(server.url(database), grace_ms=0)
    await store.commit(batch_of(1))
    assert await numbers(store) == [1]
    await end_sessions(server, database)
    await store.commit(batch_of(2))
    await store.close()
    assert await held(server, database) == [1, 2]


async def test_a_read_whose_answer_never_comes_is_given_up(database: str, proxy: Proxy) -> None:
    store = await opened(proxy.url(database), grace_ms=1000)
    await store.commit(batch_of(1))
    proxy.hold(b"jms-broker")
    proxy.held.clear()
    async with asyncio.timeout(30):
        assert await numbers(store) == [1]
    await store.close()


UNLOCK = "SELECT pg_advisory_unlock_all()"
DISCARD = "DISCARD ALL"

LOCK_LOST = [
    # a statement that ends the lock but not the session; numbers of the next batch
    pytest.param(UNLOCK, [3], id="unlocked, one message"),
    pytest.param(UNLOCK, range(3, 600), id="unlocked, many messages"),
    pytest.param(DISCARD, [3], id="discarded, one message"),
    pytest.param(DISCARD, range(3, 600), id="discarded, many messages"),
]


async def superseded(server: Server, database: str, loss: str) -> PostgresStore:
    """Return a store that lost its lock by `loss`, and behind which another has opened."""
    store = await opened(server.url(database))
    await store.commit(batch_of(1))
    await store._ready().raw.execute(loss)
    other = await opened(server.url(database))
    await other.commit(batch_of(2))
    return store


@pytest.mark.parametrize(("loss", "batch"), LOCK_LOST)
async def test_a_broker_whose_epoch_is_over_commits_nothing(
    server: Server, database: str, loss: str, batch: list[int]
) -> None:
    store = await superseded(server, database, loss)
    for _ in range(2):
        with pytest.raises(StoreError, match="taken over by another broker"):
            await store.commit(batch_of(*batch))
    assert await held(server, database) == [1, 2]
    await store.close()
    await end_sessions(server, database)


async def test_the_orderly_end_of_an_epoch_that_is_over_changes_nothing(
    server: Server, database: str
) -> None:
    """Else the next start would forget what the other broker has delivered."""
    store = await superseded(server, database, UNLOCK)
    with pytest.raises(StoreError, match="taken over by another broker"):
        await store.close()
    marks = await server.sql("SELECT value FROM mark WHERE name = 'in use'", database=database)
    assert [row["value"] for row in marks] == [1]
    await end_sessions(server, database)


async def test_no_contents_are_swept_in_an_epoch_that_is_over(
    server: Server, database: str
) -> None:
    store = await superseded(server, database, UNLOCK)
    store._index.chunks.uses.garbage.append(7)
    with pytest.raises(StoreError, match="taken over by another broker"):
        await store.sweep()
    await end_sessions(server, database)


@pytest.mark.parametrize("loss", [UNLOCK, DISCARD])
async def test_a_lock_that_is_lost_is_taken_again_if_it_is_free(
    server: Server, database: str, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "ASK_EVERY_S", 0.05)
    store = await opened(server.url(database))
    await store.commit(batch_of(1))
    first = store._ready()
    await first.raw.execute(loss)
    await until(lambda: store._ready() is not first)
    await store.commit(batch_of(2))
    assert await store._ready().leads()
    assert await held(server, database) == [1, 2]
    await store.close()


async def test_a_broker_that_only_asks_notices_that_its_epoch_is_over(
    server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "ASK_EVERY_S", 0.2)
    store = await opened(server.url(database))
    ended = asyncio.get_running_loop().create_future()
    store.when_failed(ended.set_result)
    await store._ready().raw.execute(UNLOCK)
    other = await opened(server.url(database))
    assert "taken over by another broker" in str(await ended)
    await other.close()
    await store.close()


async def test_a_database_that_has_forgotten_commits_is_noticed(
    server: Server, database: str
) -> None:
    store = await opened(server.url(database))
    await store.commit(batch_of(1))
    await server.sql("UPDATE mark SET value = value - 2 WHERE name = 'commits'", database=database)
    await end_sessions(server, database)
    with pytest.raises(StoreError, match="commits are missing"):
        await store.commit(batch_of(2))
    await store.close()


async def test_after_an_error_that_does_not_pass_nothing_more_is_committed(
    server: Server, database: str
) -> None:
    store = await opened(server.url(database))
    await store.commit(batch_of(1))
    for _ in range(2):
        with pytest.raises(StoreError, match="duplicate key"):
            await store.commit(batch_of(1))
    await store.close()
    again = await opened(server.url(database))
    assert await numbers(again) == [1]
    await again.close()


async def test_a_segment_goes_with_its_last_message(server: Server, database: str) -> None:
    store = await opened(server.url(database))
    await store.commit(batch_of(1))
    await store.commit(batch_of(2, 3))
    await store.commit(batch_of(4, 5, 6))
    bodies = await server.sql("SELECT * FROM body ORDER BY number", database=database)
    assert [tuple(row) for row in bodies] == [(1, b"x", None), (2, b"x", None), (4, b"x", None)]
    batch = Batch()
    for number in (1, 2, 3, 4):
        batch.remove(number)
    await store.commit(batch)
    bodies = await server.sql("SELECT number FROM body", database=database)
    assert [row["number"] for row in bodies] == [4]
    assert await held(server, database) == [5, 6]
    await store.close()


async def test_many_messages_here_and_there_are_found(server: Server, database: str) -> None:
    """One statement loads all their segments."""
    store = await opened(server.url(database))
    for first in range(1, 600, 30):
        await store.commit(batch_of(*range(first, first + 30)))
    await store.close()
    again = await opened(server.url(database))
    scattered = list(range(1, 600, 40))
    assert [int(message.number) for message in await again.load(scattered)] == scattered
    batch = Batch()
    for number in scattered:
        batch.remove(number)
    await again.commit(batch)
    assert set(range(1, 601)) - set(await held(server, database)) == set(scattered)
    await again.close()


async def test_many_messages_are_copied_and_once_only(database: str, proxy: Proxy) -> None:
    store = await opened(proxy.url(database))
    many = range(1, 600)
    await store.commit(batch_of(1))
    proxy.lose_requests = True
    committing = asyncio.create_task(store.commit(batch_of(*many[1:])))
    await proxy.lost.wait()
    proxy.cut()
    await committing
    assert await numbers(store) == list(many)
    await store.close()


async def test_a_dead_link_is_noticed_though_nothing_is_to_be_written(
    database: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "ASK_EVERY_S", 0.05)
    store = await opened(proxy.url(database))
    await proxy.connected.get()
    proxy.lose_requests = True
    await proxy.lost.wait()
    proxy.lose_requests = False
    await proxy.connected.get()
    await store.commit(batch_of(1))
    await store.close()


async def test_a_window_of_messages_that_lie_apart_is_read(server: Server, database: str) -> None:
    store = await opened(server.url(database))
    await store.commit(batch_of(*range(1, 30)))
    batch = Batch()
    batch.remove(9)
    await store.commit(batch)
    loaded = await store.load([1, 3, 9, 10, 20, 99])
    assert [int(message.number) for message in loaded] == [1, 3, 10, 20]
    await store.close()


async def test_a_database_that_does_not_answer_is_away(
    database: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "SLOW_S", 0)
    store = await opened(proxy.url(database))
    assert not store.is_away()
    proxy.lose_requests = True
    committing = asyncio.create_task(store.commit(batch_of(1)))
    await proxy.lost.wait()
    assert store.is_away()
    proxy.cut()
    await committing
    assert not store.is_away()
    await store.close()
