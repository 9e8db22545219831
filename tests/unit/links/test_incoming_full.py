"""Producers of a full node that blocks: which of them get credit, and the room it reserves."""

from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED
from broker.amqp.outcomes import ACCEPTED, Accepted, Rejected
from broker.amqp.performatives import RECEIVER, Attach, Flow
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker
from tests.support.frames import Disposition, Transfer, attach_sender, message


def test_a_full_queue_gives_no_credit_until_there_is_room() -> None:
    broker = Broker(policy=AddressPolicy(max_messages=1))
    broker.fill()
    sender, receiver, other = (broker.session(name) for name in ("sender", "receiver", "other"))
    sender.send(attach_sender())
    sender.expect(Attach)
    sender.expect_nothing()
    other.attach_sender("another")
    receiver.attach_receiver()
    receiver.flow(handle=0, credit=1)
    receiver.expect(Transfer)
    sender.expect_nothing()
    receiver.send(Disposition(role=RECEIVER, first=0, settled=True, state=ACCEPTED))
    assert sender.expect(Flow).link_credit == 1
    sender.transfer(0)
    assert isinstance(sender.expect(Disposition).state, Accepted)
    sender.expect_nothing()


def test_what_is_granted_is_nobody_elses() -> None:
    broker = Broker(policy=AddressPolicy(max_messages=4))
    sender, relay = broker.session("sender"), broker.session("relay")
    sender.attach_sender()
    assert broker.queue().credit_pool is not None
    relay.attach_sender(None)
    for number in range(3):
        relay.transfer(number, payload=message(to="q"))
        assert isinstance(relay.expect(Disposition).state, Accepted)
    relay.transfer(3, payload=message(to="q"))
    refused = relay.expect(Disposition).state
    assert isinstance(refused, Rejected)
    assert refused.error is not None
    assert refused.error.condition == RESOURCE_LIMIT_EXCEEDED
    sender.transfer(0)
    assert isinstance(sender.expect(Disposition).state, Accepted)


def test_idle_credit_is_drained_and_what_comes_back_is_for_others() -> None:
    broker = Broker(policy=AddressPolicy(max_messages=1))
    idle, busy = broker.session("idle"), broker.session("busy")
    idle.attach_sender()
    busy.send(attach_sender())
    busy.expect(Attach)
    busy.expect_nothing()
    broker.advance(50)
    broker.advance(50)
    asked = idle.expect(Flow)
    assert (asked.drain, asked.link_credit) == (True, 1)
    idle.flow(handle=0, delivery_count=1, credit=0)
    assert busy.expect(Flow).link_credit == 1
