"""Backups by management: who may name which file, their progress, and their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.memory import MemoryStore
from storage.sql.sqlite.store import SqliteStore
from tests.support.management import Manager
from tests.support.stored_files import filled, rows
from tests.unit.management.test_stores import Setting

REFUSED = [
    pytest.param("copy.db", 400, "from the root", id="a relative path"),
    pytest.param("/\0", 400, "from the root", id="a NUL"),
    pytest.param("/" + "x" * 300, 400, "name too long", id="a name too long"),
    pytest.param("{folder}/none/copy.db", 404, "no folder", id="no folder"),
    pytest.param("{folder}/there", 409, "is there already", id="a file"),
    pytest.param("{folder}", 409, "is there already", id="a folder"),
]


@pytest.mark.parametrize(("name", "status", "told"), REFUSED)
def test_what_cannot_be_is_refused_at_once(
    tmp_path: Path, name: str, status: int, told: str
) -> None:
    (tmp_path / "there").touch()
    setting = Setting(MemoryStore())
    reply = setting.manager.ask("CREATE", "backup", name.format(folder=tmp_path))
    assert reply.status == status
    assert told in reply.description
    assert setting.beside == []


async def test_a_backup_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 100)
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    setting = Setting(store)
    manager, file = setting.manager, str(tmp_path / "copy.db")
    assert manager.ask("READ", "backup", file).status == 404
    assert manager.query("backup").rows == []
    assert manager.ask("CREATE", "backup", file).status == 202
    assert manager.ask("READ", "backup", file).map["state"] == "running"
    other = manager.ask("CREATE", "backup", str(tmp_path / "other.db"))
    assert (other.status, other.description) == (409, f"a backup to {file} is under way")
    await setting.settle()
    done = manager.ask("READ", "backup", file).map
    assert (done["state"], done["problem"]) == ("done", "")
    assert done["bytes"] == done["total_bytes"] == (tmp_path / "copy.db").stat().st_size
    assert manager.query("backup").rows == [done]
    assert rows(tmp_path / "copy.db", "SELECT sum(length(facts)) / 76 FROM segment") == [(100,)]
    assert manager.ask("CREATE", "backup", str(tmp_path / "other.db")).status == 202
    await setting.settle()
    await store.close()


async def test_one_that_fails_says_why(tmp_path: Path) -> None:
    setting = Setting(MemoryStore())
    file = str(tmp_path / "copy.db")
    setting.manager.ask("CREATE", "backup", file)
    await setting.settle()
    failed = setting.manager.ask("READ", "backup", file).map
    assert failed["state"] == "failed"
    assert failed["problem"] == "the store memory cannot be backed up by the broker"


def test_only_administrators(tmp_path: Path) -> None:
    setting = Setting(MemoryStore())
    reply = Manager(setting.broker, "other", user="mallory").ask(
        "CREATE", "backup", str(tmp_path / "copy.db")
    )
    assert reply.status == 403
