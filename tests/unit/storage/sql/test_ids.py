"""Remembered ids in SQL: over a restart, page by page, and of nodes that were lost."""

from pathlib import Path

from sqlalchemy import text

from broker.restore import restore
from storage.batch import Batch
from storage.records import StoredId, StoredNode
from storage.sql import ids
from storage.sql.schema import bring_up_to_date
from storage.sql.sqlite.sqlite import prepare
from storage.sql.sqlite.store import SqliteStore
from tests.support.migrating import schema_0001
from tests.support.stored_files import connected
from tests.unit.routing.queues.test_duplicates import detecting, send


def id_of(address: str, number: int) -> StoredId:
    return StoredId(number=number, kind="queue", address=address, digest=b"d" * 16, at_ms=number)


async def test_ids_are_there_after_a_restart(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    batch = Batch()
    batch.add_node(StoredNode(address="a", kind="queue"))
    count = ids.PART + 5
    for number in range(1, count + 1):
        batch.remember(id_of("a", number))
    await store.commit(batch)
    await store.close()
    again = SqliteStore(tmp_path / "store.db")
    await again.open()
    first = await again.ids(0)
    assert len(first) == ids.PART
    rest = await again.ids(int(first[-1].number))
    assert [int(each.number) for each in first + rest] == list(range(1, count + 1))
    assert await again.ids(int(rest[-1].number)) == []
    await again.close()


async def test_the_numbers_of_ids_without_a_node_are_not_given_again(tmp_path: Path) -> None:
    """A salvage of an older release left such ids: the next id ended the broker, at every start."""
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    batch = Batch()
    for number in (1, 2):
        batch.remember(id_of("lost", number))
    await store.commit(batch)
    routing = detecting()
    await restore(store, routing.router, routing.batch)
    await store.commit(routing.batch)
    assert await store.ids(0) == []
    routing.batch = Batch()
    send(routing, "a", durable=True)
    await store.commit(routing.batch)
    assert [int(each.number) for each in await store.ids(0)] == [3]
    await store.close()


def test_a_store_of_the_first_schema_gets_the_table(tmp_path: Path) -> None:
    with connected(tmp_path / "store.db") as connection:
        prepare(connection)
        schema_0001(connection)
        connection.execute(text("INSERT INTO node (kind, address) VALUES ('queue', 'a')"))
        bring_up_to_date(connection)
        connection.execute(
            text("INSERT INTO remembered_id VALUES (1, 'queue', 'a', :d, 5)"), {"d": b"d" * 16}
        )
        (kept,) = ids.load(connection, 0)
        assert (kept.number, kept.address, kept.digest, kept.at_ms) == (1, "a", b"d" * 16, 5)
