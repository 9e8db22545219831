"""Rows of large messages: which of them are damaged, and which bodies are complete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select

from storage.contents import CHUNK_SIZE, CHUNKS_MAX
from storage.records import StoredContent
from storage.sql.large_rows import CONTENT_MAX, content_of, is_complete, is_number, large_row
from storage.sql.schema import bring_up_to_date
from storage.sql.sqlite import sqlite
from storage.sql.tables import CHUNK, LARGE
from tests.support.stored_files import connected


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with connected(tmp_path / "store.db") as opened:
        made = opened.execution_options(isolation_level="AUTOCOMMIT")
        sqlite.prepare(made)
        bring_up_to_date(made)
        yield made


def put(connection: Connection, message: int, row: tuple[object, ...]) -> None:
    names = [column.name for column in LARGE.columns]
    connection.execute(insert(LARGE).values(dict(zip(names, (message, *row[1:]), strict=True))))


def read(connection: Connection, message: int, *, vouch: bool = False) -> StoredContent | None:
    found = connection.execute(select(LARGE).where(LARGE.c.number == message)).one()
    return content_of(found, vouch=vouch)


def test_a_row_counts_for_its_own_message_only(connection: Connection) -> None:
    row = large_row(5, StoredContent(number=3, size=7, beginning=b"begins"))
    put(connection, 5, row)
    put(connection, 6, row)
    found = read(connection, 5)
    assert found is not None
    assert (found.number, found.size, found.beginning) == (3, 7, b"begins")
    assert read(connection, 6) is None
    assert read(connection, 6, vouch=True) is not None


@pytest.mark.parametrize(
    ("value", "is_one"),
    [(1, True), (CONTENT_MAX, True), (0, False), (-1, False), (CONTENT_MAX + 1, False)],
)
def test_numbers_of_contents(value: int, *, is_one: bool) -> None:
    assert is_number(value) is is_one
    assert not is_number(b"1")


@pytest.mark.parametrize(
    ("sizes", "size", "is_whole"),
    [
        pytest.param([CHUNK_SIZE, 1], CHUNK_SIZE + 1, True, id="two chunks"),
        pytest.param([CHUNK_SIZE], CHUNK_SIZE, True, id="one full chunk"),
        pytest.param([CHUNK_SIZE], CHUNK_SIZE + 1, False, id="the last is missing"),
        pytest.param([1, CHUNK_SIZE], 2 * CHUNK_SIZE, False, id="the first is short"),
        pytest.param([], 1, False, id="none"),
        pytest.param([1], CHUNK_SIZE * CHUNKS_MAX, False, id="a size that no content has"),
    ],
)
def test_bodies_that_are_complete(
    connection: Connection, sizes: list[int], size: int, *, is_whole: bool
) -> None:
    for content in (3, 4):  # chunks of another content do not count
        for index, length in enumerate(sizes if content == 3 else [CHUNK_SIZE]):
            number = content * CHUNKS_MAX + index
            connection.execute(insert(CHUNK).values(number=number, checksum=0, data=bytes(length)))
    content_3 = StoredContent(number=3, size=size, beginning=b"")
    assert is_complete(connection, content_3) is is_whole
