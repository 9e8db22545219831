"""Needs of a JMS client: links, credit, outcomes (`docs/design/jms-clients.md` 4 to 6, 13)."""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import ACCEPTED, RELEASED, Accepted, Modified, Rejected
from broker.amqp.performatives import RECEIVER, SENDER, SND_SETTLED, Flow
from broker.amqp.terminus import Target
from broker.amqp.types import Byte

from .conversation import Conversation
from .exchange import (
    annotation,
    check_accepted,
    header,
    header_of,
    message_annotations,
    properties,
    receive_all,
    receive_one,
    send_all,
    take_all,
    there_and_back,
)
from .frames import Disposition, Transfer
from .harness import Case, case
from .jms_destinations import as_jms_consumer
from .messages import message, section, sections
from .session import Receiver
from .steps import bodies, connected_session, must, received
from .verdict import Kind, NotApplicable

DESIRED: Final = [
    "sole-connection-for-container",
    "DELAYED_DELIVERY",
    "ANONYMOUS-RELAY",
    "SHARED-SUBS",
]


# -- connections and links


def offered(name: str, capability: str) -> Case:
    """Return a case: a broker offers the capability if a client desires it, or lacks it."""

    async def run(peer: Conversation) -> None:
        opened = await peer.open(desired_capabilities=list(DESIRED))
        if capability not in opened.offered_capabilities:
            raise NotApplicable(f"the broker does not offer {capability}", Kind.NOT_OFFERED)

    sentence = f"{capability} is offered by the open, so that clients may count on it."
    return Case(name, "jms", "2.2", sentence, run)


the_relay_is_offered = offered("the_relay_is_offered", "ANONYMOUS-RELAY")
delayed_delivery_is_offered = offered("delayed_delivery_is_offered", "DELAYED_DELIVERY")
shared_subscriptions_are_offered = offered("shared_subscriptions_are_offered", "SHARED-SUBS")
sole_connections_are_known = offered("sole_connections_are_known", "sole-connection-for-container")


@case("jms", "13.1", "A producer is refused by an attach without target, then a closing detach.")
async def a_producer_is_refused_so_that_clients_notice(peer: Conversation) -> None:
    missing = peer.missing_address
    session = await connected_session(peer)
    link = session.new_sender(missing, target=Target(address=missing, capabilities=["queue"]))
    await link.expect_refused()


@case("jms", "13.1", "A consumer is refused by an attach without source, then a closing detach.")
async def a_consumer_is_refused_so_that_clients_notice(peer: Conversation) -> None:
    missing = peer.missing_address
    session = await connected_session(peer)
    await session.new_receiver(source=as_jms_consumer(missing)).expect_refused()


@case("jms", "4.3", "A link to an address that does not exist is refused with amqp:not-found.")
async def a_missing_address_is_not_found(peer: Conversation) -> None:
    missing = peer.missing_address
    session = await connected_session(peer)
    await session.new_sender(missing).expect_refused("amqp:not-found")


