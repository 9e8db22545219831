"""Salvage: everything that can be read from a damaged file is in the new store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from storage.api import StoreError
from storage.batch import Batch
from storage.contents import CHUNKS_MAX
from storage.records import StoredId, StoredMessage, StoredNode
from storage.sql.schema import HEAD
from storage.sql.segments.segment import MESSAGES_MAX
from storage.sql.sqlite.store import SqliteStore
from storage.sql.tools.salvage import ROWID_MAX, TOKENS_SPARED, Salvaged, salvage
from storage.stages import STAGED
from tests.contract.test_leases import lease
from tests.contract.test_stages import stage
from tests.contract.test_store import stored
from tests.support.stored import stored_messages
from tests.support.stored_files import (
    PAGE,
    change,
    filled,
    flip,
    garble_schema,
    old_store,
    rows,
    spoil,
)

SIZE = 700
"""Size of a message in bytes, such that five fit on a page."""


def saved(folder: Path) -> Salvaged:
    return salvage(folder / "store.db", folder / "new.db", lambda _: None)


async def served(database: Path, queue: str = "q") -> list[StoredMessage]:
    """Return the messages of a queue as a broker loads them."""
    store = SqliteStore(database)
    await store.open()
    try:
        return await stored_messages(store, queue)
    finally:
        await store.close()


def numbers(messages: list[StoredMessage]) -> list[int]:
    return [int(message.number) for message in messages]


async def test_a_sound_store_is_copied_whole(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 1200)
    before = (tmp_path / "store.db").read_bytes()
    result = saved(tmp_path)
    assert result.is_whole()
    assert result.parts["segment"].saved == result.parts["body"].saved == 19
    assert (tmp_path / "store.db").read_bytes() == before
    old, new = await served(tmp_path / "store.db"), await served(tmp_path / "new.db")
    assert [(m.number, m.position, m.encoded) for m in new] == [
        (m.number, m.position, m.encoded) for m in old
    ]
    store = SqliteStore(tmp_path / "new.db")
    await store.open()
    assert store.first_number > 1200
    assert await store.delivered() == {"q": 12_004}, "consumers may have had any of them since"
    await store.close()


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param([30], id="one near the beginning"),
        pytest.param([600], id="one in the middle"),
        pytest.param([300, 310, 900], id="several, with sound ones between"),
        pytest.param([1200], id="the last page"),
        pytest.param([30, 1200], id="both ends"),
    ],
)
async def test_only_segments_with_a_damaged_page_lose_messages(
    tmp_path: Path, spoilt: list[int]
) -> None:
    database = tmp_path / "store.db"
    await filled(database, 1200, size=SIZE)
    for number in spoilt:
        spoil(database, b"%d xxx" % number)
    result = saved(tmp_path)
    lost = set(range(1, 1201)) - set(numbers(await served(tmp_path / "new.db")))
    assert lost >= set(spoilt)
    assert len(lost) <= len(spoilt) * MESSAGES_MAX
    assert not result.is_whole()


@pytest.mark.parametrize(
    "apart",
    [
        pytest.param(CHUNKS_MAX, id="one chunk of each content"),
        pytest.param(1, id="chunks of one content"),
        pytest.param(2**50, id="far apart"),
    ],
)
async def test_rows_behind_the_numbers_of_messages_are_saved(tmp_path: Path, apart: int) -> None:
    """The end of the table cannot be read: chunks have higher rowids than messages."""
    database = tmp_path / "store.db"
    await filled(database, 5)
    chunks = [CHUNKS_MAX * 100 + apart * place for place in range(60)]
    connection = sqlite3.connect(database)
    with connection:
        connection.executemany(
            "INSERT INTO chunk (number, checksum, data) VALUES (?, 0, ?)",
            [(each, (b"%d chunk " % each).ljust(SIZE, b"x")) for each in chunks],
        )
    connection.close()
    spoil(database, b"%d chunk " % chunks[-1])
    spoil(database, b"%d chunk " % chunks[30])
    result = saved(tmp_path)
    found = [row[0] for row in rows(tmp_path / "new.db", "SELECT number FROM chunk")]
    lost = sorted(set(chunks) - set(found))
    assert {chunks[30], chunks[-1]} <= set(lost)
    assert len(lost) <= 10, "those of two pages"
    gaps = result.parts["chunk"].gaps
    assert gaps[-1][1] == ROWID_MAX
    assert all(any(first <= each <= last for first, last in gaps) for each in lost)
    assert not result.is_whole()


async def test_a_store_that_was_killed_is_read_with_its_log(tmp_path: Path) -> None:
    """The changes of the last commits are only in the log, not in the file."""
    (tmp_path / "running").mkdir()
    store = SqliteStore(tmp_path / "running" / "store.db")
    await store.open()
    await store.close()
    await filled(tmp_path / "running" / "store.db", 5)
    held = sqlite3.connect(tmp_path / "running" / "store.db")
    held.execute("PRAGMA wal_autocheckpoint=0")
    held.execute("UPDATE queue SET name = 'other'")
    held.commit()
    for file in (tmp_path / "running").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    held.close()
    saved(tmp_path)
    assert numbers(await served(tmp_path / "new.db", "other")) == [1, 2, 3, 4, 5]


async def test_damaged_messages_are_kept_for_the_broker_to_quarantine(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 5)
    flip(tmp_path / "store.db", 4)
    result = saved(tmp_path)
    assert (result.damaged, result.is_whole()) == (1, False)
    assert numbers(await served(tmp_path / "new.db")) == [1, 2, 3, 5]


async def test_messages_whose_queue_was_lost_find_another(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 5)
    (root,) = rows(database, "SELECT rootpage FROM sqlite_master WHERE name = 'queue'")
    data = bytearray(database.read_bytes())
    assert isinstance(root[0], int)
    data[(root[0] - 1) * PAGE : root[0] * PAGE] = b"\xee" * PAGE
    database.write_bytes(data)
    result = saved(tmp_path)
    assert result.adopted == 1
    assert numbers(await served(tmp_path / "new.db", "salvaged.1")) == [1, 2, 3, 4, 5]
    assert rows(tmp_path / "new.db", "SELECT address FROM node ORDER BY id") == [
        ("q",),
        ("salvaged.1",),
    ]


@pytest.mark.requirement("PIP-12")
async def test_what_is_staged_stays_so_though_nodes_were_lost(tmp_path: Path) -> None:
    """In a queue of its own a staged message would be visible, whether committed or not."""
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    batch.append(stored(1, queue=STAGED))
    batch.append(stored(2, queue="q"))
    batch.add_node(StoredNode(address="q", kind="queue"))
    batch.stage_changes().add(stage(1))
    await store.commit(batch)
    await store.close()
    (root,) = rows(database, "SELECT rootpage FROM sqlite_master WHERE name = 'node'")
    data = bytearray(database.read_bytes())
    assert isinstance(root[0], int)
    data[(root[0] - 1) * PAGE : root[0] * PAGE] = b"\xee" * PAGE
    database.write_bytes(data)
    assert saved(tmp_path).adopted == 1
    new = tmp_path / "new.db"
    assert numbers(await served(new, STAGED)) == [1]
    assert rows(new, "SELECT number FROM stage") == [(1,)]
    ((address,),) = rows(new, "SELECT address FROM node")
    assert str(address).startswith("salvaged.")


async def test_remembered_ids_of_lost_nodes_are_dropped(tmp_path: Path) -> None:
    """Their numbers would be given again: the next id could then never be stored."""
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    for number, address in enumerate(("there", "lost", "lost"), 1):
        batch.remember(
            StoredId(number=number, kind="queue", address=address, digest=b"d" * 16, at_ms=5)
        )
    batch.add_node(StoredNode(address="there", kind="queue"))
    await store.commit(batch)
    await store.close()
    result = saved(tmp_path)
    assert (result.parts["remembered_id"].saved, result.dropped_ids) == (3, 2)
    assert rows(tmp_path / "new.db", "SELECT number, address FROM remembered_id") == [(1, "there")]


@pytest.mark.parametrize(
    ("lost", "token"),
    [
        pytest.param("", 9, id="the mark is there"),
        pytest.param("DELETE FROM mark", 5 + TOKENS_SPARED, id="the mark is lost"),
        pytest.param("DELETE FROM mark; DELETE FROM lease", TOKENS_SPARED, id="leases, too"),
    ],
)
@pytest.mark.requirement("PIP-10")
async def test_fencing_tokens_are_not_given_again(tmp_path: Path, lost: str, token: int) -> None:
    """Token 9 was given to a lease that has ended."""
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    for name, given in (("a", 5), ("gone", 9)):
        batch = Batch()
        batch.lease_changes().keep(lease(name, fencing_token=given))
        await store.commit(batch)
    batch = Batch()
    batch.lease_changes().end("gone")
    await store.commit(batch)
    await store.close()
    change(database, *filter(None, lost.split(";")))
    saved(tmp_path)
    new = SqliteStore(tmp_path / "new.db")
    await new.open()
    assert (await new.leases()).fencing_token == token
    await new.close()


async def test_rows_that_fit_nowhere_are_counted(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 5)
    writable = "PRAGMA writable_schema=ON"
    lax = "UPDATE sqlite_master SET sql=replace(sql, 'facts BLOB NOT NULL', 'facts BLOB')"
    change(database, writable, lax)
    change(database, "INSERT INTO segment (number, size, facts) VALUES (6, 0, NULL)")
    result = saved(tmp_path)
    assert (result.parts["segment"].refused, result.parts["segment"].saved) == (1, 1)
    assert not result.is_whole()


async def test_a_store_of_an_older_schema(tmp_path: Path) -> None:
    old_store(tmp_path / "store.db")
    saved(tmp_path)
    assert numbers(await served(tmp_path / "new.db")) == [5]
    assert rows(tmp_path / "new.db", "SELECT version_num FROM alembic_version") == [(HEAD,)]


async def test_a_schema_that_cannot_be_read_saves_nothing(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 1)
    garble_schema(tmp_path / "store.db")
    with pytest.raises(StoreError, match=r"nothing of .* can be read: its schema is damaged"):
        saved(tmp_path)


def test_what_is_no_store_saves_nothing(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not a database, but somebody's file" * 200)
    with pytest.raises(StoreError, match=r"nothing of .* can be read: file is not a database"):
        saved(tmp_path)
    (tmp_path / "store.db").write_bytes(b"")
    with pytest.raises(StoreError, match="there are no tables of a store"):
        saved(tmp_path)
    assert not (tmp_path / "new.db").exists()


async def test_nothing_is_overwritten(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 1)
    (tmp_path / "new.db").write_bytes(b"mine")
    with pytest.raises(StoreError, match=r"new\.db is there already"):
        saved(tmp_path)
    with pytest.raises(StoreError, match="there is no store"):
        salvage(tmp_path / "none.db", tmp_path / "other.db", lambda _: None)
