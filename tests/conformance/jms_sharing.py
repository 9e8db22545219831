"""Queues with several consumers and producers: groups, priorities, exclusive use, full queues."""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import RELEASED, Accepted, DeliveryState, Rejected
from broker.amqp.performatives import SND_SETTLED
from broker.amqp.types import Int, UInt

from .conversation import Conversation
from .exchange import (
    check_accepted,
    granted,
    properties,
    receive_one,
    send_all,
    state_in_words,
    take_all,
)
from .frames import Transfer
from .harness import case
from .jms_subscriptions import numbered, selecting
from .messages import body_of, message
from .session import Receiver, Sender, Session
from .steps import bodies, connected_session, must, received
from .verdict import Failed, Kind, NotApplicable

LAST_OF_GROUP: Final = 2**32 - 1
"""The group-sequence of a message that closes its group: JMSXGroupSeq -1."""

GIVEN_BACK: Final = 11
"""How often a message is released in a row; some brokers make the consumer wait for it then."""

FULL_WITH: Final = 1000
"""More messages than one of the small queues takes, which the user has named."""


# -- groups


def grouped(body: bytes, sequence: int = 0) -> bytes:
    """Return a message of the only group of a case."""
    return message(body, properties(group_id="group", group_sequence=UInt(sequence)))


async def take_one(receiver: Receiver) -> bytes:
    """Return the body of the next message, and accept it."""
    came = await receive_one(receiver)
    receiver.settle(came)
    return body_of(came.payload)


class Shared:
    """A queue with two consumers, of which `owner` has received a message of the group."""

    def __init__(self, sender: Sender, owner: Receiver, other: Receiver) -> None:
        self.sender: Final = sender
        self.owner: Final = owner
        self.other: Final = other


async def shared_by_two(peer: Conversation) -> Shared:
    """Return a queue with two consumers; raise NotApplicable if groups have no owner.

    A broker without groups gives a group's next message to any consumer with credit.
    """
    session = await connected_session(peer)
    sender = await session.attach_sender()
    owner = await session.attach_receiver(name=peer.name("owner"))
    await send_all(sender, grouped(b"first"))
    must(await take_one(owner) == b"first", "the first message", "another one")
    other = await session.attach_receiver(name=peer.name("other"))
    await send_all(sender, grouped(b"next"), message(b"of no group"))
    body = await take_one(other)
    if body == b"next":
        raise NotApplicable("the broker gives the messages of a group to anybody", Kind.IGNORED)
    must(body == b"of no group", "the message of no group", body)
    await peer.expect_nothing()
    must(await take_one(owner) == b"next", "the group's next message", "another one")
    return Shared(sender, owner, other)


@case("jms", "11.1", "The messages of a group go to one consumer, others to whoever wants them.")
async def a_group_stays_with_its_consumer(peer: Conversation) -> None:
    shared = await shared_by_two(peer)
    numbers = [b"%d" % number for number in range(5)]
    mixed = [each for number in numbers for each in (grouped(number), message(b"of no group"))]
    await send_all(shared.sender, *mixed)
    found = bodies(await received(shared.owner, 1))
    shared.other.grant(5)
    others = [await shared.other.receive() for _ in numbers]
    must(set(bodies(others)) == {b"of no group"}, "messages of no group", bodies(others))
    found += bodies(await received(shared.owner, 4))
    must(found == numbers, "the whole group in its order", found)


@case("jms", "11.1", "A group whose consumer goes moves to another one, in its order.")
async def a_group_moves_when_its_consumer_goes(peer: Conversation) -> None:
    shared = await shared_by_two(peer)
    await send_all(shared.sender, grouped(b"1"), grouped(b"2"), grouped(b"3"))
    await received(shared.owner, 2)
    shared.other.grant(3)
    await peer.expect_nothing()
    shared.other.grant(0)
    await peer.expect_nothing()
    await shared.owner.detach()
    found = [await take_one(shared.other) for _ in range(3)]
    must(found == [b"1", b"2", b"3"], "all that is left, in order", found)


