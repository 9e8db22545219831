"""Rejected messages whose dead-letter queue cannot be created, as an operator finds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from proton import Message

from tests.interop.broker_process import BrokerProcess
from tests.interop.proton_peer import Peer
from tests.interop.test_qpid_proton_outcomes import rejected, take_all
from tests.interop.typed import Client

pytestmark = [pytest.mark.slow, pytest.mark.requirement("RCV-02")]

SETTINGS = """\
store = "sqlite:///store.db"

[[address]]
pattern = "orders"
dead_letter = "{dead_letter}"

[[address]]
pattern = "DLQ"
max_messages = 1
full = "{full}"
"""

NOWHERE = "/topic/durable/dead"


def started(folder: Path, dead_letter: str, full: str = "reject") -> BrokerProcess:
    return BrokerProcess(folder, settings=SETTINGS.format(dead_letter=dead_letter, full=full))


def reject(broker: BrokerProcess, *names: str) -> None:
    """Send durable messages with these bodies to `orders`, and reject them as a client."""
    with Peer(broker.url) as peer:
        peer.fill("orders", *[Message(body=name, durable=True) for name in names])
        for delivery, _ in take_all(peer, peer.receiver("orders"), len(names)):
            rejected(delivery)
        peer.round_trip()


def held(client: Client) -> list[dict[str, object]]:
    lines = client.prints("message", "list", "orders", "--held", "--json").splitlines()
    return [json.loads(line) for line in lines]


def test_a_rejected_message_without_a_place_is_kept_listed_and_moved_later(tmp_path: Path) -> None:
    broker = started(tmp_path, NOWHERE)
    client = Client(broker.url)
    try:
        reject(broker, "a", "b", "c", "d")
        assert client.prints("browse", "orders") == b"", "nobody gets it"
        first, second, third, _ = held(client)
        assert (first["state"], first["reason"], first["durable"]) == ("held", "rejected", True)
        assert client.prints("message", "delete", "orders", str(first["identity"])) == (
            b"deleted 1\n"
        )
        assert client.prints("message", "retry", "orders", str(second["identity"])) == b"moved 1\n"
        assert client.prints("receive", "orders", "--count", "1") == b"b\n"
        client.prints("node", "create", "other")
        client.prints("message", "move", "orders", "other", str(third["identity"]))
        assert client.prints("receive", "other", "--count", "1") == b"c\n"
        assert [each["delivery_count"] for each in held(client)] == [0]
        broker.kill()
        lines = [line for line in broker.log.read_text().splitlines() if "be moved to" in line]
        assert len([line for line in lines if "more times" not in line]) == 1, "not for each"
        broker = started(tmp_path, NOWHERE)
        client = Client(broker.url)
        assert len(held(client)) == 1
        assert client.prints("browse", "orders") == b""
        assert broker.stop() == 0
        broker = started(tmp_path, "DLQ")
        client = Client(broker.url)
        assert client.prints("browse", "orders") == b""
        assert client.prints("receive", "DLQ", "--create", "--count", "1") == b"d\n"
    finally:
        broker.stop()


@pytest.mark.parametrize("full", ["block", "reject", "drop-oldest"])
def test_a_full_dead_letter_queue_takes_every_dead_letter(tmp_path: Path, full: str) -> None:
    broker = started(tmp_path, "DLQ", full)
    try:
        reject(broker, "a", "b", "c")
        client = Client(broker.url)
        assert client.prints("receive", "DLQ", "--count", "3") == b"a\nb\nc\n"
    finally:
        assert broker.stop() == 0
    assert broker.log.read_text().count("DLQ is beyond its max_messages") == 1


def properties_of(message: Message) -> dict[str, object]:
    found: object = message.properties
    assert isinstance(found, dict)
    return found


def test_a_dead_letter_says_why_in_properties_where_that_is_asked_for(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings="dead_letter_properties = true\n")
    try:
        reject(broker, "a")
        with Peer(broker.url) as peer:
            delivery, message = peer.take(peer.receiver("DLQ", credit=1))
            peer.accept(delivery)
        told = properties_of(message)
        assert isinstance(told.pop("dead_letter_time"), int)
        assert told == {
            "dead_letter_address": "orders",
            "dead_letter_queue": "orders",
            "dead_letter_reason": "rejected",
            "dead_letter_delivery_count": 0,
        }
    finally:
        assert broker.stop() == 0
