"""`jms-broker store …`: the output of the commands, and their exit statuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from broker.cli.application import application
from storage.sql.schema import HEAD
from storage.sql.sqlite.store import SqliteStore
from tests.support.stored import stored_messages
from tests.support.stored_files import change, filled, flip, old_store, rows, spoil


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(application, ["store", *map(str, arguments)])


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """Return the path of a store with five messages, of which 4 and 5 are quarantined."""
    await filled(tmp_path / "store.db", 5)
    flip(tmp_path / "store.db", 4, 5)
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await stored_messages(store, "q")
    await store.close()
    return tmp_path / "store.db"


async def test_a_sound_store(database: Path) -> None:
    done = run("check", f"sqlite:///{database}")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].endswith(f"schema {HEAD}")
    assert "message  5" in lines
    assert "quarantined before: 2 messages" in lines
    assert lines[-1] == "sound"


async def test_a_damaged_one(database: Path) -> None:
    flip(database, 1)
    change(database, "INSERT INTO body (number, encoded) VALUES (7, 'x')")
    done = run("check", database)
    assert done.exit_code == 1
    assert "message 1: its bytes are not those that were stored" in done.stdout
    assert "left over, deleted at the next start: 1 bodies" in done.stdout
    assert "damaged: 3 messages, 0 chunks of large ones, 0 complaints of SQLite" in done.stdout
    told = json.loads(run("check", database, "--json").stdout)
    assert (told["sound"], told["damaged"], told["schema"]) == (False, 3, HEAD)


async def test_one_that_cannot_be_read_is_salvaged(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 100, size=700)
    spoil(database, b"50 xxx")
    done = run("check", database)
    assert done.exit_code == 1
    assert "jms-broker store salvage" in done.stdout
    done = run("salvage", database, tmp_path / "new.db")
    assert done.exit_code == 1
    assert "segment  saved 2" in done.stdout
    assert "cannot be read: whatever has a number of " in done.stdout
    assert run("check", tmp_path / "new.db").exit_code == 0
    whole = json.loads(run("salvage", tmp_path / "new.db", tmp_path / "2.db", "--json").stdout)
    assert whole["whole"] is True
    assert whole["parts"]["queue"]["saved"] == 1
    assert whole["dropped_ids"] == 0


async def test_the_end_of_a_table_that_cannot_be_read_is_left_open(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 100, size=700)
    spoil(database, b"65 xxx")
    done = run("salvage", database, tmp_path / "new.db")
    assert re.search(r"body  .* cannot be read: whatever has a number of \d+ or more", done.stdout)


async def test_ids_of_lost_nodes_that_a_salvage_drops_are_counted(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 1)
    change(database, "INSERT INTO remembered_id VALUES (1, 'queue', 'lost', x'00', 5)")
    assert (
        "dropped 1 ids for duplicate detection"
        in run("salvage", database, tmp_path / "new.db").stdout
    )


async def test_what_a_broker_uses_is_refused_in_one_line(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    for command in (["check"], ["migrate"], ["quarantine", "list"], ["quarantine", "drop", "1"]):
        done = run(*command[:2], tmp_path / "store.db", *command[2:])
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert "in use by process" in line
    assert "in use by" in run("salvage", tmp_path / "store.db", tmp_path / "new.db").stderr
    await store.close()


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    for command in (["check"], ["migrate"], ["quarantine", "list"]):
        done = run(*command, tmp_path / "store.db")
        assert (done.exit_code, done.stdout) == (3, "")
        assert done.stderr == f"jms-broker: there is no store {tmp_path / 'store.db'}\n"
    assert list(tmp_path.iterdir()) == []


def test_migrating(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    old_store(database)
    done = run("migrate", database)
    assert (done.exit_code, done.stdout) == (
        0,
        f"{database} had schema 0001, and has {HEAD} now\n",
    )
    assert f"has schema {HEAD}, the newest" in run("migrate", database).stdout
    change(database, "UPDATE alembic_version SET version_num = '9999'")
    done = run("migrate", database)
    assert done.exit_code == 1
    assert "a newer jms-broker made it" in done.stderr


async def test_what_is_quarantined(database: Path) -> None:
    header, first, second = run("quarantine", "list", database).stdout.splitlines()
    assert header.split("\t") == ["number", "queue", "found", "reason", "size"]
    assert first.startswith("4\tq\t20")
    assert second.endswith("\tits bytes are not those that were stored\t20")
    assert (
        json.loads(run("quarantine", "list", database, "--json").stdout.splitlines()[1])["number"]
        == 5
    )


async def test_restoring_and_dropping(database: Path) -> None:
    assert run("quarantine", "restore", database).exit_code == 2
    assert run("quarantine", "drop", database, "4", "--all").exit_code == 2
    done = run("quarantine", "restore", database, "4", "7")
    assert (done.exit_code, done.stdout) == (1, "restored 1\n")
    assert done.stderr == "jms-broker: message 7 is not quarantined\n"
    done = run("quarantine", "drop", database, "--all")
    assert (done.exit_code, done.stdout) == (0, "dropped 1\n")
    assert rows(database, "SELECT count(*) FROM quarantine") == [(0,)]
    assert rows(database, "SELECT length(facts) / 76 FROM segment") == [(4,)]


@pytest.fixture
def shard_of(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the database that of the shard `orders`."""
    settings = database.with_name("broker.toml")
    settings.write_text(
        f'[[shard]]\nname = "orders"\nport = 1\nstore = "sqlite:///{database}"\n'
        f'[[shard]]\nname = "other"\nport = 2\nstore = "sqlite:///{database}.other"\n'
    )
    monkeypatch.setenv("JMS_BROKER_CONFIG", str(settings))


@pytest.mark.usefixtures("shard_of")
async def test_the_store_of_a_shard(database: Path) -> None:
    done = run("quarantine", "restore", "--shard", "orders", "4")
    assert (done.exit_code, done.stdout) == (0, "restored 1\n")
    done = run("quarantine", "drop", "--shard", "orders", "--all")
    assert (done.exit_code, done.stdout) == (0, "dropped 1\n")
    done = run("salvage", "--shard", "orders", database.with_name("new.db"))
    assert done.exit_code == 0
    assert f"everything is in {database.with_name('new.db')}" in done.stdout


WRONG_PLACES = [
    # arguments, what the error says
    pytest.param(("salvage",), "Missing argument", id="nothing to salvage"),
    pytest.param(("salvage", "old.db"), "name one new store", id="no new store"),
    pytest.param(("salvage", "--shard", "orders", "a", "b"), "name one new store", id="two stores"),
    pytest.param(("salvage", "--shard", "none", "new.db"), "orders", id="no such shard"),
    pytest.param(("quarantine", "restore"), "name either a store", id="neither store nor shard"),
    pytest.param(
        ("quarantine", "drop", "--shard", "orders", "store.db", "4"),
        "--shard stands for the store",
        id="a store and a shard",
    ),
    pytest.param(("quarantine", "drop", "store.db", "x"), "'x' is no number", id="no number"),
]


@pytest.mark.usefixtures("shard_of")
@pytest.mark.parametrize(("arguments", "told"), WRONG_PLACES)
def test_a_wrong_place_is_refused(arguments: tuple[str, ...], told: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert told in done.stderr
