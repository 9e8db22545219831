"""The anonymous terminus ("Using the AMQP Anonymous Terminus for Message Routing 1.0").

It is used by links to a null target address; the `to` of each message names its destination.
"""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import Accepted, Rejected
from broker.amqp.performatives import Attach, Detach, Error
from broker.amqp.terminus import Source, Target
from broker.amqp.types import Byte

from .conversation import Conversation
from .exchange import (
    ALL_OUTCOMES,
    bare,
    check_accepted,
    check_one_name_is_two_nodes,
    message_annotations,
    properties,
    receive_all,
    receive_one,
    state_in_words,
)
from .frames import Disposition
from .harness import case
from .messages import message
from .session import Sender, Session
from .steps import bodies, must
from .verdict import Failed, Kind, NotApplicable

ANONYMOUS_RELAY: Final = "ANONYMOUS-RELAY"
DELIVERY_TAG: Final = "delivery-tag"


async def with_relay(
    peer: Conversation, outcomes: list[str] | None = None
) -> tuple[Session, Sender]:
    """Return a session, and a link on it to the anonymous terminus, with credit."""
    session = await peer_with_relay(peer)
    source = Source(address="conformance", outcomes=outcomes or list(ALL_OUTCOMES))
    sender = await session.attach_sender(None, source=source)
    await sender.credit()
    return session, sender


async def with_working_relay(
    peer: Conversation, outcomes: list[str] | None = None
) -> tuple[Session, Sender]:
    """Return the same as `with_relay`, after a message has come through the relay."""
    session, sender = await with_relay(peer, outcomes)
    receiver = await session.attach_receiver(name=peer.name("first"))
    check_accepted(await sender.send(addressed(peer.address, b"routed")))
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"routed"], "the message that can be routed", bodies([came]))
    await receiver.detach()
    await sender.credit()
    return session, sender


async def peer_with_relay(peer: Conversation) -> Session:
    """Return a session; raise NotApplicable if the broker does not offer the relay."""
    opened = await peer.open(desired_capabilities=[ANONYMOUS_RELAY])
    if ANONYMOUS_RELAY not in opened.offered_capabilities:
        raise NotApplicable("the broker does not offer ANONYMOUS-RELAY", Kind.NOT_OFFERED)
    return await peer.begin()


def addressed(to: str | None, body: bytes = b"body", kind: int = 0) -> bytes:
    """Return a message for `to`, as JMS clients write it; `kind` 0 is a queue."""
    return message(body, message_annotations(x_opt_jms_dest=Byte(kind)), properties(to=to))


async def refusal_of_link(peer: Conversation) -> str:
    """Return the condition with which a link to the missing address is refused."""
    async with peer.another() as other:
        await other.open()
        link = (await other.begin()).new_sender(peer.missing_address)
        detach = await link.expect_refused()
    assert detach.error is not None
    return detach.error.condition


def check_tag(error: Error, sent: bytes) -> None:
    """Check that the error names its delivery by the tag."""
    tag = error.info.get(DELIVERY_TAG)
    must(tag == sent, f"info with {DELIVERY_TAG}={sent!r}", f"{error.condition} with {error.info}")


async def check_detached(sender: Sender, tag: bytes) -> Error:
    """Check that the broker detaches the link with an error about the delivery of that tag."""
    detach = await sender.session.peer.expect_until(
        Detach, lambda body: body.handle == sender.remote_handle
    )
    if detach.error is None:
        raise Failed("a detach with an error", "one without")
    check_tag(detach.error, tag)
    return detach.error


@case(
    "anonterm", "2.1", "A broker that offers the relay accepts a link whose target has no address."
)
async def a_link_to_the_anonymous_terminus_is_accepted(peer: Conversation) -> None:
    _, sender = await with_relay(peer)
    assert sender.remote_attach is not None
    made = sender.remote_attach.target
    must(isinstance(made, Target) and not made.address, "a target without address", made)


@case("anonterm", "2.2.1", "A message to the relay goes to the node that its `to` names.")
async def a_message_goes_where_its_to_says(peer: Conversation) -> None:
    session, sender = await with_relay(peer)
    receiver = await session.attach_receiver()
    check_accepted(await sender.send(addressed(peer.address)))
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"body"], "the message", bodies([came]))
    await peer.expect_nothing()


@case("anonterm", "2.2.1", "Messages of one relay link go to different nodes, each to its own.")
async def one_link_serves_many_nodes(peer: Conversation) -> None:
    session, sender = await with_relay(peer)
    addresses = [f"{peer.address}.{number}" for number in range(3)]
    receivers = [await session.attach_receiver(address) for address in addresses]
    for body in (b"first", b"second"):
        for address in addresses:
            check_accepted(await sender.send(addressed(address, body + address.encode())))
    for address, receiver in zip(addresses, receivers, strict=True):
        found = await receive_all(receiver)
        for each in found:
            receiver.settle(each)
        wanted = [b"first" + address.encode(), b"second" + address.encode()]
        must(bodies(found) == wanted, f"{wanted} at {address}", bodies(found))
    await peer.expect_nothing()


@case("anonterm", "2.2.1", "A message through the relay is not changed.")
async def the_relay_does_not_change_a_message(peer: Conversation) -> None:
    session, sender = await with_relay(peer)
    receiver = await session.attach_receiver()
    payload = addressed(peer.address)
    check_accepted(await sender.send(payload))
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bare(came.payload) == bare(payload), bare(payload).hex(), bare(came.payload).hex())
    await peer.expect_nothing()


