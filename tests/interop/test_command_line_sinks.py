"""`jms-broker sink …` as typed, against a running broker on which proton has staged messages."""

import json

import pytest
from proton import Message, symbol
from proton.reactor import LinkOption
from proton.utils import BlockingConnection

from tests.interop.broker_process import BrokerProcess
from tests.interop.typed import Client


class Staged(LinkOption):
    """The properties of a link that stages for partition 0 of a batch, as attempt 1."""

    def __init__(self, query: str, batch: int) -> None:
        self.properties = {
            symbol("stage-query"): query,
            symbol("stage-batch"): batch,
            symbol("stage-partition"): 0,
            symbol("stage-attempt"): 1,
        }

    def apply(self, link) -> None:  # type: ignore[no-untyped-def]
        link.properties = self.properties


def stage(url: str, address: str, query: str, *, batch: int, count: int) -> None:
    connection = BlockingConnection(url)
    sender = connection.create_sender(address, options=Staged(query, batch))
    assert sender.link.remote_properties["stage-query"] == query
    for number in range(count):
        sender.send(Message(body=f"{batch}.{number}", durable=True))
    connection.close()


def commit(url: str, query: str, batch: int, count: int) -> object:
    from broker.cli.requests import managed

    with managed(url, 10) as broker:
        tasks = {"batch": batch, "partitions": [0], "attempts": [1], "counts": [count]}
        return broker.ask("COMMIT", "sink", query, more=tasks)


@pytest.mark.requirement("PIP-12", "PIP-13", "PIP-14")
def test_a_sink_from_staging_to_the_end(own_broker: BrokerProcess) -> None:
    url = own_broker.url
    client = Client(url)
    stage(url, "q", "orders", batch=0, count=3)
    (record,) = _records(client, "sink", "list")
    assert (record["name"], record["batch"], record["staged"]) == ("orders", -1, 3)
    assert client.prints("browse", "q") == b""
    assert commit(url, "orders", 0, 3) == {"committed": True, "messages": 3}
    assert commit(url, "orders", 0, 3) == {"committed": False, "messages": 0}
    assert client.prints("browse", "q").split() == [b"0.0", b"0.1", b"0.2"]
    stage(url, "q", "orders", batch=1, count=2)
    assert b"staged           2\n" in client.prints("sink", "show", "orders")
    assert client.prints("sink", "abort", "orders", "1") == b"dropped 2 messages of batch 1\n"
    stage(url, "q", "orders", batch=2, count=1)
    (told,) = _records(client, "sink", "forget", "orders")
    assert told == {"forgotten": "orders", "dropped": 1}
    assert _records(client, "sink", "list") == []


def test_batch_0_can_be_aborted(own_broker: BrokerProcess) -> None:
    stage(own_broker.url, "q", "first", batch=0, count=1)
    client = Client(own_broker.url)
    (told,) = _records(client, "sink", "abort", "first", "0")
    assert told == {"dropped": 1}


@pytest.mark.parametrize("command", [["show", "x"], ["abort", "x", "1"], ["forget", "x"]])
def test_a_sink_that_is_not_there(own_broker: BrokerProcess, command: list[str]) -> None:
    ended = Client(own_broker.url).run("sink", *command)
    assert ended.returncode == 3
    assert b"no sink x" in ended.stderr


def _records(client: Client, *arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in client.prints(*arguments, "--json").splitlines()]
