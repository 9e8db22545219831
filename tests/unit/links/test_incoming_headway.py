"""Credit of those who send durable messages to consumers that acknowledge late."""

import pytest

from broker.amqp.outcomes import ACCEPTED
from broker.amqp.performatives import RECEIVER, Flow
from broker.amqp.terminus import Source
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, Transfer, attach_sender, message

CREDIT = 1000
HOLD_MS = 2


def granted_after(lag_ms: int, *, kind: str = "queue") -> int:
    """Credit that a sender gets when it asks, after a message was settled so late."""
    broker = Broker(credit=CREDIT, hold_us=HOLD_MS * 1000)
    receiver = broker.session("receiver")
    source = Source(address="q", capabilities=[kind])
    if kind == "topic":
        source = Source(address="q", capabilities=[kind], durable=2, expiry_policy="never")
    receiver.attach_receiver("q", credit=10, source=source)
    sender = broker.session("sender")
    sender.attach(attach_sender("q", kind=kind))
    assert sender.expect(Flow).link_credit == CREDIT
    sender.transfer(0, payload=message(durable=True))
    receiver.expect(Transfer)
    broker.advance(lag_ms)
    receiver.send(Disposition(role=RECEIVER, first=0, settled=True, state=ACCEPTED))
    use_half(sender)
    return sender.expect(Flow).link_credit


def use_half(sender: Client) -> None:
    """Send until it is time for credit."""
    sender.expect(Disposition)
    for number in range(1, CREDIT // 2):
        sender.transfer(number, settled=True)


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_who_acknowledges_in_time_leaves_producers_alone(kind: str) -> None:
    assert granted_after(HOLD_MS // 2, kind=kind) == CREDIT


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_who_acknowledges_late_has_producers_that_are_less_far_ahead(kind: str) -> None:
    assert granted_after(HOLD_MS + 1, kind=kind) < CREDIT // 2
