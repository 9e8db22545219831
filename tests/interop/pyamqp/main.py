"""Cases for pyamqp, the transport of azure-servicebus: a Python program that uses the broker.

`python -m tests.interop.pyamqp.main "a name"` runs that case.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from typing import Any, Final

import pytest
from azure.servicebus._pyamqp.authentication import SASLPlainAuth
from azure.servicebus._pyamqp.constants import ReceiverSettleMode, SenderSettleMode
from azure.servicebus._pyamqp.endpoints import Source, Target
from azure.servicebus._pyamqp.message import Header, Message, Properties

from tests.interop.pyamqp import claims
from tests.interop.pyamqp.harness import SOON, Inbox, Relay, Scene, refused, run_all, shows

# ---- connections


@shows("a user's name and password are taken", "")
def password(scene: Scene) -> None:
    scene.fill(b"a", hostname=scene.strict, auth=scene.user)


@shows("a wrong password is refused", "")
def wrong_password(scene: Scene) -> None:
    wrong = SASLPlainAuth(os.environ["BROKER_USER"], "wrong")
    with pytest.raises(ValueError, match="SASL negotiation failed"):
        scene.fill(b"a", hostname=scene.strict, auth=wrong)


@shows("an idle connection is kept by empty frames", "")
def idle(scene: Scene) -> None:
    options = {"hostname": scene.strict, "auth": scene.user, "idle_timeout": 2}
    inbox = scene.receiver(**options)
    end = time.monotonic() + 4.5
    while time.monotonic() < end:
        inbox.turn()
    inbox.credit(1)
    scene.fill(b"still here", hostname=scene.strict, auth=scene.user)
    assert inbox.values(1) == [b"still here"]


# ---- messages


VALUES: Final[list[Any]] = [
    "grün ✓ 🐇".encode(),
    b"bytes",
    True,
    12,
    -(1 << 30),
    1.5,
    uuid.UUID(int=7),
    [1, b"two", [b"three"]],
    {b"one": 1, b"deep": {b"two": 2}},
]


@shows("values of every type arrive as they were sent", "PRD-05")
def values(scene: Scene) -> None:
    scene.fill(*VALUES)
    inbox = scene.receiver()
    inbox.credit(100)
    found = inbox.values(len(VALUES))
    assert found == VALUES, found


@shows("data may come in several sections, and a sequence is kept", "PRD-05")
def sections(scene: Scene) -> None:
    sender = scene.sender()
    sender.send_message(Message(data=[b"one", b"\x00\xff"]), timeout=SOON)
    sender.send_message(Message(sequence=[[1, b"two"]]), timeout=SOON)
    inbox = scene.receiver()
    inbox.credit(2)
    assert list(inbox.take()[1].data) == [b"one", b"\x00\xff"]
    assert list(inbox.take()[1].sequence) == [[1, b"two"]]


@shows("every section, property and annotation arrives", "PRD-05")
def properties(scene: Scene) -> None:
    sent = Message(
        header=Header(durable=True, priority=7),
        message_annotations={b"x-opt-own": b"kept"},
        properties=Properties(
            message_id=9,
            user_id=b"me",
            to=scene.address.encode(),
            subject=b"a subject",
            reply_to=b"answers",
            correlation_id=uuid.UUID(int=7),
            content_type=b"text/plain",
            content_encoding=b"gzip",
            absolute_expiry_time=4102444800000,
            creation_time=1700000000000,
            group_id=b"g",
            group_sequence=3,
            reply_to_group_id=b"h",
        ),
        application_properties={b"text": b"x", b"number": 1, b"yes": True},
        data=[b"body"],
        footer={b"x-sum": 12},
    )
    scene.sender().send_message(sent, timeout=SOON)
    inbox = scene.receiver()
    inbox.credit(1)
    found = inbox.take()[1]
    assert (found.header.durable, found.header.priority) == (True, 7)
    assert list(found.properties) == list(sent.properties), found.properties
    assert found.message_annotations == sent.message_annotations
    assert found.application_properties == sent.application_properties
    assert list(found.data) == [b"body"]
    assert found.footer == sent.footer


@shows("a large message goes both ways in many frames", "PRD-05")
def large(scene: Scene) -> None:
    body = b"abcdefgh" * (5 * 1024 * 1024 // 8)
    scene.sender().send_message(Message(data=[body]), timeout=SOON)
    inbox = scene.receiver(max_message_size=0)
    inbox.credit(1)
    assert b"".join(inbox.take()[1].data) == body


@shows("a message beyond the limit ends its link", "")
def too_large(scene: Scene) -> None:
    options = {"hostname": scene.strict, "auth": scene.user}
    with refused(b"amqp:link:message-size-exceeded"):
        scene.sender(**options).send_message(Message(data=[bytes(1_500_000)]), timeout=SOON)
    scene.fill(b"goes on", **options)


@shows("messages that are sent settled arrive", "")
def settled(scene: Scene) -> None:
    sender = scene.sender(send_settle_mode=SenderSettleMode.Settled)
    sender.open()
    while not sender.client_ready():
        pass
    for value in (b"a", b"b"):  # send_message would wait for an outcome for ever
        sender._link.send_transfer(Message(value=value))
    inbox = scene.receiver()
    inbox.credit(2)
    assert inbox.values(2) == [b"a", b"b"]


@shows("a receiver may ask for settled messages", "")
def receives_settled(scene: Scene) -> None:
    scene.fill(b"a", b"b")
    inbox = scene.receiver(send_settle_mode=SenderSettleMode.Settled)
    inbox.credit(1)
    transfer, message = inbox.take()
    assert (transfer[4], message.value) == (True, b"a")
    inbox.client.close()
    assert scene.rest() == [b"b"]


# ---- outcomes


def two(scene: Scene, **options: Any) -> tuple[Inbox, Any, Any]:
    """Return a receiver and the first two deliveries of three, which are not settled."""
    scene.fill(b"a", b"b", b"c")
    inbox = scene.receiver(**options)
    inbox.credit(2)
    return inbox, inbox.take()[0], inbox.take()[0]


@shows("accepted: the message is gone", "RCV-02")
def accepted(scene: Scene) -> None:
    inbox, _, second = two(scene)
    inbox.settle(second, "accepted")
    inbox.client.close()
    assert scene.rest() == [b"a", b"c"]


@shows("released: it comes again, in its place, uncounted", "RCV-01 RCV-02")
def released(scene: Scene) -> None:
    inbox, first, _ = two(scene)
    inbox.settle(first, "released")
    inbox.credit(2)
    again = inbox.take()[1]
    assert (again.value, (again.header or Header()).delivery_count or 0) == (b"a", 0)
    assert inbox.values(1) == [b"c"]


@shows("modified as failed: it comes again, counted", "RCV-01 RCV-02")
def failed(scene: Scene) -> None:
    inbox, first, _ = two(scene)
    inbox.settle(first, "modified", delivery_failed=True)
    inbox.credit(1)
    again = inbox.take()[1]
    assert (again.value, again.header.delivery_count) == (b"a", 1)


@shows("modified as undeliverable here: another receiver gets it", "RCV-02")
def elsewhere(scene: Scene) -> None:
    inbox, first, _ = two(scene)
    inbox.settle(first, "modified", undeliverable_here=True)
    inbox.credit(1)
    assert inbox.values(1) == [b"c"]
    other = scene.receiver()
    other.credit(1)
    assert other.values(1) == [b"a"]


@shows("rejected: it is found among the dead letters", "RCV-02")
def rejected(scene: Scene) -> None:
    value = f"rejected of {scene.address}"
    scene.fill(value)
    inbox = scene.receiver()
    inbox.credit(1)
    inbox.settle(inbox.take()[0], "rejected")
    dead = scene.receiver(Source(address="DLQ", distribution_mode=b"copy"))
    dead.credit(1000)
    while dead.take()[1].value != value.encode():
        pass


@shows("a range of deliveries is settled at once, in first and second mode", "RCV-02")
def ranges(scene: Scene) -> None:
    for mode in ReceiverSettleMode.First, ReceiverSettleMode.Second:
        inbox, first, second = two(scene, receive_settle_mode=mode)
        inbox.client.settle_messages((first[1], second[1]), second[2], "accepted")
        inbox.client.close()
        assert scene.rest() == [b"c"]


@shows("what a receiver leaves unsettled comes again", "RCV-08")
def unsettled(scene: Scene) -> None:
    inbox, _, _ = two(scene)
    inbox.client.close()
    assert scene.rest() == [b"a", b"b", b"c"]


# ---- credit


@shows("no more comes than there is credit", "")
def credit(scene: Scene) -> None:
    scene.fill(b"a", b"b", b"c")
    inbox = scene.receiver()
    inbox.credit(1)
    assert inbox.values(1) == [b"a"]
    inbox.credit(1)
    assert inbox.values(1) == [b"b"]
    assert inbox.client._received_messages.empty()


@shows("a drain gives what there is, and takes the credit back", "")
def drain(scene: Scene) -> None:
    scene.fill(b"a", b"b")
    inbox = scene.receiver()
    inbox.credit(10, drain=True)
    assert inbox.values(2) == [b"a", b"b"]
    scene.fill(b"c")
    other = scene.receiver()
    other.credit(1)
    assert other.values(1) == [b"c"]


# ---- addresses


@shows("a missing address is refused", "DST-02")
def missing(scene: Scene) -> None:
    options = {"hostname": scene.strict, "auth": scene.user}
    with refused(b"amqp:not-found"):
        scene.fill(b"a", target=f"closed.{scene.address}", **options)


@shows("every subscriber of a topic gets a message", "DST-01")
def topic(scene: Scene) -> None:
    subscribers = [
        scene.receiver(Source(address=scene.address, capabilities=[b"topic"])) for _ in range(2)
    ]
    for subscriber in subscribers:
        subscriber.credit(1)
    scene.fill(b"news", target=Target(address=scene.address, capabilities=[b"topic"]))
    assert [subscriber.values(1) for subscriber in subscribers] == [[b"news"], [b"news"]]


@shows("the anonymous relay sends each message where it says", "PRD-01 PRD-02")
def relay(scene: Scene) -> None:
    sender = scene.sender(Target(), hostname=scene.strict, auth=scene.user)
    somewhere = Properties(to=scene.address.encode())
    sender.send_message(Message(properties=somewhere, value=b"one"), timeout=SOON)
    nowhere = Properties(to=f"closed.{scene.address}".encode())
    with refused(b"amqp:not-found"):
        sender.send_message(Message(properties=nowhere, value=b"x"), timeout=SOON)
    sender.send_message(Message(properties=somewhere, value=b"two"), timeout=SOON)
    inbox = scene.receiver(hostname=scene.strict, auth=scene.user)
    inbox.credit(2)
    assert inbox.values(2) == [b"one", b"two"]


# ---- lost connections


@shows("a sender whose connection is lost connects again by itself", "")
def sender_returns(scene: Scene) -> None:
    relay = Relay(scene.host)
    sender = scene.sender(hostname=relay.host)
    sender.send_message(Message(value=b"before"), timeout=SOON)
    relay.cut()
    sender.send_message(Message(value=b"after"), timeout=SOON)
    assert scene.rest() == [b"before", b"after"]


@shows("what was unsettled on a lost connection comes again", "RCV-08")
def receiver_returns(scene: Scene) -> None:
    relay = Relay(scene.host)
    two(scene, hostname=relay.host)
    relay.cut()
    assert scene.rest() == [b"a", b"b", b"c"]


if __name__ == "__main__":
    assert claims.BROKER, "the cases of claims are registered"
    run_all(sys.argv[1:])
