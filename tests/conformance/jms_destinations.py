"""Destinations for a JMS client: topics, temporary ones, browsers.

The clauses are sections of `docs/design/jms-clients.md` (5, 8, 9).
"""

from __future__ import annotations

from broker.amqp.outcomes import Modified
from broker.amqp.performatives import SND_SETTLED, Flow
from broker.amqp.terminus import LINK_DETACH, Source, Target
from broker.amqp.types import Described, ULong

from .conversation import Conversation
from .exchange import (
    ALL_OUTCOMES,
    check_empty,
    check_one_name_is_two_nodes,
    granted,
    header_of,
    queue,
    receive_all,
    receive_one,
    send_all,
    take_all,
    unless_not_offered,
)
from .harness import case
from .messages import message
from .session import Receiver, Sender, Session
from .steps import bodies, connected_session, must
from .verdict import Failed, Kind, NotApplicable


def as_jms_consumer(address: str, kind: str = "queue") -> Source:
    """Return the source of a JMS consumer (5.1)."""
    return Source(
        address=address,
        expiry_policy=LINK_DETACH,
        default_outcome=Modified(delivery_failed=True),
        outcomes=list(ALL_OUTCOMES),
        capabilities=[kind],
    )


def topic_of(peer: Conversation) -> str:
    """Return the address of a topic that only this case uses."""
    return peer.topic_address


async def publisher(session: Session) -> Sender:
    """Return a link to the topic of the case; some brokers create a topic for a publisher only."""
    topic = Target(address=topic_of(session.peer), capabilities=["topic"])
    return await session.attach_sender(target=topic)


async def subscribe(session: Session, name: str) -> Receiver:
    """Return a consumer of the topic of the case."""
    topic = as_jms_consumer(topic_of(session.peer), "topic")
    link = session.new_receiver(source=topic, name=session.peer.name(name))
    await unless_not_offered(link)
    return link


# -- topics and browsers


@case("jms", "14", "Every subscriber of a topic gets a message, and none that came before it.")
async def a_topic_has_many_subscribers(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await publisher(session)
    early = await subscribe(session, "early")
    await send_all(sender, message(b"one"))
    late = await subscribe(session, "late")
    await send_all(sender, message(b"two"))
    found = await take_all(early)
    must(found == [b"one", b"two"], "both messages for the early one", found)
    found = await take_all(late)
    must(found == [b"two"], "the second message for the late one", found)


@case("jms", "13.16", "A queue and a topic of one name are two nodes.")
async def a_queue_is_not_the_topic_of_its_name(peer: Conversation) -> None:
    check_one_name_is_two_nodes(peer)
    session = await connected_session(peer)
    name = peer.name("both")
    queue_address = peer.options.queue_address(name)
    on_queue = await session.attach_receiver(queue_address)
    topic = session.new_receiver(
        source=as_jms_consumer(peer.options.topic_address(name), "topic"),
        name=peer.name("subscriber"),
    )
    if await granted(topic) is None:
        raise NotApplicable(
            "the broker does not let a queue and a topic have one name", Kind.NOT_OFFERED
        )
    await send_all(await session.attach_sender(queue_address), message(b"to the queue"))
    found = await take_all(topic)
    must(found == [], "nothing at the topic", found)
    found = await take_all(on_queue)
    must(found == [b"to the queue"], "the message at the queue", found)


async def browse(session: Session) -> Receiver:
    """Return a browser of the queue of the case, attached as a JMS client does (9)."""
    link = session.new_receiver(
        source=queue(session.peer.address, distribution_mode="copy", expiry_policy=LINK_DETACH),
        name=session.peer.name("browser"),
        snd_settle_mode=SND_SETTLED,
    )
    await unless_not_offered(link)
    return link


@case("jms", "9", "A browser gets every message once, settled, and then the answer to its drain.")
async def a_browser_sees_every_message_once(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await send_all(sender, message(b"one"), message(b"two"))
    browser = await browse(session)
    seen = await receive_all(browser)
    must(bodies(seen) == [b"one", b"two"], "both messages", bodies(seen))
    must(all(each.settled is True for each in seen), "settled=true", "settled=false")
    await check_empty(browser)
    found = await take_all(await session.attach_receiver())
    must(found == [b"one", b"two"], "both messages still in the queue", found)


@case(
    "jms",
    "9",
    "A browser whose credit is renewed sees nothing twice. Whether it goes on with what came later"
    " is a note: JMS leaves that open.",
)
async def a_browser_goes_on(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await send_all(sender, message(b"one"))
    browser = await browse(session)
    seen = bodies(await receive_all(browser))
    must(seen == [b"one"], "the message that is there", seen)
    await send_all(sender, message(b"two"))
    more = bodies(await receive_all(browser))
    found = await take_all(await session.attach_receiver())
    must(found == [b"one", b"two"], "both messages still in the queue", found)
    if not more:
        raise NotApplicable("a browser ends with what was there first", Kind.DID_NOT_HAPPEN)
    must(more == [b"two"], "what came later, or nothing", more)


@case("jms", "9", "A browser changes nothing: its messages count as delivered to nobody.")
async def browsing_is_not_delivering(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"one"))
    browser = await browse(session)
    await receive_all(browser)
    await browser.detach()
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    receiver.settle(came)
    must(header_of(came).delivery_count == 0, "delivery-count=0", header_of(came))
    await peer.expect_nothing()


@case("jms", "9", "A drain by a browser waits for messages that the session's window keeps back.")
async def a_browsers_drain_waits_for_the_window(peer: Conversation) -> None:
    session = await connected_session(peer)
    sent = [b"%d" % number for number in range(5)]
    await send_all(await session.attach_sender(), *(message(each) for each in sent))
    narrow = await peer.begin(1, incoming_window=2)
    browser = await browse(narrow)
    browser.grant(10, drain=True, incoming_window=2)
    seen = [await browser.receive() for _ in range(2)]
    await peer.expect_nothing()
    must(browser.link_credit == 8, "a credit of 8 until the window is open", browser.link_credit)
    narrow.flow()
    seen += [await browser.receive() for _ in range(3)]
    must(bodies(seen) == sent, "all messages", bodies(seen))
    while browser.link_credit > 0:
        await peer.expect(Flow)
    await narrow.end()
    await take_all(await session.attach_receiver())


# -- temporary destinations


async def temporary(session: Session, kind: str = "queue") -> tuple[Sender, str]:
    """Create a temporary destination as a JMS client does (8); return its link and address.

    The destination exists as long as the link.
    """
    link = session.new_sender(
        name=session.peer.name(f"temp-{kind}-creator"),
        target=Target(
            dynamic=True,
            expiry_policy=LINK_DETACH,
            dynamic_node_properties={"lifetime-policy": Described(ULong(0x2B), [])},
            capabilities=[f"temporary-{kind}"],
        ),
    )
    attach = await unless_not_offered(link)
    assert isinstance(attach.target, Target)
    if not attach.target.address:
        raise Failed("a target with the address of the node", "none")
    return link, attach.target.address


@case(
    "jms",
    "8",
    "Another connection may send to a temporary queue: that is how requests are answered.",
)
async def anybody_may_send_to_a_temporary_queue(peer: Conversation) -> None:
    session = await connected_session(peer)
    _, address = await temporary(session)
    receiver = await session.attach_receiver(source=as_jms_consumer(address, "temporary-queue"))
    async with peer.another() as other:
        target = Target(address=address, capabilities=["temporary-queue"])
        await send_all(
            await (await connected_session(other)).attach_sender(target=target), message(b"reply")
        )
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"reply"], "the reply", bodies([came]))
    await peer.expect_nothing()


