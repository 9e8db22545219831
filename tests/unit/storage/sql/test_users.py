"""Rows of users: what is written, and what damage makes of them."""

from pathlib import Path

from storage.batch import Batch
from storage.sql.sqlite.store import SqliteStore
from storage.sql.users import DELETE_SECRET, DELETE_USER, INSERT_SECRET, INSERT_USER, statements_of
from storage.users import UserChanges
from tests.contract.test_users import PLAIN_USER, USER
from tests.support.stored_files import change


def test_removals_are_written_before_additions() -> None:
    changes = UserChanges()
    changes.remove("eve")
    assert statements_of(changes) == [(DELETE_USER, [("eve",)])]
    changes.put(PLAIN_USER)
    changes.salt_secret = b"key"
    written = statements_of(changes)
    assert [statement for statement, _ in written] == [
        *(DELETE_USER, INSERT_USER, DELETE_SECRET, INSERT_SECRET)
    ]
    assert written[0][1] == [("eve",), ("bob",)]


async def test_a_damaged_list_gives_no_right(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    batch.user_changes().put(USER)
    await store.commit(batch)
    await store.close()
    change(database, """UPDATE user_account SET roles = '["admin"', mechanisms = '"PLAIN"'""")
    store = SqliteStore(database)
    await store.open()
    (damaged,) = (await store.users()).users
    assert (damaged.roles, damaged.mechanisms) == (['["admin"'], ['"PLAIN"'])
    await store.close()
