"""Delivered marks of a SQLite store after a kill, and after a stop."""

from pathlib import Path

import pytest

from storage.api import StoreError
from storage.batch import Batch
from storage.records import StoredNode
from storage.sql.schema import HEAD
from storage.sql.sqlite.store import SqliteStore
from tests.support.stored_files import change

pytestmark = pytest.mark.requirement("RCV-08")


def copy_of(folder: Path, name: str) -> Path:
    """Copy the store in `folder` as a kill would leave it now; return the path of the copy."""
    copied = folder / name
    copied.mkdir()
    for file in (folder / "data").iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    return copied / "store.db"


async def told(database: Path) -> dict[str, int]:
    """Return the delivered marks that the next broker loads."""
    store = SqliteStore(database)
    await store.open()
    try:
        return await store.delivered()
    finally:
        await store.close()


async def test_positions_outlive_a_kill_and_no_stop(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data" / "store.db")
    await store.open()
    for position in (9, 19):
        batch = Batch()
        batch.add_node(StoredNode(address="q", kind="queue"))
        batch.mark_delivered("q", position)
        await store.commit(batch)
    killed = copy_of(tmp_path, "killed")
    await store.close()
    assert await told(killed) == {"q": 19}
    assert await told(killed) == {"q": 19}, "no broker has delivered these messages since"
    assert await told(tmp_path / "data" / "store.db") == {}, "they are counted"


async def test_what_was_delivered_before_a_kill_is_in_doubt_after_a_stop(tmp_path: Path) -> None:
    """A broker that stops has counted what it has delivered itself, and nothing else."""
    store = SqliteStore(tmp_path / "data" / "store.db")
    await store.open()
    for queue, position in (("q", 19), ("gone", 9)):
        batch = Batch()
        batch.add_node(StoredNode(address=queue, kind="queue"))
        batch.mark_delivered(queue, position)
        await store.commit(batch)
    killed = copy_of(tmp_path, "killed")
    await store.close()
    again = SqliteStore(killed)
    await again.open()
    batch = Batch()
    batch.mark_delivered("q", 100_019)
    batch.remove_node(StoredNode(address="gone", kind="queue"))
    batch.add_node(StoredNode(address="r", kind="queue"))
    batch.mark_delivered("r", 9)
    await again.commit(batch)
    await again.close()
    for _ in range(2):
        assert await told(killed) == {"q": 19}


async def test_positions_that_an_older_broker_left_at_its_stop_are_counted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    batch = Batch()
    batch.add_node(StoredNode(address="q", kind="queue"))
    await store.commit(batch)
    await store.close()
    change(
        tmp_path / "store.db",
        "INSERT INTO delivered SELECT id, 19 FROM queue",
        "UPDATE mark SET value = 0 WHERE name = 'in use'",
    )
    assert await told(tmp_path / "store.db") == {}


async def test_a_second_kill_forgets_nothing(tmp_path: Path) -> None:
    """Deliveries of the first broker stay marked, even if the second never got to them."""
    first = SqliteStore(tmp_path / "data" / "store.db")
    await first.open()
    batch = Batch()
    batch.add_node(StoredNode(address="q", kind="queue"))
    batch.mark_delivered("q", 19)
    await first.commit(batch)
    second = SqliteStore(copy_of(tmp_path, "once"))
    await second.open()
    twice = tmp_path / "twice"
    twice.mkdir()
    for file in (tmp_path / "once").iterdir():
        (twice / file.name).write_bytes(file.read_bytes())
    assert await told(twice / "store.db") == {"q": 19}
    await second.close()
    await first.close()


async def test_those_of_queues_that_have_gone_are_forgotten(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data" / "store.db")
    await store.open()
    for step in ("come", "go"):
        batch = Batch()
        if step == "come":
            batch.add_node(StoredNode(address="q", kind="queue"))
            batch.mark_delivered("q", 19)
        else:
            batch.remove_node(StoredNode(address="q", kind="queue"))
        await store.commit(batch)
    killed = copy_of(tmp_path, "killed")
    await store.close()
    assert await told(killed) == {}


async def test_a_broker_that_refuses_the_store_forgets_nothing(tmp_path: Path) -> None:
    """An older broker that was started by mistake closes the store, which was killed before."""
    store = SqliteStore(tmp_path / "data" / "store.db")
    await store.open()
    batch = Batch()
    batch.add_node(StoredNode(address="q", kind="queue"))
    batch.mark_delivered("q", 19)
    await store.commit(batch)
    killed = copy_of(tmp_path, "killed")
    await store.close()
    change(killed, "UPDATE alembic_version SET version_num = '9999'")
    older = SqliteStore(killed)
    with pytest.raises(StoreError, match="newer jms-broker"):
        await older.open()
    await older.close()
    change(killed, f"UPDATE alembic_version SET version_num = '{HEAD}'")
    assert await told(killed) == {"q": 19}
