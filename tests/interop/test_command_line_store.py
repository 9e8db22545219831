"""`jms-broker backup`, `store info` and `store quarantined` as typed, against a running broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.typed import Client
from tests.support.stored_files import flip

SETTINGS = 'store = "sqlite:///store.db"\n'


def kept(client: Client, *texts: str) -> None:
    """Send durable messages to the queue `kept`."""
    client.prints("send", "kept", *texts)


def test_a_backup_is_a_store_to_start_on(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    client = Client(broker.url)
    kept(client, "a", "b")
    copy = tmp_path / "copy"
    copy.mkdir()
    printed = client.prints("backup", str(copy / "store.db")).decode()
    size = (copy / "store.db").stat().st_size
    assert printed == f"copied {size} bytes to {copy / 'store.db'}\n"
    again = client.run("backup", str(copy / "store.db"))
    assert again.returncode == 1
    assert b"is there already" in again.stderr
    assert client.run("backup", "relative").returncode == 2
    kept(client, "later")
    assert broker.stop() == 0
    restored = BrokerProcess(copy, settings=SETTINGS)
    assert Client(restored.url).prints("browse", "kept") == b"a\nb\n"
    assert restored.stop() == 0


def test_what_a_running_broker_says_of_its_store(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    kept(Client(broker.url), "a", "b", "c")
    assert broker.stop() == 0
    flip(tmp_path / "store.db", 2)
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    client = Client(broker.url)
    assert client.prints("browse", "kept") == b"a\nc\n"
    told = json.loads(client.prints("store", "info", "--json"))
    assert (told["messages"], told["quarantined"]) == (3, 1)
    (line,) = client.prints("store", "quarantined", "--json").splitlines()
    found = json.loads(line)
    assert (found["number"], found["queue"]) == (2, "kept")
    assert client.prints("store", "quarantined", "--count", "1").decode().count("\n") == 2
    used = client.run("store", "check", str(tmp_path / "store.db"))
    assert used.returncode == 1
    assert b"in use by process" in used.stderr
    assert broker.stop() == 0
    assert "1 stored messages are damaged" in broker.log.read_text()


def test_a_store_that_cannot_be_read_names_what_helps(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not a database, but somebody's file" * 200)
    with pytest.raises(RuntimeError, match="jms-broker store salvage"):
        BrokerProcess(tmp_path, settings=SETTINGS)
