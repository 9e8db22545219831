"""`jms-broker top` as typed, against a running broker with a consumer that does not settle."""

from __future__ import annotations

import json
import signal

import pytest
from proton import Message

from tests.interop.broker_process import Broker
from tests.interop.proton_peer import Peer
from tests.interop.test_qpid_proton_outcomes import take_all
from tests.interop.typed import SECONDS, Client

pytestmark = pytest.mark.requirement("OPS-18")

INTERVAL = ("--interval", "0.2")


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker.url)


def test_the_figures_of_one_interval(client: Client, address: str) -> None:
    with Peer(client.url) as peer:
        peer.fill(address, *[Message(body=each) for each in ("a", "b", "c")])
        take_all(peer, peer.receiver(address), 1)
        printed = client.prints(
            "top", "--once", "--json", "--sort", "acquired", "--limit", "500", *INTERVAL
        )
    figures = json.loads(printed)
    (queue,) = [each for each in figures["queues"] if each["name"] == address]
    assert (queue["published"], queue["messages"] + queue["acquired"]) == (3, 3)
    assert queue["rate"] == 0.0
    (link,) = [
        each
        for each in figures["links"]
        if (each["address"], each["role"]) == (address, "receiver")
    ]
    assert link["unsettled"] >= 1
    assert figures["broker"]["state"] == "running"
    assert figures["broker"]["received_rate"] >= 0


def test_a_terminal_sees_tables(client: Client, address: str) -> None:
    client.prints("send", address, "a")
    shown = client.shows("top", "--once", *INTERVAL)
    assert b"received rate" in shown
    assert "┃".encode() in shown


def test_a_pipe_gets_one_picture_after_another_until_an_interrupt(client: Client) -> None:
    with client.started("top", "--json", *INTERVAL) as command:
        assert command.stdout is not None
        pictures = [json.loads(command.stdout.readline()) for _ in range(2)]
        command.send_signal(signal.SIGINT)
        _, errors = command.communicate(timeout=SECONDS)
    assert (command.returncode, errors) == (130, b"")
    assert pictures[1]["broker"]["uptime_ms"] > pictures[0]["broker"]["uptime_ms"]
