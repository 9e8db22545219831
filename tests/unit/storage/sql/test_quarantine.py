"""Damaged rows: found when they are loaded, set aside once, and everything else is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.api import StoreError
from storage.batch import Batch
from storage.records import StoredNode, StoredSubscription
from storage.sql.contents import PART
from storage.sql.offline import writing
from storage.sql.quarantine import drop, listed, restore
from storage.sql.store import SqliteStore
from tests.support.stored import stored_messages
from tests.support.stored_files import change, filled, rows

DAMAGES = [
    pytest.param("UPDATE message SET encoded=x'00' WHERE number=4", [4], id="other bytes"),
    pytest.param("UPDATE message SET encoded=NULL WHERE number=4", [4], id="no bytes"),
    pytest.param("UPDATE message SET encoded=12345678901 WHERE number=4", [4], id="a number"),
    pytest.param(
        "UPDATE message SET encoded=CAST(x'FFFE' AS TEXT) WHERE number=4", [4], id="broken text"
    ),
    pytest.param("UPDATE message SET checksum=checksum+1 WHERE number=5", [5], id="checksum"),
    pytest.param("UPDATE message SET number=40 WHERE number=4", [4], id="the bytes of another"),
    pytest.param("UPDATE message SET position=x'01' WHERE number=4", [4], id="a place of bytes"),
    pytest.param("UPDATE message SET priority=99 WHERE number=6", [6], id="no such priority"),
    pytest.param("UPDATE message SET ttl_ms=-2 WHERE number=6", [6], id="a time that cannot be"),
    pytest.param("UPDATE body SET encoded=x'00'", [1, 2, 3], id="a body of three"),
    pytest.param("UPDATE message SET body=77 WHERE number=2", [2], id="a body that is not there"),
]


@pytest.mark.parametrize(("damage", "lost"), DAMAGES)
async def test_what_is_damaged_is_set_aside(tmp_path: Path, damage: str, lost: list[int]) -> None:
    database = tmp_path / "store.db"
    await filled(database, 6)
    change(database, damage)
    for _ in range(2):  # found once, and not again
        store = SqliteStore(database)
        await store.open()
        served = [int(message.number) for message in await stored_messages(store, "q")]
        assert served == [number for number in range(1, 7) if number not in lost]
        assert store.quarantined == len(lost)
        await store.close()
    named = rows(database, "SELECT found_ms > 1600000000000, reason FROM quarantine")
    assert len(named) == len(lost)
    assert all(recent and reason for recent, reason in named)


async def test_more_damage_than_one_part_of_a_load_hides_nothing(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 2 * PART + 5)
    change(database, f"UPDATE message SET checksum=0 WHERE number <= {2 * PART + 1}")
    store = SqliteStore(database)
    await store.open()
    assert [int(message.number) for message in await stored_messages(store, "q")] == [
        2 * PART + number for number in (2, 3, 4, 5)
    ]
    assert store.quarantined == 2 * PART + 1
    await store.close()


async def test_what_is_set_aside_goes_with_its_queue(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 4)
    change(database, "UPDATE message SET checksum=0 WHERE number=4")
    store = SqliteStore(database)
    await store.open()
    await stored_messages(store, "q")
    batch = Batch()
    batch.remove_node(StoredNode(address="q", kind="queue"))
    await store.commit(batch)
    await store.close()
    again = SqliteStore(database)
    await again.open()
    assert again.quarantined == 0
    await again.close()


async def test_filters_that_cannot_be_read_stop_the_start(tmp_path: Path) -> None:
    """Without its filter a subscription would get what it never asked for."""
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    batch.add_subscription(
        StoredSubscription(
            queue="$subscription/1",
            container_id=None,
            name="orders",
            is_shared=True,
            address="orders.*",
            filters=[("selector", b"x")],
            excluded_publisher="",
            durability=2,
            expiry_policy="never",
            timeout_s=0,
        )
    )
    await store.commit(batch)
    await store.close()
    change(database, "UPDATE subscription SET filters=x'FF'")
    again = SqliteStore(database)
    await again.open()
    with pytest.raises(StoreError, match=r"filters of the subscription .*jms-broker store salvage"):
        await again.subscriptions()
    await again.close()


async def set_aside(database: Path) -> None:
    """Message 2 without its body, 4 and 5 with other bytes than were stored."""
    await filled(database, 6)
    change(
        database,
        "UPDATE message SET body=77 WHERE number=2",
        "UPDATE message SET encoded=x'0011' WHERE number IN (4, 5)",
    )
    store = SqliteStore(database)
    await store.open()
    await stored_messages(store, "q")
    await store.close()


async def test_an_operator_sees_what_is_set_aside(tmp_path: Path) -> None:
    await set_aside(tmp_path / "store.db")
    with writing(tmp_path / "store.db") as connection:
        found = listed(connection, -1, 2)
        assert [(each.number, each.queue, each.size) for each in found] == [
            (2, "q", 0),
            (4, "q", 2),
        ]
        assert [each.number for each in listed(connection, 4, 2)] == [5]


async def test_an_operator_restores_and_drops(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await set_aside(database)
    with writing(database) as connection:
        assert restore(connection, 2) == "has no bytes"
        assert restore(connection, 4) == ""
        assert restore(connection, 4) == "is not set aside"
        assert drop(connection, 5) == ""
        assert drop(connection, 5) == "is not set aside"
    store = SqliteStore(database)
    await store.open()
    served = {int(each.number): each.encoded for each in await stored_messages(store, "q")}
    assert sorted(served) == [1, 3, 4, 6]
    assert served[4] == b"\x00\x11"
    assert store.quarantined == 1
    await store.close()


async def test_a_number_that_cannot_be_is_not_restored(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await set_aside(database)
    change(database, "UPDATE message SET priority=99 WHERE number=4")
    with writing(database) as connection:
        assert restore(connection, 4) == "a number of its row cannot be"
        assert restore(connection, 40) == "is not set aside"
    change(database, "DELETE FROM message WHERE number=5")
    with writing(database) as connection:
        assert restore(connection, 5) == "has no row any more"
        assert len(listed(connection, -1, 10)) == 3
