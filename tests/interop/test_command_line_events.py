"""`jms-broker events` as typed, against a running broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.typed import Client

SETTINGS = """\
store = "sqlite:///data/store.db"
event_log = true

[[address]]
pattern = "silent"
event_log = false
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    yield Client(broker.url)
    assert broker.stop() == 0


def events(client: Client, *arguments: str) -> list[dict[str, object]]:
    printed = client.prints("events", *arguments, "--json")
    return [json.loads(line) for line in printed.splitlines()]


def kinds(told: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(each["kind"], each["address"]) for each in told]


def test_what_happened_to_messages(client: Client) -> None:
    client.prints("send", "orders", "a", "b", "c", "d")
    client.prints("send", "silent", "e")
    client.prints("receive", "orders", "--count", "1")
    client.prints("node", "create", "audit")
    record, *_ = [
        json.loads(line)
        for line in client.prints("message", "list", "orders", "--json").splitlines()
    ]
    client.prints("message", "move", "orders", "audit", str(record["identity"]))
    client.prints("node", "purge", "orders")
    told = events(client)
    assert kinds(told) == [
        *[("enqueued", "orders")] * 4,
        *[("delivered", "orders"), ("accepted", "orders")],
        *[("enqueued", "audit"), ("moved", "orders")],
        *[("purged", "orders")] * 2,
    ]
    moved = told[7]
    assert (moved["reason"], str(moved["position"])) == ("to queue audit", record["identity"])
    assert kinds(events(client, "audit")) == [("enqueued", "audit")]
    assert kinds(events(client, "--kind", "moved")) == [("moved", "orders")]
    assert len(events(client, "--count", "3")) == 3
    assert [each["id"] for each in events(client, "--behind", "8")] == [9, 10]
    assert len(events(client, "--since", "1h")) == 10
    assert events(client, "--until", "1h") == []
    lines = client.prints("events", "audit").decode().splitlines()
    assert lines[0].split("\t")[:4] == ["id", "at", "kind", "address"]
    assert lines[1].split("\t")[2:4] == ["enqueued", "audit"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--since", "soon"], b"--since"), (["--kind", "eaten"], b"--kind")],
    ids=["no time", "no kind"],
)
def test_wrong_usage(client: Client, arguments: list[str], told: bytes) -> None:
    done = client.run("events", *arguments)
    assert done.returncode == 2
    assert told in done.stderr
