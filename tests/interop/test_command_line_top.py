"""`jms-broker top` as typed, against a running broker with a consumer that does not settle."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from proton import Message

from tests.interop.broker_process import Broker, BrokerProcess
from tests.interop.proton_peer import Peer
from tests.interop.test_qpid_proton_outcomes import take_all
from tests.interop.typed import SECONDS, Client

pytestmark = pytest.mark.requirement("OPS-18")

IMPATIENT = "idle_time_out_ms = 1000\n[http]\nport = 0\nsilence_max_ms = 1000\n"
INTERVAL = ("--interval", "0.2")


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker.url)


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Yield a broker that closes connections which are silent for a second."""
    process = BrokerProcess(tmp_path, settings=IMPATIENT)
    yield process
    assert process.stop() == 0


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


@pytest.mark.parametrize("scheme", ["amqp", "http"])
def test_an_interval_longer_than_the_broker_waits_for_a_silent_client(
    impatient: BrokerProcess, scheme: str
) -> None:
    url = impatient.url if scheme == "amqp" else impatient.http_url
    printed = Client(url).prints("top", "--once", "--json", "--interval", "2")
    assert json.loads(printed)["broker"]["state"] == "running"


def test_the_queue_with_the_oldest_message(client: Client, address: str) -> None:
    client.prints("send", address, "a")
    printed = client.prints("top", "--once", "--json", "--sort", "age", "--limit", "1", *INTERVAL)
    (queue,) = json.loads(printed)["queues"]
    assert queue["oldest_ms"] > 0


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