@case(
    "jms", "11.1", "The last message of a group (JMSXGroupSeq -1) lets anybody have the next one."
)
async def a_closed_group_is_anybodys(peer: Conversation) -> None:
    shared = await shared_by_two(peer)
    await send_all(shared.sender, grouped(b"last", LAST_OF_GROUP))
    must(await take_one(shared.owner) == b"last", "the message that closes", "another one")
    await send_all(shared.sender, grouped(b"anew"))
    found = await take_one(shared.other)
    must(found == b"anew", "the next message, though its first consumer is there", found)


@case("jms", "13.21", "What a consumer gives back comes before the rest of its group.")
async def a_group_keeps_its_order_when_messages_return(peer: Conversation) -> None:
    shared = await shared_by_two(peer)
    await send_all(shared.sender, grouped(b"1"), grouped(b"2"), grouped(b"3"))
    first, second = await received(shared.owner, 2)
    shared.owner.settle(second, RELEASED)
    shared.owner.settle(first, RELEASED)
    found = bodies(await received(shared.owner, 3))
    must(found == [b"1", b"2", b"3"], "the group in its order", found)


@case("jms", "11.1", "A group is its consumer's, also if the selector of another takes it.")
async def a_group_is_not_for_the_selector_of_another(peer: Conversation) -> None:
    shared = await shared_by_two(peer)
    session = shared.sender.session
    selective = await selecting(session, "JMSXGroupID = 'group' OR x = 1")
    await send_all(shared.sender, grouped(b"1"), grouped(b"2"), numbered(1, b"of no group"))
    selective.grant(5)
    found = [body_of((await selective.receive()).payload)]
    must(found == [b"of no group"], "the message of no group that is selected", found)
    found = bodies(await received(shared.owner, 2))
    must(found == [b"1", b"2"], "the group for its consumer", found)
    await shared.owner.detach()
    found = bodies([await selective.receive() for _ in range(2)])
    must(found == [b"1", b"2"], "the group for the consumer that is left and takes it", found)


@case("jms", "13.21", "A message of a group that is given back often is not overtaken by the rest.")
async def a_group_waits_for_what_is_given_back_often(peer: Conversation) -> None:
    shared = await shared_by_two(peer)
    await send_all(shared.sender, grouped(b"1"), grouped(b"2"))
    for _ in range(GIVEN_BACK):
        [first] = await received(shared.owner, 1)
        must(body_of(first.payload) == b"1", "the first message of the group again", first)
        shared.owner.settle(first, RELEASED)
    found = bodies(await received(shared.owner, 2))
    must(found == [b"1", b"2"], "the group in its order", found)


# -- consumers with precedence


async def consumer(
    session: Session, name: str, *, credit: int, **wishes: object
) -> Receiver | None:
    """Return a consumer whose attach has these properties; None if it is refused."""
    link = session.new_receiver(
        name=session.peer.name(name),
        properties=wishes,
    )
    if await granted(link) is None:
        return None
    link.grant(credit)
    return link


async def who_gets(sender: Sender, *receivers: Receiver) -> Receiver:
    """Return the receiver that gets a message sent now, which it accepts."""
    peer = sender.session.peer
    await sender.credit()
    sender.transfer(message(b"whose"), settled=True)
    came = await peer.expect(Transfer)
    [taker] = [each for each in receivers if each.remote_handle == came.handle]
    taker.settle(came)
    return taker


