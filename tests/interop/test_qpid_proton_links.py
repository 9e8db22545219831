"""Attaching: the broker's answers, and the nodes and links that it creates, refuses and steals."""

from __future__ import annotations

import time
from typing import Any, Final

import pytest
from proton import (
    Delivery,
    Described,
    Endpoint,
    Link,
    Message,
    Sender,
    Terminus,
    byte,
    symbol,
    ulong,
)

from tests.interop.broker_process import PASSWORD, USER, Broker
from tests.interop.proton_peer import Peer, RefusedError, asking

pytestmark = pytest.mark.slow

DELETE_ON_CLOSE: Final = Described(ulong(0x2B), [])
JMS_QUEUE: Final = byte(0)
JMS_TOPIC: Final = byte(1)
JMS_TEMPORARY_QUEUE: Final = byte(2)


def has(terminus: Terminus) -> list[str]:
    """Return the capabilities on `terminus`, which may be one symbol or an array."""
    data = terminus.capabilities
    data.rewind()
    found: object = data.get_object() if data.next() else None
    return [str(each) for each in getattr(found, "elements", [found])]


def lifetime(terminus: Terminus, kind: str) -> None:
    """Make `terminus` dynamic, as Qpid JMS does for temporary destinations."""
    terminus.dynamic = True
    terminus.expiry_policy = Terminus.EXPIRE_WITH_LINK
    terminus.properties.put_dict({symbol("lifetime-policy"): DELETE_ON_CLOSE})
    asking(terminus, kind)


def temporary(peer: Peer, kind: str = "temporary-queue") -> Sender:
    """Return a sender whose target the broker created; `remote_target.address` is its name."""
    sender = peer.new_sender(None)
    lifetime(sender.target, kind)
    return peer.attach(sender)


def made(link: Link) -> str:
    """Return the address of the node that was created for `link`."""
    terminus = link.remote_target if link.is_sender else link.remote_source
    assert terminus.address
    return str(terminus.address)


def detached(peer: Peer, link: Link) -> tuple[str | None, object]:
    """Return the name and the info of the error with which the broker closed `link`."""
    peer.until(lambda: link.state & Endpoint.REMOTE_CLOSED)
    condition = link.remote_condition
    link.close()
    return (None, None) if condition is None else (condition.name, condition.info)


def works(peer: Peer, address: str) -> None:
    """Check that the connection still works."""
    peer.fill(address, "works")
    assert "works" in peer.bodies(address)


# ---- what an attach is answered with


