"""`jms-broker bridge …` as typed, against a broker with a bridge to another one."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.typed import Client

SETTINGS = """
[[bridge]]
name = "to-there"
from = "orders"
to = "all-orders"
url = "{url}"
"""

PATIENCE_S = 20


@pytest.mark.requirement("BRG-01")
@pytest.mark.requirement("BRG-07")
def test_a_bridge_is_listed_paused_and_resumed(own_broker: BrokerProcess, tmp_path: Path) -> None:
    folder = tmp_path / "bridged"
    folder.mkdir()
    bridged = BrokerProcess(folder, settings=SETTINGS.format(url=own_broker.url))
    try:
        client = Client(bridged.url)
        assert client.prints("bridge", "pause", "to-there") == b"paused to-there\n"
        _until(client, "paused")
        client.prints("send", "orders", "a book")
        assert client.prints("browse", "orders") == b"a book\n"
        assert client.prints("bridge", "resume", "to-there") == b"resumed to-there\n"
        there = Client(own_broker.url).prints("receive", "all-orders", "--count", "1")
        assert there == b"a book\n"
        _until(client, "running")
        assert b"exactly-once" in client.prints("bridge", "show", "to-there")
    finally:
        bridged.stop()


def _until(client: Client, state: str) -> None:
    found = ""
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        found = json.loads(client.prints("bridge", "list", "--json"))["state"]
        if found == state:
            return
    raise AssertionError(found)
