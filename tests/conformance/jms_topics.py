"""Topics with binding keys (`exchange/binding` addresses), and topics with wildcards.

The former are SHARED's; the latter are this project's own, which follow from the former. Neither is
a rule for a broker that does not know them, which one message finds out.
"""

from __future__ import annotations

from broker.amqp.errors import INVALID_FIELD, NOT_FOUND
from broker.amqp.terminus import Target

from .conversation import Conversation
from .exchange import granted, properties, send_all, take_all
from .harness import case
from .jms_destinations import as_jms_consumer, topic_of
from .messages import message
from .relay import addressed, with_relay
from .session import Receiver, Sender, Session
from .steps import connected_session, must
from .verdict import Kind, NotApplicable


def on_topic(body: bytes, subject: str | None = None) -> bytes:
    """Return a message with a subject, which is its key if its address has none."""
    return message(body, properties(subject=subject))


async def publisher(session: Session, address: str) -> Sender:
    return await session.attach_sender(target=Target(address=address, capabilities=["topic"]))


async def subscriber(session: Session, address: str) -> Receiver:
    """Return a subscriber; raise NotApplicable if the broker refuses it."""
    link = session.new_receiver(source=as_jms_consumer(address, "topic"))
    if await granted(link) is None:
        raise NotApplicable(f"the broker has no topics like {address}", Kind.NOT_OFFERED)
    return link


async def check_takes(link: Receiver, *wanted: bytes) -> None:
    """Check that a drain brings exactly these bodies, and accept them."""
    found = await take_all(link)
    must(found == list(wanted), f"{list(wanted)} for {link.name}", found)


async def with_keys(peer: Conversation) -> tuple[Session, str]:
    """Return a session and a topic; raise NotApplicable if the broker has no binding keys."""
    if "/" in peer.options.topic_template:
        raise NotApplicable("a topic's address has a slash without a key", Kind.NOT_OFFERED)
    session = await connected_session(peer)
    probe, topic = peer.options.topic_address(peer.name("probe")), topic_of(peer)
    sender = await publisher(session, probe)
    plain = await subscriber(session, probe)
    link = await subscriber(session, f"{probe}/key")
    await send_all(sender, on_topic(b"probe", "key"))
    await check_takes(plain, b"probe")
    if await take_all(link) != [b"probe"]:
        raise NotApplicable("the broker has no exchange/binding addresses", Kind.NOT_OFFERED)
    return session, topic


async def with_wildcards(peer: Conversation) -> tuple[Session, str]:
    """Return a session and a topic; raise NotApplicable if the broker has no wildcards."""
    session = await connected_session(peer)
    probe, topic = peer.options.topic_address(peer.name("probe")), topic_of(peer)
    sender = await publisher(session, f"{probe}.word")
    plain = await subscriber(session, f"{probe}.word")
    link = await subscriber(session, f"{probe}.*")
    await send_all(sender, message(b"probe"))
    await check_takes(plain, b"probe")
    if await take_all(link) != [b"probe"]:
        raise NotApplicable("the broker has no hierarchical topics", Kind.NOT_OFFERED)
    return session, topic


# -- binding keys


@case("shared", "binding", "A subscriber to topic/key gets what has that key, no other messages.")
async def a_binding_key_takes_its_messages(peer: Conversation) -> None:
    session, topic = await with_keys(peer)
    one, other = await subscriber(session, f"{topic}/a"), await subscriber(session, f"{topic}/b")
    sender = await publisher(session, topic)
    await send_all(sender, on_topic(b"1", "a"), on_topic(b"2", "b"), on_topic(b"3"))
    await check_takes(one, b"1")
    await check_takes(other, b"2")


@case("shared", "binding", "A subscriber without a key gets everything, whatever its key.")
async def a_subscriber_without_a_key_gets_everything(peer: Conversation) -> None:
    session, topic = await with_keys(peer)
    link = await subscriber(session, topic)
    sender = await publisher(session, f"{topic}/a")
    await send_all(sender, message(b"1"))
    sender = await publisher(session, topic)
    await send_all(sender, on_topic(b"2", "b"), message(b"3"))
    await check_takes(link, b"1", b"2", b"3")


@case("shared", "binding", "The key in the address of a sender comes before the subject.")
async def the_key_of_the_target_comes_before_the_subject(peer: Conversation) -> None:
    session, topic = await with_keys(peer)
    one, other = await subscriber(session, f"{topic}/a"), await subscriber(session, f"{topic}/b")
    sender = await publisher(session, f"{topic}/a")
    await send_all(sender, on_topic(b"1", "b"))
    await check_takes(one, b"1")
    await check_takes(other)


