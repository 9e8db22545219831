"""The rows that a start reads."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from storage.batch import Batch
from storage.records import StoredNode
from storage.sql import contents
from storage.sql.index import NUMBERS_AT_ONCE, QUEUES_AT_ONCE, Index
from storage.sql.schema import bring_up_to_date
from storage.sql.segments.segment import RECORD
from storage.sql.sqlite import sqlite
from storage.sql.statements import Texts
from tests.support.stored_files import connected
from tests.unit.storage.test_batch import stored

QUEUE = StoredNode(address="q", kind="queue")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with connected(tmp_path / "store.db") as opened:
        made = opened.execution_options(isolation_level="AUTOCOMMIT")
        sqlite.prepare(made)
        bring_up_to_date(made)
        yield made


def load(connection: Connection) -> Index:
    return contents.load(connection, Texts(connection.dialect))


def write(connection: Connection, index: Index, batch: Batch) -> None:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    sqlite.write(driver, Texts(connection.dialect), index.apply(batch))


def numbers(connection: Connection, behind: int) -> list[int]:
    """Return the numbers of all stored messages after `behind`."""
    index = load(connection)
    texts = Texts(connection.dialect)
    sound, damaged = contents.messages(connection, texts, index, behind=behind)
    assert damaged == []
    return [int(message.number) for message in sound]


def test_ids_of_queues_are_never_given_again(connection: Connection) -> None:
    batch = Batch()
    batch.add_node(QUEUE)
    batch.append(stored(1))
    write(connection, load(connection), batch)
    gone = Batch()
    gone.remove_node(QUEUE)
    write(connection, load(connection), gone)
    index = load(connection)
    assert (index.queue_ids, index.queues_up_to) == ({}, 1 + QUEUES_AT_ONCE)


def test_ids_continue_behind_those_of_a_broker_that_had_no_mark(connection: Connection) -> None:
    connection.exec_driver_sql("INSERT INTO queue (id, name) VALUES (7, 'q')")
    assert load(connection).queues_up_to == 7


@pytest.mark.parametrize("marked", [-3, 0, 9, 63])
def test_numbers_continue_behind_stored_messages_whatever_the_mark_says(
    connection: Connection, marked: int
) -> None:
    """Lower numbers would hide messages of the segment among whose numbers they are."""
    batch = Batch()
    for number in range(1, 65):
        batch.append(stored(number))
    write(connection, load(connection), batch)
    assert load(connection).numbers_up_to == 64 + NUMBERS_AT_ONCE
    connection.exec_driver_sql("UPDATE mark SET value = ? WHERE name = 'numbers'", (marked,))
    assert load(connection).numbers_up_to == 64 + NUMBERS_AT_ONCE
    assert load(connection).numbers_up_to == 64 + NUMBERS_AT_ONCE, "the mark is right again"


def test_what_belongs_to_no_queue_is_deleted(connection: Connection) -> None:
    batch = Batch()
    for number in (1, 2):  # two messages that share a body
        batch.append(stored(number))
    write(connection, load(connection), batch)
    assert numbers(connection, 0) == [1, 2]
    gone = Batch()
    gone.remove_node(QUEUE)
    write(connection, load(connection), gone)
    load(connection)
    for table in ("segment", "body"):
        assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0


def test_messages_of_removed_queues_are_deleted_with_few_syncs(connection: Connection) -> None:
    """Each statement outside of a transaction is a transaction of its own, with a sync."""
    index = load(connection)
    for number in range(1, 21):
        batch = Batch()
        batch.append(stored(number))
        write(connection, index, batch)
    gone = Batch()
    gone.remove_node(QUEUE)
    write(connection, index, gone)
    assert connection.exec_driver_sql("SELECT count(*) FROM segment").scalar() == 20
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    alone: list[str] = []

    def trace(statement: str) -> None:
        if statement.startswith("DELETE") and not driver.in_transaction:
            alone.append(statement)

    driver.set_trace_callback(trace)
    load(connection)
    driver.set_trace_callback(None)
    assert connection.exec_driver_sql("SELECT count(*) FROM segment").scalar() == 0
    assert not [each for each in alone if "BETWEEN" in each]


def test_messages_come_behind_a_number(connection: Connection) -> None:
    batch = Batch()
    for number in (1, 2, 3):
        batch.append(stored(number))
    write(connection, load(connection), batch)
    assert numbers(connection, 1) == [2, 3]


def test_a_start_looks_for_leftovers_only_where_a_queue_has_gone(connection: Connection) -> None:
    batch = Batch()
    for number, queue in ((1, "q"), (2, "r")):
        batch.append(stored(number, queue))
    write(connection, load(connection), batch)
    connection.exec_driver_sql("UPDATE queue SET id = 99 WHERE name = 'r'")
    load(connection)
    size = "SELECT length(facts) FROM segment"
    assert connection.exec_driver_sql(size).scalar() == 2 * RECORD, "nobody reads all for nothing"
    gone = Batch()
    gone.remove_node(StoredNode(address="s", kind="queue"))
    gone.remove_subscription("r")
    write(connection, load(connection), gone)
    load(connection)
    assert connection.exec_driver_sql(size).scalar() == RECORD
