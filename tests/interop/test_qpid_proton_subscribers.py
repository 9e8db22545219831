"""Selectors and no-local for consumers and subscribers, and a durable subscription."""

from __future__ import annotations

from typing import Final

import pytest
from proton import Described, Message, Receiver, Terminus, symbol, ulong

from tests.interop.broker_process import Broker
from tests.interop.proton_peer import Peer, asking

pytestmark = pytest.mark.slow

SELECTOR: Final = Described(ulong(0x0000468C00000004), "colour = 'red'")
NO_LOCAL: Final = Described(ulong(0x0000468C00000003), "NoLocalFilter{}")


@pytest.mark.requirement("RCV-05")
def test_a_selector_is_in_force_and_answered(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        receiver = peer.new_receiver(address)
        receiver.source.filter.put_dict({symbol("jms-selector"): SELECTOR})
        peer.attach(receiver)
        answer = receiver.remote_source.filter
        answer.rewind()
        answer.next()
        assert answer.get_object() == {symbol("jms-selector"): SELECTOR}
        sender = peer.sender(address)
        peer.send(sender, Message(body="a", properties={"colour": "blue"}))
        peer.send(sender, Message(body="b", properties={"colour": "red"}))
        assert [message.body for _, message in peer.drain(receiver)] == ["b"]
        peer.close(receiver)
        assert peer.bodies(address) == ["a", "b"], "unsettled, so it came back"


@pytest.mark.requirement("RCV-05")
def test_a_subscriber_may_want_nothing_of_its_own_container(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer, Peer(broker.url) as other:
        receiver = peer.new_receiver(address)
        receiver.source.filter.put_dict({symbol("no-local"): NO_LOCAL})
        asking(receiver.source, "topic")
        peer.attach(receiver)
        for publisher in (peer, other):
            sender = publisher.new_sender(address)
            asking(sender.target, "topic")
            publisher.attach(sender)
            publisher.send(sender, Message(body="mine" if publisher is peer else "another's"))
        assert [message.body for _, message in peer.drain(receiver)] == ["another's"]


@pytest.mark.requirement("SUB-02")
@pytest.mark.requirement("SUB-30")
@pytest.mark.requirement("SUB-31")
def test_a_durable_subscription_lasts_until_it_is_closed(broker: Broker, address: str) -> None:
    with Peer(broker.url, container_id=address) as peer:
        publisher = peer.new_sender(address)
        asking(publisher.target, "topic")
        peer.attach(publisher)

        def subscribe() -> Receiver:
            receiver = peer.new_receiver(address, name="lasting")
            receiver.source.durability = Terminus.DELIVERIES
            receiver.source.expiry_policy = Terminus.EXPIRE_NEVER
            asking(receiver.source, "topic")
            return peer.attach(receiver)

        subscribe().detach()
        peer.round_trip()
        peer.send(publisher, Message(body="meanwhile"))
        receiver = subscribe()
        assert [message.body for _, message in peer.drain(receiver)] == ["meanwhile"]
        peer.close(receiver)
        peer.send(publisher, Message(body="nobody's"))
        assert list(peer.drain(subscribe())) == []


@pytest.mark.requirement("DST-01")
def test_a_publisher_that_writes_a_prefix_meets_a_subscriber_that_does_not(
    broker: Broker, address: str
) -> None:
    """Camel writes `topic://NAME`, with and without the capability; JMS clients write NAME."""
    with Peer(broker.url) as peer:
        receiver = peer.new_receiver(address)
        asking(receiver.source, "topic")
        peer.attach(receiver)
        for number, capability in enumerate(("topic", "")):
            sender = peer.new_sender(f"topic://{address}")
            if capability:
                asking(sender.target, capability)
            peer.attach(sender)
            assert sender.remote_target.address == f"topic://{address}"
            peer.send(sender, Message(body=number))
        assert [message.body for _, message in peer.drain(receiver)] == [0, 1]