@case("anonterm", "2.2.1", "A message to the relay that comes in several frames is routed whole.")
async def the_relay_takes_messages_in_frames(peer: Conversation) -> None:
    session, sender = await with_relay(peer)
    receiver = await session.attach_receiver()
    payload = addressed(peer.address, b"x" * 1000)
    delivery_id = sender.transfer(payload[:10], more=True)  # its `to` is in the second frame
    sender.go_on(payload[10:200], more=True)
    sender.go_on(payload[200:])
    check_accepted(await sender.settled(delivery_id))
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"x" * 1000], "the message", bodies([came]))
    await peer.expect_nothing()


@case(
    "anonterm", "2.2.2", "A message that cannot be routed is rejected, as a link would be refused."
)
async def an_unroutable_message_is_rejected(peer: Conversation) -> None:
    missing = peer.missing_address
    _, sender = await with_working_relay(peer)
    told = await sender.send(addressed(missing))
    if not isinstance(told.state, Rejected) or told.state.error is None:
        raise Failed("rejected with an error", state_in_words(told.state))
    wanted = await refusal_of_link(peer)
    condition = told.state.error.condition
    must(condition == wanted, f"{wanted}, as a link to that address gets", condition)


@case(
    "anonterm", "2.2.2", "The error of a rejection by the relay has the delivery-tag in its info."
)
async def a_rejection_names_the_delivery(peer: Conversation) -> None:
    missing = peer.missing_address
    _, sender = await with_working_relay(peer)
    delivery_id = sender.transfer(addressed(missing), tag=b"unroutable")
    told = await sender.settled(delivery_id)
    if not isinstance(told.state, Rejected) or told.state.error is None:
        raise Failed("rejected with an error", state_in_words(told.state))
    check_tag(told.state.error, b"unroutable")


@case("anonterm", "2.2.2", "A link to the relay goes on after a message was rejected.")
async def the_relay_goes_on_after_a_rejection(peer: Conversation) -> None:
    missing = peer.missing_address
    session, sender = await with_relay(peer)
    receiver = await session.attach_receiver()
    told = await sender.send(addressed(missing))
    must(isinstance(told.state, Rejected), "rejected", state_in_words(told.state))
    check_accepted(await sender.send(addressed(peer.address)))
    receiver.settle(await receive_one(receiver))
    await peer.expect_nothing()


@case("anonterm", "2.2.2", "A message without `to` cannot be routed, so it is refused.")
async def a_message_without_to_is_refused(peer: Conversation) -> None:
    _, sender = await with_working_relay(peer)
    sender.transfer(message(b"to nobody"))
    came = await peer.receive()
    while not isinstance(came.body, Disposition | Detach):
        came = await peer.receive()
    if isinstance(came.body, Disposition):
        state = came.body.state
        must(not isinstance(state, Accepted), "a rejection or a detach", state_in_words(state))
        return
    must(came.body.error is not None, "a detach with an error", "one without")


@case("anonterm", "2.2.2", "A settled message that cannot be routed ends the link with an error.")
async def an_unroutable_settled_message_ends_the_link(peer: Conversation) -> None:
    missing = peer.missing_address
    _, sender = await with_working_relay(peer)
    sender.transfer(addressed(missing), settled=True, tag=b"settled")
    error = await check_detached(sender, b"settled")
    wanted = await refusal_of_link(peer)
    must(error.condition == wanted, f"{wanted}, as a link to that address gets", error.condition)


@case("anonterm", "2.2.2", "Where the source knows no rejection, an unroutable one ends the link.")
async def a_source_that_cannot_be_rejected_is_detached(peer: Conversation) -> None:
    missing = peer.missing_address
    _, sender = await with_working_relay(peer, ["amqp:accepted:list"])
    sender.transfer(addressed(missing), tag=b"accepted only")
    await check_detached(sender, b"accepted only")


@case("anonterm", "2.2.1", "A settled message to the relay is routed like any other.")
async def a_settled_message_is_routed(peer: Conversation) -> None:
    session, sender = await with_relay(peer)
    receiver = await session.attach_receiver()
    sender.transfer(addressed(peer.address), settled=True, tag=b"")
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"body"], "the message", bodies([came]))
    await peer.expect_nothing()


@case("jms", "4.5", "The kind in x-opt-jms-dest tells the topic of a name from the queue of it.")
async def the_relay_tells_topics_from_queues(peer: Conversation) -> None:
    check_one_name_is_two_nodes(peer)
    session, sender = await with_relay(peer)
    name = peer.name("both")
    of_queue, of_topic = peer.options.queue_address(name), peer.options.topic_address(name)
    on_queue = await session.attach_receiver(of_queue)
    topic = Source(address=of_topic, capabilities=["topic"])
    on_topic = session.new_receiver(source=topic, name=peer.name("subscriber"))
    attach = await peer.expect(Attach, name=on_topic.name)
    if attach.source is None:
        raise NotApplicable(
            "the broker does not let a queue and a topic have one name", Kind.NOT_OFFERED
        )
    check_accepted(await sender.send(addressed(of_topic, b"to the topic", kind=1)))
    check_accepted(await sender.send(addressed(of_queue, b"to the queue")))
    found = await receive_all(on_queue)
    for each in found:
        on_queue.settle(each)
    must(bodies(found) == [b"to the queue"], "its own message at the queue", bodies(found))
    came = await receive_all(on_topic)
    for each in came:
        on_topic.settle(each)
    must(bodies(came) == [b"to the topic"], "its own message at the topic", bodies(came))