@case("shared", "binding", "The key of a message to the relay is behind the topic in its `to`.")
async def the_relay_takes_the_key_of_to(peer: Conversation) -> None:
    async with peer.another() as other:
        await with_keys(other)
    session, relay = await with_relay(peer)
    topic = topic_of(peer)
    link = await subscriber(session, f"{topic}/a")
    await send_all(
        relay, addressed(f"{topic}/a", b"1", kind=1), addressed(f"{topic}/b", b"2", kind=1)
    )
    await check_takes(link, b"1")


@case("shared", "binding", "A key on a topic that is not there, nor made: amqp:not-found.")
async def a_key_on_a_missing_topic_is_not_found(peer: Conversation) -> None:
    missing = peer.missing_address
    async with peer.another() as other:
        await with_keys(other)
    session = await connected_session(peer)
    source = as_jms_consumer(f"{missing}/key", "topic")
    await session.new_receiver(source=source).expect_refused(NOT_FOUND)


@case("shared", "binding", "A queue's name may have a slash in it: there, it means nothing.")
async def a_slash_in_a_queue_is_a_slash(peer: Conversation) -> None:
    session = await connected_session(peer)
    name = peer.name("queue")
    both = [
        await session.attach_receiver(source=as_jms_consumer(f"{name}/{part}"))
        for part in ("a", "b")
    ]
    target = Target(address=f"{name}/a", capabilities=["queue"])
    await send_all(await session.attach_sender(target=target), message(b"1"))
    await check_takes(both[0], b"1")
    await check_takes(both[1])


# -- wildcards


@case("own", "wildcards", "A star in a subscriber's address stands for one word.")
async def a_star_is_one_word(peer: Conversation) -> None:
    session, topic = await with_wildcards(peer)
    link = await subscriber(session, f"{topic}.*.end")
    for address in (f"{topic}.a.end", f"{topic}.end", f"{topic}.a.b.end", f"{topic}.b.end"):
        await send_all(await publisher(session, address), message(address.encode()))
    await check_takes(link, f"{topic}.a.end".encode(), f"{topic}.b.end".encode())


@case("own", "wildcards", "A hash in a subscriber's address stands for any number of words.")
async def a_hash_is_any_number_of_words(peer: Conversation) -> None:
    session, topic = await with_wildcards(peer)
    link = await subscriber(session, f"{topic}.#.end")
    wanted = [f"{topic}.end", f"{topic}.a.end", f"{topic}.a.b.end"]
    for address in (*wanted, f"{topic}.a", f"{topic}.end.a"):
        await send_all(await publisher(session, address), message(address.encode()))
    await check_takes(link, *[address.encode() for address in wanted])


@case("own", "wildcards", "A key may have wildcards, too, and a pattern of topics a key behind it.")
async def a_key_may_have_wildcards(peer: Conversation) -> None:
    async with peer.another() as other:
        await with_keys(other)
    session, topic = await with_wildcards(peer)
    on_one = await subscriber(session, f"{topic}.a/k.*")
    on_many = await subscriber(session, f"{topic}.*/#.l")
    for name, key in (("a", "k.l"), ("a", "k.m"), ("b", "k.l"), ("a", "k")):
        sender = await publisher(session, f"{topic}.{name}")
        await send_all(sender, on_topic(f"{name} {key}".encode(), key))
    await check_takes(on_one, b"a k.l", b"a k.m")
    await check_takes(on_many, b"a k.l", b"b k.l")


@case("own", "wildcards", "A message comes once, however many ways a pattern fits its topic.")
async def a_pattern_that_fits_twice_gives_once(peer: Conversation) -> None:
    session, topic = await with_wildcards(peer)
    link = await subscriber(session, f"{topic}.#.a.#")
    await send_all(await publisher(session, f"{topic}.a.a.a"), message(b"1"))
    await check_takes(link, b"1")


@case("own", "wildcards", "Nobody publishes to a pattern: amqp:invalid-field.")
async def nobody_publishes_to_a_pattern(peer: Conversation) -> None:
    session, topic = await with_wildcards(peer)
    target = Target(address=f"{topic}.*", capabilities=["topic"])
    await session.new_sender(target=target).expect_refused(INVALID_FIELD)


@case("own", "wildcards", "A pattern with more than two hashes is refused: amqp:invalid-field.")
async def a_pattern_has_two_hashes_at_most(peer: Conversation) -> None:
    session, topic = await with_wildcards(peer)
    source = as_jms_consumer(f"{topic}.#.a.#.b.#", "topic")
    await session.new_receiver(source=source).expect_refused(INVALID_FIELD)


@case(
    "own", "wildcards", "A queue's name may have a star or a hash in it: there, they mean nothing."
)
async def a_wildcard_in_a_queue_means_nothing(peer: Conversation) -> None:
    session = await connected_session(peer)
    name = peer.name("queue")
    link = await session.attach_receiver(source=as_jms_consumer(f"{name}.*"))
    for part in ("*", "a"):
        target = Target(address=f"{name}.{part}", capabilities=["queue"])
        await send_all(await session.attach_sender(target=target), message(part.encode()))
    await check_takes(link, b"*")
