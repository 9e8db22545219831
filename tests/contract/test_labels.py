"""The contract of stores for a message's attributes besides its bytes.

These are its format, its publisher, and whether it is volatile.
"""

from pathlib import Path

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.records import StoredMessage
from storage.sql.postgresql.store import PostgresStore
from storage.sql.sqlite.store import SqliteStore
from tests.contract.test_store import holding, positions, store
from tests.support import postgres
from tests.support.stored import stored_messages

__all__ = ["store"]


def labelled(number: int, publisher: str, *, volatile: bool = False) -> StoredMessage:
    """Return a message of another format, which cannot be decoded, by `publisher`."""
    return StoredMessage(
        number=number,
        queue="a",
        position=number,
        encoded=b"x",
        priority=4,
        ttl_ms=-1,
        arrived_ms=1_750_000_000_000,
        expires_at_ms=0,
        deliver_at_ms=0,
        delivery_count=0,
        message_format=0x8001_3700,
        opaque=True,
        publisher=publisher,
        volatile=volatile,
    )


async def test_what_a_message_is_besides_its_bytes_outlasts_changes(store: Store) -> None:
    batch = await holding(store)
    for number, publisher in ((1, "ada"), (2, ""), (3, "bob"), (4, "ada")):
        batch.append(labelled(number, publisher))
    batch.count(1, 1)
    await store.commit(batch)
    later = Batch()
    later.count(3, 2)
    later.fall_due(4, 4)
    later.rewrite(4, b"other")
    await store.commit(later)
    found = await stored_messages(store, "a")
    assert [message.publisher for message in found] == ["ada", "", "bob", "ada"]
    assert {(int(each.message_format), each.opaque, each.volatile) for each in found} == {
        (0x8001_3700, True, False)
    }
    assert [message.encoded for message in await store.load([2, 4])] == [b"x", b"other"]
    assert [message.publisher for message in await store.load([2, 4])] == ["", "ada"]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_volatile_messages_are_dropped_when_the_store_is_opened(
    kind: str, tmp_path: Path
) -> None:
    url = ""
    if kind == "postgresql":
        server = postgres.server()
        url = server.url(server.database())

    def again() -> Store:
        return PostgresStore(url) if url else SqliteStore(tmp_path / "store.db")

    store = again()
    await store.open()
    batch = await holding(store)
    for number in (1, 2, 3):
        batch.append(labelled(number, "ada", volatile=number != 2))
    await store.commit(batch)
    assert await positions(store) == [1, 2, 3]
    await store.close()
    for _ in range(2):
        store = again()
        await store.open()
        (left,) = await stored_messages(store, "a")
        assert (left.number, left.publisher, left.volatile) == (2, "ada", False)
        await store.close()
