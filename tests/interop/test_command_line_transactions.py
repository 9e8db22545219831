"""`jms-broker transaction …` as typed, against a broker on which a client has a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from proton import Described, Endpoint, Message, Sender, Terminus, ulong

from tests.interop.broker_process import Broker
from tests.interop.proton_peer import Peer
from tests.interop.typed import Client

pytestmark = pytest.mark.requirement("OPS-15")

DECLARE = Message(body=Described(ulong(0x31), [None]))
"""The message that declares a transaction (core 4.5.2)."""


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker.url)


@pytest.fixture
def peer(client: Client) -> Iterator[Peer]:
    with Peer(client.url, container_id="transacted") as peer:
        yield peer


def declared(peer: Peer) -> Sender:
    """Return the link to a coordinator on which a transaction has been declared."""
    link = peer.new_sender(None)
    link.target.type = Terminus.COORDINATOR
    peer.attach(link)
    peer.outcome(peer.post(link, DECLARE))
    return link


def listed(client: Client) -> list[dict[str, object]]:
    """Return the transactions of the container `transacted`."""
    lines = client.prints("transaction", "list", "--json").splitlines()
    return [each for each in map(json.loads, lines) if each["container_id"] == "transacted"]


def test_a_transaction_is_listed_shown_and_rolled_back(client: Client, peer: Peer) -> None:
    link = declared(peer)
    (record,) = listed(client)
    identity = str(record["identity"])
    assert (record["user"], record["operations"]) == ("", 0)
    assert json.loads(client.prints("transaction", "show", identity, "--json")) == record
    assert (
        client.prints("transaction", "rollback", identity) == f"rolled back {identity}\n".encode()
    )
    peer.until(lambda: link.state & Endpoint.REMOTE_CLOSED)
    assert link.remote_condition is not None
    assert "administrator" in str(link.remote_condition.description)
    assert listed(client) == []


@pytest.mark.parametrize("command", ["show", "rollback"])
def test_a_transaction_that_is_not_open(client: Client, command: str) -> None:
    done = client.run("transaction", command, "1/00")
    assert done.returncode == 3
    assert b"no transaction 1/00 is open" in done.stderr