@pytest.mark.requirement("DST-01")
def test_the_answer_to_a_sender_carries_the_real_target(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        sender = peer.new_sender(address)
        asking(sender.target, "queue")
        peer.attach(sender)
        assert sender.remote_target.address == address
        assert has(sender.remote_target) == ["queue"]
        assert sender.remote_max_message_size > 0


@pytest.mark.requirement("DST-01")
@pytest.mark.requirement("SUB-01")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_the_answer_to_a_receiver_carries_the_real_source(
    broker: Broker, address: str, kind: str
) -> None:
    with Peer(broker.url) as peer:
        receiver = peer.new_receiver(address)
        asking(receiver.source, kind)
        peer.attach(receiver)
        assert receiver.remote_source.address == address
        assert has(receiver.remote_source) == [kind]


@pytest.mark.requirement("DST-02")
def test_without_a_capability_a_missing_node_becomes_a_queue(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, "a")
        receiver = peer.new_receiver(address)
        asking(receiver.source, "queue")
        assert [message.body for _, message in peer.drain(peer.attach(receiver))] == ["a"]


@pytest.mark.requirement("DST-02")
def test_without_a_capability_an_existing_topic_is_meant_where_there_is_no_queue(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        subscriber = peer.new_receiver(address)
        asking(subscriber.source, "topic")
        peer.attach(subscriber)
        peer.fill(address, "a")
        assert [message.body for _, message in peer.drain(subscriber)] == ["a"]


@pytest.mark.requirement("SUB-32")
@pytest.mark.parametrize("closed", [True, False])
def test_detaching_from_a_queue_leaves_the_queue(
    broker: Broker, address: str, closed: bool
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, "a", "b")
        receiver = peer.receiver(address, credit=1)
        peer.take(receiver)
        if closed:
            peer.close(receiver)
        else:
            receiver.detach()
        assert peer.bodies(address) == ["a", "b"]


# ---- refusals: attach with a null terminus, then detach with closed=true


@pytest.mark.requirement("DST-02")
@pytest.mark.parametrize("capability", [None, "queue", "topic"])
def test_a_node_that_may_not_be_created_is_not_found(
    strict_broker: Broker, address: str, capability: str | None
) -> None:
    with Peer(strict_broker.url, user=USER, password=PASSWORD) as peer:
        sender = peer.new_sender(f"closed.{address}")
        receiver = peer.new_receiver(f"closed.{address}")
        if capability is not None:
            asking(sender.target, capability)
            asking(receiver.source, capability)
        links: list[Any] = [sender, receiver]
        for link in links:
            with pytest.raises(RefusedError) as refused:
                peer.attach(link)
            assert refused.value.condition == "amqp:not-found"
            link.close()
        works(peer, address)


@pytest.mark.requirement("DLY-01", "DLY-04")
def test_a_delayed_message_comes_when_it_is_due_and_not_before(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        sender = peer.sender(address)
        due = time.time() + 0.3
        annotations = {symbol("x-opt-delivery-time"): int(due * 1000) + 1}
        peer.send(sender, Message(body="later", annotations=annotations))
        peer.send(sender, Message(body="now"))
        assert peer.bodies(address) == ["now"]
        receiver = peer.receiver(address)
        receiver.flow(1)
        _, came = peer.take(receiver)
        assert time.time() >= due
        assert came.body == "later"


# ---- temporary nodes


@pytest.mark.requirement("TMP-01")
@pytest.mark.parametrize("kind", ["temporary-queue", "temporary-topic"])
def test_a_dynamic_target_gets_an_address_that_others_may_send_to(
    broker: Broker, kind: str
) -> None:
    with Peer(broker.url) as owner, Peer(broker.url) as other:
        creator = temporary(owner, kind)
        assert creator.remote_target.dynamic
        assert kind in has(creator.remote_target)
        receiver = owner.new_receiver(made(creator))
        asking(receiver.source, kind)
        owner.attach(receiver)
        other.fill(made(creator), "hello")
        assert [message.body for _, message in owner.drain(receiver)] == ["hello"]


@pytest.mark.requirement("TMP-01")
def test_a_dynamic_source_gets_an_address_that_others_may_send_to(broker: Broker) -> None:
    with Peer(broker.url) as owner, Peer(broker.url) as other:
        receiver = owner.new_receiver(None)
        receiver.source.dynamic = True
        owner.attach(receiver).flow(1)
        other.fill(made(receiver), "hello")
        assert owner.take(receiver)[1].body == "hello"


@pytest.mark.requirement("TMP-01")
def test_addresses_of_temporary_nodes_are_unique_and_not_to_be_guessed(
    broker: Broker,
) -> None:
    with Peer(broker.url) as peer:
        addresses = {made(temporary(peer)) for _ in range(20)}
        assert len(addresses) == 20
        assert min(len(address) for address in addresses) >= 22, "less than 128 bits in base 64"


@pytest.mark.requirement("TMP-03")
@pytest.mark.parametrize("ending", ["detach", "end", "close connection", "cut socket"])
def test_a_temporary_node_goes_with_its_creator_and_takes_others_links_with_it(
    broker: Broker, ending: str
) -> None:
    with Peer(broker.url) as owner, Peer(broker.url) as other:
        session = owner.session()
        creator = owner.new_sender(None, session=session)
        lifetime(creator.target, "temporary-queue")
        address = made(owner.attach(creator))
        sender = other.sender(address)
        match ending:
            case "detach":
                creator.close()
            case "end":
                session.close()
            case "close connection":
                owner.connection.close()
            case "cut socket":
                owner.cut()
        if not owner.eof:
            owner.flush()
        assert detached(other, sender)[0] == "amqp:resource-deleted"
        again = other.new_sender(address)
        asking(again.target, "temporary-queue")
        with pytest.raises(RefusedError) as refused:
            other.attach(again)
        assert refused.value.condition == "amqp:not-found"
        lost = Message(address=address, body="lost")
        lost.annotations = {symbol("x-opt-jms-dest"): JMS_TEMPORARY_QUEUE}
        assert other.outcome(other.post(relay(other), lost)) == Delivery.REJECTED


@pytest.mark.requirement("TMP-03")
def test_the_owners_own_consumers_are_detached_with_the_node(broker: Broker) -> None:
    with Peer(broker.url) as peer:
        creator = temporary(peer)
        receiver = peer.receiver(made(creator), credit=1)
        peer.close(creator)
        assert detached(peer, receiver)[0] == "amqp:resource-deleted"


@pytest.mark.requirement("TMP-04")
@pytest.mark.parametrize("capability", [None, "queue", "temporary-queue"])
@pytest.mark.parametrize("browse", [False, True])
def test_another_connection_may_not_consume_or_browse_a_temporary_queue(
    broker: Broker, capability: str | None, browse: bool
) -> None:
    with Peer(broker.url) as owner, Peer(broker.url) as other:
        address = made(temporary(owner))
        receiver = other.new_receiver(address)
        if capability is not None:
            asking(receiver.source, capability)
        if browse:
            receiver.source.distribution_mode = Terminus.DIST_MODE_COPY
        with pytest.raises(RefusedError) as refused:
            other.attach(receiver)
        assert refused.value.condition == "amqp:resource-locked"


# ---- the anonymous relay


def relay(peer: Peer, *, settled: bool = False, discard: bool = False) -> Sender:
    sender = peer.new_sender(None)
    if settled:
        sender.snd_settle_mode = Link.SND_SETTLED
    if discard:
        asking(sender.target, "DISCARD_UNROUTABLE")
    return peer.attach(sender)


@pytest.mark.requirement("PRD-01")
def test_the_relay_sends_each_message_to_its_own_address(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        sender = relay(peer)
        peer.send(
            sender,
            Message(address=f"{address}-1", body="one"),
            Message(address=f"{address}-2", body="two"),
            Message(address=f"{address}-1", body="three"),
        )
        assert peer.bodies(f"{address}-1") == ["one", "three"]
        assert peer.bodies(f"{address}-2") == ["two"]


@pytest.mark.requirement("PRD-01")
@pytest.mark.requirement("DST-03")
@pytest.mark.parametrize("integer", [byte, ulong, int])
def test_the_relay_goes_by_the_annotation_of_any_integral_type(
    broker: Broker, address: str, integer: type[int]
) -> None:
    with Peer(broker.url) as peer:
        subscriber = peer.new_receiver(address)
        asking(subscriber.source, "topic")
        peer.attach(subscriber)
        kind = symbol("x-opt-jms-dest")
        peer.send(
            relay(peer),
            Message(address=address, body="topic", annotations={kind: integer(JMS_TOPIC)}),
            Message(address=address, body="queue", annotations={kind: integer(JMS_QUEUE)}),
        )
        assert [message.body for _, message in peer.drain(subscriber)] == ["topic"]
        queue = peer.new_receiver(address)
        asking(queue.source, "queue")
        assert [message.body for _, message in peer.drain(peer.attach(queue))] == ["queue"]


@pytest.mark.requirement("PRD-02")
@pytest.mark.parametrize("to", [None, "closed.missing"])
def test_what_the_relay_cannot_route_is_rejected_and_the_link_stays(
    strict_broker: Broker, address: str, to: str | None
) -> None:
    with Peer(strict_broker.url, user=USER, password=PASSWORD) as peer:
        sender = relay(peer)
        delivery = peer.post(sender, Message(address=to, body="nowhere"))
        tag = delivery.tag
        peer.until(lambda: delivery.settled)
        assert delivery.remote_state == Delivery.REJECTED
        condition = delivery.remote.condition
        assert condition is not None
        assert condition.name == "amqp:not-found"
        info: Any = condition.info
        assert {str(key): bytes(value) for key, value in info.items()} == {
            "delivery-tag": tag.encode()
        }
        delivery.settle()
        peer.send(sender, Message(address=address, body="somewhere"))
        assert peer.bodies(address) == ["somewhere"]


@pytest.mark.requirement("PRD-02")
def test_a_settled_message_that_cannot_be_routed_detaches_the_relay(
    strict_broker: Broker, address: str
) -> None:
    with Peer(strict_broker.url, user=USER, password=PASSWORD) as peer:
        sender = relay(peer, settled=True)
        peer.post(sender, Message(address="closed.missing", body="nowhere"))
        name, info = detached(peer, sender)
        assert name == "amqp:not-found"
        assert isinstance(info, dict)
        assert [str(key) for key in info] == ["delivery-tag"]
        works(peer, address)


@pytest.mark.requirement("PRD-02")
def test_a_relay_that_asks_for_it_drops_settled_messages_that_cannot_be_routed(
    strict_broker: Broker, address: str
) -> None:
    with Peer(strict_broker.url, user=USER, password=PASSWORD) as peer:
        sender = relay(peer, settled=True, discard=True)
        peer.post(sender, Message(address="closed.missing", body="nowhere"))
        peer.post(sender, Message(address=address, body="somewhere"))
        peer.round_trip()
        assert not sender.state & Endpoint.REMOTE_CLOSED
        assert peer.bodies(address) == ["somewhere"]


# ---- link names


@pytest.mark.requirement("SUB-37")
@pytest.mark.parametrize("where", ["another session", "another connection"])
def test_a_receiver_attached_again_steals_the_link_and_loses_nothing(
    broker: Broker, address: str, where: str
) -> None:
    with (
        Peer(broker.url, container_id=address) as first,
        Peer(broker.url, container_id=address) as second,
    ):
        thief = first if where == "another session" else second
        first.fill(address, *"abc")
        held = first.attach(first.new_receiver(address, name="the link"))
        held.flow(2)
        for body in "ab":
            assert first.take(held)[1].body == body
        stolen = thief.attach(thief.new_receiver(address, name="the link"))
        assert detached(first, held)[0] == "amqp:link:stolen"
        assert [message.body for _, message in thief.drain(stolen)] == ["a", "b", "c"]


@pytest.mark.requirement("SUB-37")
def test_a_sender_attached_again_steals_the_link(broker: Broker, address: str) -> None:
    with (
        Peer(broker.url, container_id=address) as first,
        Peer(broker.url, container_id=address) as second,
    ):
        held = first.attach(first.new_sender(address, name="the link"))
        first.send(held, "a")
        stolen = second.attach(second.new_sender(address, name="the link"))
        assert detached(first, held)[0] == "amqp:link:stolen"
        second.send(stolen, "b")
        assert second.bodies(address) == ["a", "b"]


@pytest.mark.requirement("SUB-37")
def test_a_link_may_be_stolen_back_and_forth(broker: Broker, address: str) -> None:
    with (
        Peer(broker.url, container_id=address) as first,
        Peer(broker.url, container_id=address) as second,
    ):
        thief, holder = second, first
        held = holder.attach(holder.new_receiver(address, name="the link"))
        for _ in range(5):
            stolen = thief.attach(thief.new_receiver(address, name="the link"))
            assert detached(holder, held)[0] == "amqp:link:stolen"
            holder.flush()
            held.free()
            thief, holder, held = holder, thief, stolen
        holder.fill(address, "a")
        assert [message.body for _, message in holder.drain(held)] == ["a"]


@pytest.mark.requirement("SUB-37")
def test_other_roles_and_other_containers_may_use_the_name_too(
    broker: Broker, address: str
) -> None:
    with (
        Peer(broker.url, container_id=f"{address}-1") as first,
        Peer(broker.url, container_id=f"{address}-2") as second,
    ):
        links: list[Link] = []
        for peer in (first, second):
            links.append(peer.attach(peer.new_receiver(address, name="the link")))
            links.append(peer.attach(peer.new_sender(address, name="the link")))
        first.round_trip()
        second.round_trip()
        assert not any(link.state & Endpoint.REMOTE_CLOSED for link in links)