@case("own", "priority", "A message goes to the consumer of highest priority that has credit.")
async def the_higher_consumer_comes_first(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender(snd_settle_mode=SND_SETTLED)
    low = await consumer(session, "low", credit=5, priority=Int(1))
    high = await consumer(session, "high", credit=2, priority=Int(2))
    if low is None or high is None:
        raise NotApplicable("the broker refuses consumers with a priority", Kind.NOT_OFFERED)
    first = [await who_gets(sender, low, high) for _ in range(2)]
    if first[0] is low:
        raise NotApplicable(
            "the broker takes no notice of the priority of a consumer", Kind.NOT_OFFERED
        )
    must(first[1] is high, "the second message for the consumer of higher priority", "the other")
    third = await who_gets(sender, low, high)
    must(third is low, "the third message for the one that has credit", "the other")
    high.grant(1)
    fourth = await who_gets(sender, low, high)
    must(fourth is high, "the fourth message for whom there is credit again", "the other")


@case("own", "exclusive", "Others stand by while an exclusive consumer is there, and follow it.")
async def an_exclusive_consumer_is_alone(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender(snd_settle_mode=SND_SETTLED)
    sole = await consumer(session, "sole", credit=2, exclusive=True)
    second = await consumer(session, "second", credit=2, exclusive=True)
    if sole is None or second is None:
        raise NotApplicable("the broker lets nobody wait for its turn", Kind.NOT_OFFERED)
    found = [await who_gets(sender, sole, second) for _ in range(2)]
    if second in found:
        raise NotApplicable("the broker takes no notice of exclusive consumers", Kind.NOT_OFFERED)
    sender.transfer(message(b"after both"), settled=True)
    await peer.expect_nothing()
    second.grant(0)
    await peer.expect_nothing()
    await sole.detach()
    body = await take_one(second)
    must(body == b"after both", "what the first had no credit for", body)


# -- full queues


async def fill(sender: Sender) -> int:
    """Send while there is credit; return the number of messages, all of them accepted.

    Raise Failed after FULL_WITH messages: the user says that the queue is smaller.
    """
    for sent in range(FULL_WITH):
        if sender.link_credit <= 0:
            await sender.session.peer.expect_nothing()
        if sender.link_credit <= 0:
            return sent
        check_accepted(await sender.settled(sender.transfer(message(b"%d" % sent))))
    raise Failed(f"no credit any more, for less than {FULL_WITH} messages", "credit for more")


@case("own", "full", "A full queue holds its producers up by credit alone, until there is room.")
async def a_full_queue_gives_no_credit(peer: Conversation) -> None:
    address = peer.blocking_address
    session = await connected_session(peer)
    receiver = await session.attach_receiver(address)
    await take_all(receiver)
    sender = await session.attach_sender(address)
    await sender.credit()
    count = await fill(sender)
    elsewhere = await session.attach_sender()
    await send_all(elsewhere, message(b"of another queue"))
    found = [await take_one(receiver) for _ in range(count)]
    must(found == [b"%d" % at for at in range(count)], f"all {count} messages", found)
    await send_all(sender, message(b"again"))
    must(await take_one(receiver) == b"again", "the message that found room", "another one")


@case("own", "full", "A full queue that rejects says amqp:resource-limit-exceeded; the link stays.")
async def a_full_queue_rejects(peer: Conversation) -> None:
    address = peer.rejecting_address
    session = await connected_session(peer)
    receiver = await session.attach_receiver(address)
    await take_all(receiver)
    sender = await session.attach_sender(address)
    count, state = await fill_until_rejected(sender)
    limit = f"a rejection after less than {FULL_WITH} messages"
    must(isinstance(state, Rejected), limit, state_in_words(state))
    assert isinstance(state, Rejected)
    condition = "none" if state.error is None else state.error.condition
    must(condition == "amqp:resource-limit-exceeded", "amqp:resource-limit-exceeded", condition)
    found = await take_all(receiver)
    must(found == [b"%d" % at for at in range(count)], "what was accepted", found)
    await send_all(sender, message(b"again"))
    found = await take_all(receiver)
    must(found == [b"again"], "the message that found room", found)


async def fill_until_rejected(sender: Sender) -> tuple[int, DeliveryState | None]:
    """Send until a message is not accepted, or FULL_WITH are; return their number, the last state.

    Their bodies are the numbers from 0 on.
    """
    count = 0
    state = (await sender.send(message(b"0"))).state
    while isinstance(state, Accepted) and count < FULL_WITH:
        count += 1
        state = (await sender.send(message(b"%d" % count))).state
    return count, state
