"""`jms-broker suspended-link …` as typed, against a broker on which a client has left a link."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from proton import Endpoint, Message, Terminus

from tests.interop.broker_process import Broker
from tests.interop.proton_peer import Peer
from tests.interop.typed import Client

pytestmark = pytest.mark.requirement("OPS-15")


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker.url)


@pytest.fixture
def peer(client: Client) -> Iterator[Peer]:
    with Peer(client.url, container_id="absent") as peer:
        yield peer


def listed(client: Client) -> list[dict[str, object]]:
    """Return the suspended links of the container `absent`."""
    lines = client.prints("suspended-link", "list", "--json").splitlines()
    return [each for each in map(json.loads, lines) if each["container_id"] == "absent"]


def test_a_suspended_link_is_listed_shown_and_ended(client: Client, peer: Peer) -> None:
    sender = peer.attach(peer.new_sender("suspended.q"))
    peer.outcome(peer.post(sender, Message(body="kept")))
    receiver = peer.new_receiver("suspended.q")
    receiver.source.expiry_policy = Terminus.EXPIRE_WITH_CONNECTION
    peer.attach(receiver)
    receiver.flow(1)
    peer.until(lambda: receiver.current is not None and not receiver.current.partial)
    receiver.detach()
    peer.until(lambda: receiver.state & Endpoint.REMOTE_CLOSED or listed(client) != [])
    (record,) = listed(client)
    identity = str(record["identity"])
    assert (record["role"], record["address"]) == ("receiver", "suspended.q")
    assert (record["unsettled"], record["remaining_ms"]) == (1, None)
    assert json.loads(client.prints("suspended-link", "show", identity, "--json")) == record
    assert client.prints("suspended-link", "end", identity) == f"ended {identity}\n".encode()
    assert listed(client) == []


@pytest.mark.parametrize("command", ["show", "end"])
def test_a_suspended_link_that_is_not_there(client: Client, command: str) -> None:
    done = client.run("suspended-link", command, "999")
    assert done.returncode == 3
    assert b"no suspended link 999" in done.stderr