@case("jms", "8", "Another connection may not consume from a temporary queue.")
async def nobody_else_consumes_from_a_temporary_queue(peer: Conversation) -> None:
    session = await connected_session(peer)
    creator, address = await temporary(session)
    source = as_jms_consumer(address, "temporary-queue")
    async with peer.another() as other:
        await (await connected_session(other)).new_receiver(source=source).expect_refused()
    await send_all(creator, message(b"for its owner"))
    found = await take_all(await session.attach_receiver(source=source))
    must(found == [b"for its owner"], "the message, for the connection that made it", found)


@case("jms", "8", "A temporary queue is gone when its connection is lost.")
async def a_temporary_queue_ends_with_its_connection(peer: Conversation) -> None:
    async with peer.another() as other:
        session = await connected_session(other)
        creator, address = await temporary(session)
        source = as_jms_consumer(address, "temporary-queue")
        await send_all(creator, message(b"served"), message(b"lost"))
        receiver = await session.attach_receiver(source=source)
        came = await receive_one(receiver)
        receiver.settle(came)
        must(bodies([came]) == [b"served"], "the first message", bodies([came]))
        await other.lose_socket()
    async with peer.another() as third:
        link = (await connected_session(third)).new_receiver(source=source)
        if await granted(link) is not None:
            await check_empty(link)


@case("jms", "8", "A temporary topic gives every subscriber of its connection each message.")
async def a_temporary_topic_has_many_subscribers(peer: Conversation) -> None:
    session = await connected_session(peer)
    creator, address = await temporary(session, "topic")
    source = as_jms_consumer(address, "temporary-topic")
    links = [
        await session.attach_receiver(source=source, name=peer.name(f"subscriber-{number}"))
        for number in range(2)
    ]
    target = Target(address=address, capabilities=["temporary-topic"])
    await send_all(await session.attach_sender(target=target), message(b"to all"))
    for link in links:
        found = await take_all(link)
        must(found == [b"to all"], "the message", found)
    assert creator.handle == 0
