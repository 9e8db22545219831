"""Large messages in SQL: damage, and the size of a sweep's steps."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from storage.api import ContentError, StoreError
from storage.batch import Batch
from storage.contents import CHUNKS_MAX
from storage.sql.chunks import SWEPT_AT_ONCE
from storage.sql.large_rows import LOST
from storage.sql.quarantine import restore
from storage.sql.sqlite.store import SqliteStore
from storage.sql.tables import CHUNK
from storage.sql.tools.offline import writing
from tests.contract.test_contents import append, chunk, large, let_go, write
from tests.contract.test_store import stored
from tests.support.stored import stored_messages
from tests.support.stored_files import change, connected


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "store.db")
    await opened.open()
    yield opened
    await opened.close()


def chunks(folder: Path) -> int:
    with connected(folder / "store.db") as connection:
        return connection.execute(select(func.count()).select_from(CHUNK)).scalar() or 0


@pytest.mark.parametrize("damaged", ["x'00FF'", "5"])
async def test_a_damaged_chunk_is_not_given_out(
    store: SqliteStore, tmp_path: Path, damaged: str
) -> None:
    await write(store, 1, 3)
    which = CHUNKS_MAX + 1
    change(tmp_path / "store.db", f"UPDATE chunk SET data = {damaged} WHERE number = {which}")
    assert await store.read_chunk(1, 0) == chunk(1, 0)
    with pytest.raises(ContentError, match="chunk 1 of content 1"):
        await store.read_chunk(1, 1)
    assert await store.read_chunk(1, 2) == chunk(1, 2), "the store goes on"


async def test_a_chunk_in_the_place_of_another_is_not_given_out(
    store: SqliteStore, tmp_path: Path
) -> None:
    await write(store, 1, 1)
    with connected(tmp_path / "store.db") as connection:
        connection.execute(update(CHUNK).values(number=CHUNKS_MAX + 5))
    with pytest.raises(ContentError):
        await store.read_chunk(1, 5)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("content = 2", id="another content"),
        pytest.param("content = -128", id="a content below 0"),
        pytest.param(f"content = {2**60}", id="a content beyond all"),
        pytest.param("content = x'01'", id="a content that is no number"),
        pytest.param("size = -1", id="a size below 0"),
        pytest.param("size = 0.5", id="a size that is no whole number"),
        pytest.param("beginning = 7", id="a beginning that is a number"),
        pytest.param("checksum = 0", id="its checksum"),
    ],
)
async def test_a_message_whose_content_is_unclear_is_quarantined(
    tmp_path: Path, damage: str
) -> None:
    """A flipped bit can change a number's sign, or the type of a value."""
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await write(store, 1, 2)
    await append(store, large(1, 1), large(2, 1))
    await store.close()
    change(tmp_path / "store.db", f"UPDATE large SET {damage} WHERE number = 1")
    for _ in range(2):  # at the second start the damage is known
        again = SqliteStore(tmp_path / "store.db")
        await again.open()
        assert again.first_content < 2**47
        assert len((await again.places(0)).numbers) in {1, 2}
        assert [int(each.number) for each in await stored_messages(again, "a")] == [2]
        assert again.quarantined == 1
        assert await again.read_chunk(1, 1) == chunk(1, 1)
        await again.close()


async def test_a_message_without_its_content_is_quarantined(tmp_path: Path) -> None:
    """After a salvage the row may be lost: the message must not be delivered with no body."""
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await write(store, 1, 2)
    await append(store, large(1, 1), stored(2, queue="a"))
    await store.close()
    change(tmp_path / "store.db", "DELETE FROM large")
    for _ in range(2):
        again = SqliteStore(tmp_path / "store.db")
        await again.open()
        assert [int(each.number) for each in await again.load([1, 2])] == [2]
        assert [int(each.number) for each in await stored_messages(again, "a")] == [2]
        assert again.quarantined == 1
        await again.close()
    with writing(tmp_path / "store.db") as connection:
        assert restore(connection, 1) == LOST


async def test_a_message_that_was_found_damaged_is_not_loaded_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await write(store, 1, 1)
    await append(store, large(1, 1), large(2, 1))
    batch = Batch()
    batch.content_changes().quarantined.append((2, "chunk 0 is damaged"))
    await store.commit(batch)
    assert store.quarantined == 1
    assert [int(each.number) for each in await stored_messages(store, "a")] == [1]
    await store.close()
    again = SqliteStore(tmp_path / "store.db")
    await again.open()
    assert again.quarantined == 1
    assert [int(each.number) for each in await stored_messages(again, "a")] == [1]
    await again.close()


async def test_a_sweep_is_done_in_bounded_steps(store: SqliteStore, tmp_path: Path) -> None:
    count = 2 * SWEPT_AT_ONCE + 1
    await write(store, 1, count)
    await write(store, 2, 1)
    await let_go(store, 1)
    left = count + 1
    while await store.sweep():
        assert left - chunks(tmp_path) <= SWEPT_AT_ONCE
        left = chunks(tmp_path)
    assert chunks(tmp_path) == 1


async def test_chunks_of_a_commit_that_fails_are_not_there(
    store: SqliteStore, tmp_path: Path
) -> None:
    await write(store, 1, 1)
    batch = Batch()
    batch.content_changes().write(2, 0, b"x")
    batch.content_changes().write(1, 0, b"twice")
    with pytest.raises(StoreError):
        await store.commit(batch)
    assert chunks(tmp_path) == 1