@case("jms", "13.8", "An attach of the broker as sender has an initial-delivery-count.")
async def a_consumer_is_told_the_initial_delivery_count(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver(source=as_jms_consumer(peer.address))
    assert receiver.remote_attach is not None
    count = receiver.remote_attach.initial_delivery_count
    must(count >= 0, "an initial-delivery-count", "none")


@case("jms", "13.27", "A link that the client closes is closed by the broker, too.")
async def a_closing_detach_is_answered_with_closed(peer: Conversation) -> None:
    session = await connected_session(peer)
    for link in (await session.attach_sender(), await session.attach_receiver()):
        answer = await link.detach()
        must(answer.closed, "detach with closed=true", "closed=false")


# -- credit


@case("jms", "13.2", "A flow for a link carries its delivery-count.")
async def credit_carries_the_delivery_count(peer: Conversation) -> None:
    session = await connected_session(peer)
    await session.attach_sender()
    flow = await peer.expect(Flow, handle=lambda handle: handle >= 0)
    must(flow.delivery_count >= 0, "a delivery-count", "none")


async def drained(receiver: Receiver, credit: int) -> Flow:
    """Return the flow that answers a drain; no other frame may precede it."""
    start = receiver.delivery_count
    receiver.grant(credit, drain=True)
    flow = await receiver.session.peer.expect(
        Flow, handle=receiver.remote_handle, link_credit=0, skip=()
    )
    must(flow.delivery_count == start + credit, f"count {start + credit}", flow.delivery_count)
    return flow


@case("jms", "5.5", "A drain of an empty queue advances the delivery-count by all the credit.")
async def a_drain_of_nothing_is_answered(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver(source=as_jms_consumer(peer.address))
    await drained(receiver, 1000)


@case("jms", "5.5", "A drain is answered behind the messages that were there.")
async def a_drain_comes_behind_the_messages(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), *(message(b"%d" % at) for at in range(3)))
    receiver = await session.attach_receiver(source=as_jms_consumer(peer.address))
    receiver.grant(10, drain=True)
    for _ in range(3):
        receiver.settle(await receiver.receive())
    flow = await peer.expect(Flow, handle=receiver.remote_handle, skip=())
    must(flow.delivery_count == 10, "delivery-count=10", flow.delivery_count)
    must(flow.link_credit == 0, "link-credit=0", flow.link_credit)


@case("jms", "5.5", "After a drain new credit brings what comes later.")
async def a_link_goes_on_after_a_drain(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    receiver = await session.attach_receiver(source=as_jms_consumer(peer.address))
    await drained(receiver, 5)
    await send_all(sender, message(b"later"))
    must(await take_all(receiver) == [b"later"], "the message", "another")
    await drained(receiver, 7)


@case("jms", "5.5", "A drain that is asked for on outstanding credit ends that credit.")
async def outstanding_credit_can_be_drained(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver(source=as_jms_consumer(peer.address))
    receiver.grant(100)
    await peer.expect_nothing()
    await drained(receiver, 100)


@case("jms", "5.5", "What was accepted before a drain on another connection is found by it.")
async def a_drain_finds_what_was_acknowledged_before(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver(source=as_jms_consumer(peer.address))
    async with peer.another() as other:
        sender = await (await connected_session(other)).attach_sender()
        for number in range(5):
            await send_all(sender, message(b"%d" % number))
            found = await receive_all(receiver)
            for each in found:
                receiver.settle(each)
            must(bodies(found) == [b"%d" % number], f"message {number}", bodies(found))
    await peer.expect_nothing()


# -- deliveries


@case("jms", "5.6", "Delivery-ids of one session are consecutive over all of its links.")
async def delivery_ids_are_consecutive_in_a_session(peer: Conversation) -> None:
    session = await connected_session(peer)
    receivers = []
    for number in range(3):
        address = f"{peer.address}.{number}"
        sender = await session.attach_sender(address)
        await send_all(sender, *(message(b"%d" % at) for at in range(3)))
        receivers.append(await session.attach_receiver(address))
    ids = []
    for _ in range(3):
        for receiver in receivers:
            came = await receive_one(receiver)
            receiver.settle(came)
            assert came.delivery_id is not None
            ids.append(came.delivery_id)
    must(ids == list(range(ids[0], ids[0] + 9)), "nine consecutive delivery-ids", ids)
    await peer.expect_nothing()


@case("jms", "5.6", "Every delivery has a tag that no other unsettled one of its link has.")
async def deliveries_have_tags_of_their_own(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), *(message(b"") for _ in range(5)))
    receiver = await session.attach_receiver()
    tags = []
    for each in await received(receiver, 5):
        tags.append(each.tag)
        receiver.settle(each)
    must(None not in tags and len(set(tags)) == 5, "five different tags", tags)
    await peer.expect_nothing()


@case("jms", "5.6", "To a link that asks for settled deliveries they are sent settled.")
async def a_presettled_consumer_gets_settled_messages(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"settled"))
    receiver = await session.attach_receiver(snd_settle_mode=SND_SETTLED)
    came = await receive_one(receiver)
    if came.settled is not True:
        receiver.settle(came)
        await peer.expect_nothing()
    must(came.settled is True, "settled=true", came.settled)


@case("jms", "13.3", "A sent message is answered settled and with a state, not by settling alone.")
async def an_outcome_is_never_left_out(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    told = await sender.send(message(b""))
    must(told.settled, "settled=true", "settled=false")
    must(isinstance(told.state, Accepted), "state=accepted", told.state)
    receiver = await session.attach_receiver()
    must(await take_all(receiver) == [b""], "the message", "another")


@case("jms", "13.13", "A tag may be used again as soon as its delivery has been settled.")
async def tags_may_be_used_again(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await sender.credit(3)
    for body in (b"1", b"2", b"3"):
        check_accepted(await sender.settled(sender.transfer(message(body), tag=b"\0")))
    receiver = await session.attach_receiver()
    found = await take_all(receiver)
    must(found == [b"1", b"2", b"3"], "three messages", found)


@case("jms", "13.13", "Settled messages may all have the empty tag.")
async def settled_messages_may_have_no_tag_to_speak_of(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender(snd_settle_mode=SND_SETTLED)
    await sender.credit(3)
    for body in (b"1", b"2", b"3"):
        sender.transfer(message(body), tag=b"", settled=True)
    receiver = await session.attach_receiver()
    found = [await receive_one(receiver) for _ in range(3)]
    for each in found:
        receiver.settle(each)
    must(bodies(found) == [b"1", b"2", b"3"], "three messages in order", bodies(found))
    await peer.expect_nothing()


@case("jms", "13.7", "A disposition for a delivery whose link has been detached is no error.")
async def released_may_come_behind_the_detach(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"one"), message(b"two"))
    receiver = await session.attach_receiver(source=as_jms_consumer(peer.address))
    prefetched = await received(receiver, 2)
    await receiver.detach()
    for each in prefetched:
        receiver.settle(each, RELEASED)
    other = await session.attach_receiver(name=peer.name("other"))
    found = await received(other, 2)
    for each in found:
        other.settle(each)
    must(bodies(found) == [b"one", b"two"], "both messages in order", bodies(found))
    await peer.expect_nothing()


@case("jms", "13.23", "Dispositions of deliveries that nobody knows are ignored, of either role.")
async def dispositions_of_unknown_deliveries_are_ignored(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.send(Disposition(role=RECEIVER, first=77, last=79, state=RELEASED))
    session.send(Disposition(role=SENDER, first=77, state=ACCEPTED))
    await peer.expect_nothing()


# -- messages


@case("jms", "13.15", "A message without a body is accepted, and comes without one.")
async def a_message_needs_no_body(peer: Conversation) -> None:
    payload = message_annotations(x_opt_jms_msg_type=Byte(0)) + properties(subject="no body")
    came = await there_and_back(peer, payload)
    codes = [code for code, _ in sections(came.payload) if code >= 0x75]
    must(codes == [], "no body", [hex(code) for code in codes])


@case("jms", "11.2", "The annotations of JMS come back as the types they were sent as.")
async def jms_annotations_keep_their_types(peer: Conversation) -> None:
    given = {"x_opt_jms_msg_type": Byte(5), "x_opt_jms_dest": Byte(0)}
    payload = message_annotations(**given) + section(0x77, "text")
    came = await there_and_back(peer, payload)
    for key, value in given.items():
        found = annotation(came, key.replace("_", "-"))
        must(found == value, f"{key}={value!r}", repr(found))


@case("jms", "11.3", "A priority above 9 counts as 9.")
async def high_priorities_are_one(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    sent = (4, 9, 200, 9)
    await send_all(sender, *(message(b"%d" % each, header(priority=each)) for each in sent))
    found = await take_all(await session.attach_receiver())
    if found == [b"%d" % each for each in sent]:
        raise NotApplicable(
            "messages come in the order they were sent, whatever their priority", Kind.IGNORED
        )
    wanted = [b"9", b"200", b"9", b"4"]
    must(found == wanted, "those above 8 in the order in which they were sent, then 4", found)


# -- redelivery


@case("jms", "13.21", "Released messages go back to their places in the queue.")
async def released_messages_keep_their_order(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), *(message(b"%d" % at) for at in range(6)))
    receiver = await session.attach_receiver()
    first = await received(receiver, 4)
    for place in (2, 0, 3, 1):
        receiver.settle(first[place], RELEASED)
    found = await take_all(receiver)
    must(found == [b"%d" % at for at in range(6)], "all in the order sent", found)


@case("jms", "13.21", "Two groups of messages that are returned one after the other mix in order.")
async def a_rollback_and_a_release_mix_in_order(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), *(message(b"%d" % at) for at in range(5)))
    receiver = await session.attach_receiver()
    got = await received(receiver, 4)
    for each in got[:2]:
        receiver.settle(each, Modified(delivery_failed=True))
    for each in got[2:]:
        receiver.settle(each, RELEASED)
    found = await receive_all(receiver)
    for each in found:
        receiver.settle(each)
    must(bodies(found) == [b"%d" % at for at in range(5)], "the order sent", bodies(found))
    counts = [header_of(each).delivery_count for each in found]
    must(counts == [1, 1, 0, 0, 0], "delivery-counts 1, 1, 0, 0, 0", counts)
    await peer.expect_nothing()


async def check_comes_back(peer: Conversation, got: list[Transfer]) -> None:
    """Check that a new connection receives the messages `got` again, in their order."""
    async with peer.another() as other:
        receiver = await (await connected_session(other)).attach_receiver()
        found = [await receive_one(receiver) for _ in got]
        for each in found:
            receiver.settle(each)
        must(bodies(found) == bodies(got), "the messages in order", bodies(found))
        await other.expect_nothing()


@case("jms", "13.22", "A session that ends returns what its links had, without any detach.")
async def the_end_of_a_session_returns_messages(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"one"), message(b"two"))
    got = await received(await session.attach_receiver(), 2)
    await session.end()
    await check_comes_back(peer, got)


@case("jms", "13.22", "A connection that closes returns what its links had.")
async def the_close_of_a_connection_returns_messages(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"one"), message(b"two"))
    got = await received(await session.attach_receiver(), 2)
    await peer.close()
    await check_comes_back(peer, got)


@case("jms", "6.1", "A rejected message is not delivered to the same consumer again.")
async def a_rejected_message_is_not_delivered_again(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"rejected"), message(b"next"))
    receiver = await session.attach_receiver()
    receiver.settle(await receive_one(receiver), Rejected())
    found = await take_all(receiver)
    must(found == [b"next"], "the next message alone", found)
