"""`jms-broker lease …` as typed, against a running broker; proton reads the slices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from proton import Described, Message, symbol
from proton.reactor import Copy, Filter
from proton.utils import BlockingConnection, BlockingReceiver

from broker.cli.requests import RefusalError, managed
from tests.interop.broker_process import BrokerProcess
from tests.interop.typed import Client

pytestmark = pytest.mark.requirement("PIP-06", "PIP-11")


def read_slice(url: str, address: str, **wanted: object) -> list[tuple[object, int]]:
    """Return the body and the position of all messages of a slice, read by a drain."""
    connection = BlockingConnection(url)
    value = Described(symbol("jms-broker:lease-slice:map"), wanted)  # type: ignore[arg-type]
    receiver: BlockingReceiver = connection.create_receiver(
        address, credit=0, options=[Copy(), Filter({symbol("lease-slice"): value})]
    )
    receiver.link.drain(100)
    connection.wait(lambda: receiver.link.credit == 0)
    found: list[tuple[object, int]] = []
    fetched = receiver.fetcher
    assert fetched is not None
    while fetched.has_message:
        message = fetched.pop()
        assert message.instructions is not None
        assert message.instructions["x-opt-enqueued-time"] > 1_700_000_000_000
        found.append((message.body, message.instructions["x-opt-position"]))
    connection.close()
    return found


def test_a_lease_from_its_beginning_to_the_end(own_broker: BrokerProcess) -> None:
    url = own_broker.url
    client = Client(url)
    connection = BlockingConnection(url)
    sender = connection.create_sender("q")
    for number in range(5):
        sender.send(Message(body=f"m{number}", durable=True))
    connection.close()
    with managed(url, 10) as broker:
        fencing_token = broker.ask("OPEN", "lease", "spark", address="q")["fencing_token"]
        asked = {"fencing_token": fencing_token, "batch": 1, "max_messages": 4, "slices": 2}
        told = broker.ask("ACQUIRE", "lease", "spark", more=asked)
        assert (told["messages"], told["slices"]) == (4, [2, 2])
    wanted = {"lease": "spark", "fencing_token": fencing_token, "batch": 1}
    assert read_slice(url, "q", **wanted, slice=0) == [("m0", 4), ("m1", 14)]
    assert read_slice(url, "q", **wanted, slice=1) == [("m2", 24), ("m3", 34)]
    assert client.prints("browse", "q").split() == [b"m4"]
    (record,) = _records(client, "list")
    assert (record["name"], record["address"], record["messages"]) == ("spark", "q", 4)
    assert b"batch          1\n" in client.prints("lease", "show", "spark")
    told_line = client.prints("lease", "release", "spark")
    assert told_line == b"released spark: 4 messages wait again\n"
    assert client.prints("browse", "q").split() == [b"m0", b"m1", b"m2", b"m3", b"m4"]
    assert _records(client, "list") == []
    with managed(url, 10) as broker, pytest.raises(RefusalError) as gone:
        broker.ask("RENEW", "lease", "spark", fencing_token=fencing_token)
    assert gone.value.status == 410


LARGE = 3 * 2**20


@pytest.mark.requirement("PIP-10")
def test_a_large_message_is_leased_over_a_restart(tmp_path: Path) -> None:
    settings = 'store = "sqlite:///data/store.db"\n'
    broker = BrokerProcess(tmp_path, settings=settings)
    connection = BlockingConnection(broker.url)
    sender = connection.create_sender("q")
    for body in ("small", "x" * LARGE, "last"):
        sender.send(Message(body=body, durable=False))
    connection.close()
    with managed(broker.url, 10) as asking:
        fencing_token = asking.ask("OPEN", "lease", "spark", address="q")["fencing_token"]
        asked = {"fencing_token": fencing_token, "batch": 1, "slices": 1}
        assert asking.ask("ACQUIRE", "lease", "spark", more=asked)["messages"] == 3
    wanted = {"lease": "spark", "fencing_token": fencing_token, "batch": 1, "slice": 0}
    before = read_slice(broker.url, "q", **wanted)
    assert before == [("small", 4), ("x" * LARGE, 14), ("last", 24)]
    assert broker.stop() == 0
    again = BrokerProcess(tmp_path, settings=settings)
    assert read_slice(again.url, "q", **wanted) == before
    with managed(again.url, 10) as asking:
        asking.ask("SETTLE", "lease", "spark", fencing_token=fencing_token, batch=1)
        assert asking.ask("READ", "queue", "q")["messages"] == 0
    assert again.stop() == 0


@pytest.mark.parametrize("command", ["show", "release"])
def test_a_lease_that_is_not_there(own_broker: BrokerProcess, command: str) -> None:
    ended = Client(own_broker.url).run("lease", command, "x")
    assert ended.returncode == 3
    assert b"gone: there is no lease x" in ended.stderr


def _records(client: Client, *arguments: str) -> list[dict[str, object]]:
    lines = client.prints("lease", *arguments, "--json").splitlines()
    return [json.loads(line) for line in lines]
