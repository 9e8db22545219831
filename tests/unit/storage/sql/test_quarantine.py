"""Damaged rows: found when they are loaded, and quarantined once; all others are served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from storage.api import StoreError
from storage.batch import Batch
from storage.contents import CHUNK_SIZE, CHUNKS_MAX
from storage.records import StoredNode, StoredSubscription
from storage.sql.large_rows import BESIDES, INCOMPLETE
from storage.sql.quarantine import drop, listed, restore
from storage.sql.reading import BODIES_AT_ONCE
from storage.sql.segments.segment import MESSAGES_MAX
from storage.sql.sqlite.store import SqliteStore
from storage.sql.tools.check import check
from storage.sql.tools.offline import writing
from tests.contract.test_contents import append, large, write
from tests.support.stored import stored_messages
from tests.support.stored_files import OFFSET, POSITION, QUEUE, RECORD, change, filled, flip, rows


def sql(statement: str) -> Callable[[Path], None]:
    return lambda database: change(database, statement)


DAMAGES = [
    pytest.param(lambda file: flip(file, 4), [4], id="a byte of it"),
    pytest.param(lambda file: flip(file, 2), [1, 2, 3], id="a byte of three"),
    pytest.param(lambda file: flip(file, 4, record_at=0), [4], id="its number"),
    pytest.param(lambda file: flip(file, 4, record_at=POSITION), [4], id="its place"),
    pytest.param(lambda file: flip(file, 4, record_at=QUEUE), [4], id="its queue"),
    pytest.param(lambda file: flip(file, 6, record_at=OFFSET), [6], id="where its bytes are"),
    pytest.param(lambda file: flip(file, 6, record_at=RECORD - 1), [6], id="its checksum"),
    pytest.param(sql("UPDATE body SET encoded = x''"), [1, 2, 3, 4, 5, 6], id="no bytes"),
    pytest.param(sql("UPDATE body SET labels = x'00'"), [4, 5, 6], id="labels"),
    pytest.param(sql("UPDATE body SET labels = NULL"), [4, 5, 6], id="no labels"),
    pytest.param(sql("UPDATE body SET encoded = 12345678901"), [1, 2, 3, 4, 5, 6], id="a number"),
    pytest.param(sql("DELETE FROM body"), [1, 2, 3, 4, 5, 6], id="no body"),
    pytest.param(
        sql("UPDATE segment SET facts = substr(facts, 1, 400)"), [6], id="a record cut off"
    ),
    pytest.param(sql("UPDATE body SET encoded = substr(encoded, 1, 60)"), [6], id="bytes cut off"),
]


@pytest.mark.parametrize(("damage", "lost"), DAMAGES)
async def test_what_is_damaged_is_quarantined(
    tmp_path: Path, damage: Callable[[Path], None], lost: list[int]
) -> None:
    database = tmp_path / "store.db"
    await filled(database, 6)
    damage(database)
    for _ in range(2):  # the damage is found at the first start only
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
    count = 2 * int(MESSAGES_MAX) * BODIES_AT_ONCE
    await filled(database, count + 5)
    flip(database, *range(1, count + 2))
    store = SqliteStore(database)
    await store.open()
    assert [int(message.number) for message in await stored_messages(store, "q")] == [
        count + number for number in (2, 3, 4, 5)
    ]
    assert store.quarantined == count + 1
    await store.close()


async def test_what_is_quarantined_goes_with_its_queue(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 4)
    flip(database, 4)
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
    """Without its filter a subscription would get messages that it never asked for."""
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


async def quarantined_store(database: Path) -> None:
    """Make a store of six messages; 2 has a damaged record, 4 and 5 have damaged bytes."""
    await filled(database, 6)
    flip(database, 2, record_at=POSITION)
    flip(database, 4, 5)
    store = SqliteStore(database)
    await store.open()
    await stored_messages(store, "q")
    await store.close()


async def test_an_operator_sees_what_is_quarantined(tmp_path: Path) -> None:
    await quarantined_store(tmp_path / "store.db")
    with writing(tmp_path / "store.db") as connection:
        found = listed(connection, -1, 2)
        assert [(each.number, each.queue, each.size) for each in found] == [
            (2, "", 0),
            (4, "q", 20),
        ]
        assert [each.number for each in listed(connection, 4, 2)] == [5]


async def test_an_operator_restores_and_drops(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await quarantined_store(database)
    with writing(database) as connection:
        assert restore(connection, 2) == "its record is not as it was written"
        assert restore(connection, 4) == ""
        assert restore(connection, 4) == "is not quarantined"
        assert restore(connection, 40) == "is not quarantined"
        assert drop(connection, 5) == ""
        assert drop(connection, 5) == "is not quarantined"
    store = SqliteStore(database)
    await store.open()
    served = {int(each.number): each.encoded for each in await stored_messages(store, "q")}
    assert sorted(served) == [1, 3, 4, 6]
    assert served[4] == b"0 xxxxxxxxxxxxxxxxxx"
    assert store.quarantined == 1
    await store.close()


async def test_the_last_message_that_is_dropped_leaves_no_rows(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 4)
    flip(database, 4)
    store = SqliteStore(database)
    await store.open()
    await stored_messages(store, "q")
    batch = Batch()
    for number in (1, 2, 3):
        batch.remove(number)
    await store.commit(batch)
    await store.close()
    with writing(database) as connection:
        assert drop(connection, 4) == ""
    for table in ("segment", "body", "quarantine"):
        assert rows(database, f"SELECT count(*) FROM {table}") == [(0,)]


async def test_what_has_no_bytes_or_no_row_is_not_restored(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await quarantined_store(database)
    change(database, "DELETE FROM body")
    with writing(database) as connection:
        assert restore(connection, 4) == "its bytes are missing"
    change(database, "DELETE FROM segment")
    with writing(database) as connection:
        assert restore(connection, 5) == "has no row any more"
        assert drop(connection, 5) == ""
        assert len(listed(connection, -1, 10)) == 2


@pytest.mark.parametrize(
    ("damage", "why_not"),
    [
        pytest.param(f"UPDATE chunk SET data = zeroblob({CHUNK_SIZE})", "", id="chunks"),
        pytest.param("UPDATE chunk SET checksum = 7", "", id="checksums of chunks"),
        pytest.param("UPDATE large SET beginning = x'00'", "", id="its beginning"),
        pytest.param("UPDATE large SET checksum = 7", "", id="a checksum"),
        pytest.param("UPDATE large SET size = size - 1", INCOMPLETE, id="another size"),
        pytest.param("UPDATE large SET content = 2", INCOMPLETE, id="another content"),
        pytest.param("UPDATE large SET content = -1", BESIDES, id="a content below 0"),
        pytest.param(
            f"DELETE FROM chunk WHERE number = {CHUNKS_MAX}", INCOMPLETE, id="a chunk is lost"
        ),
        pytest.param("UPDATE chunk SET data = 5", INCOMPLETE, id="chunks that are no bytes"),
        pytest.param("DELETE FROM body", "its bytes are missing", id="no bytes before its body"),
    ],
)
@pytest.mark.parametrize("encoded", [b"properties", b""], ids=["", "nothing before its body"])
async def test_a_large_message_is_restored_with_its_body(
    tmp_path: Path, damage: str, why_not: str, *, encoded: bytes
) -> None:
    """Otherwise the next start, or the next delivery, would quarantine it again."""
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    await write(store, 1, 2)
    await append(store, large(1, 1, encoded=encoded))
    batch = Batch()
    batch.content_changes().quarantined.append((1, "chunk 0 is damaged"))
    await store.commit(batch)
    await store.close()
    change(database, damage)
    with writing(database) as connection:
        assert restore(connection, 1) == why_not
        assert len(listed(connection, -1, 10)) == (1 if why_not else 0)
    if why_not:
        return
    again = SqliteStore(database)
    await again.open()
    (message,) = await stored_messages(again, "a")
    assert message.content is not None
    for index in range(2):
        assert len(await again.read_chunk(int(message.content.number), index)) == CHUNK_SIZE
    assert again.quarantined == 0
    await again.close()
    with writing(database) as connection:
        assert check(connection, lambda _: None).is_sound()
