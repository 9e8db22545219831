"""Core 3.2: the sections of a message: which are forwarded, and which are refused."""

from __future__ import annotations

from broker.amqp.outcomes import RELEASED, Accepted, Modified
from broker.amqp.performatives import Close, Detach, End
from broker.amqp.terminus import Source
from broker.amqp.types import Map, Symbol, Timestamp, UInt, ULong

from .conversation import Conversation
from .exchange import (
    ALL_OUTCOMES,
    annotation,
    bare,
    header,
    header_of,
    message_annotations,
    now_ms,
    pass_time,
    properties,
    receive_all,
    receive_one,
    send_all,
    take_all,
    there_and_back,
)
from .frames import Disposition
from .harness import Case, case
from .messages import message, section, sections
from .steps import bodies, connected_session, must
from .verdict import Failed, Kind, NotApplicable

DATA = 0x75
SEQUENCE = 0x76
VALUE = 0x77
FOOTER = 0x78

MORTAL_MS = 300
"""The time to live, in ms, of messages that a link receives before it is over."""


# -- malformed messages


def refused(name: str, sentence: str, payload: bytes) -> Case:
    """Return a case: `payload` is no valid message, so the broker must not accept it."""

    async def run(peer: Conversation) -> None:
        session = await connected_session(peer)
        sender = await session.attach_sender()
        await send_all(sender, message(b"well-formed"))
        await sender.credit()
        sender.transfer(payload)
        told = await peer.receive()
        while not isinstance(told.body, Disposition | Detach | End | Close):
            told = await peer.receive()
        if isinstance(told.body, Disposition):
            if isinstance(told.body.state, Accepted):
                raise Failed("an outcome that refuses the message, or an error", "accepted")
        elif told.body.error is None:
            raise Failed("an error", f"{type(told.body).__name__.lower()} without one")

    return Case(name, "core", "3.2", sentence, run)


sections_out_of_order_are_refused = refused(
    "sections_out_of_order_are_refused",
    "A message whose properties come before its annotations is not accepted.",
    message(b"", properties(subject="first"), message_annotations(x_opt_second=True)),
)

a_header_behind_the_body_is_refused = refused(
    "a_header_behind_the_body_is_refused",
    "A message whose header comes behind its body is not accepted.",
    message(b"") + header(durable=True),
)

a_section_that_comes_twice_is_refused = refused(
    "a_section_that_comes_twice_is_refused",
    "A message with two properties sections is not accepted.",
    message(b"", properties(to="one"), properties(to="other")),
)

an_unknown_section_is_refused = refused(
    "an_unknown_section_is_refused",
    "A message with a section that the specification does not know is not accepted.",
    message(b"") + section(0x79, Map([])),
)

a_section_behind_the_footer_is_refused = refused(
    "a_section_behind_the_footer_is_refused",
    "A message that goes on behind its footer is not accepted.",
    message(b"") + section(FOOTER, Map([])) + section(DATA, b"more"),
)

a_body_of_two_kinds_is_refused = refused(
    "a_body_of_two_kinds_is_refused",
    "A message whose body has a data section and a value is not accepted.",
    message(b"") + section(VALUE, "more"),
)

two_values_are_refused = refused(
    "two_values_are_refused",
    "A message whose body has two amqp-value sections is not accepted.",
    section(VALUE, "one") + section(VALUE, "other"),
)

a_section_of_another_type_is_refused = refused(
    "a_section_of_another_type_is_refused",
    "A message whose properties are a map in place of a list is not accepted.",
    message(b"", section(0x73, Map([(Symbol("to"), "queue")]))),
)

a_field_of_another_type_is_refused = refused(
    "a_field_of_another_type_is_refused",
    "A message whose ttl is a string is not accepted.",
    message(b"", section(0x70, [True, None, "soon"])),
)

a_priority_beyond_its_type_is_refused = refused(
    "a_priority_beyond_its_type_is_refused",
    "A message whose priority is a number that no ubyte can be is not accepted.",
    message(b"", section(0x70, [True, UInt(300)])),
)

annotations_that_are_no_map_are_refused = refused(
    "annotations_that_are_no_map_are_refused",
    "A message whose annotations are a list is not accepted.",
    message(b"", section(0x72, ["x-opt-key", 1])),
)

data_that_is_no_binary_is_refused = refused(
    "data_that_is_no_binary_is_refused",
    "A message whose data section holds a string is not accepted.",
    section(DATA, "text"),
)

bytes_that_are_no_sections_are_refused = refused(
    "bytes_that_are_no_sections_are_refused",
    "A payload that does not begin with a described type is not accepted.",
    b"no message at all",
)

a_section_that_is_cut_off_is_refused = refused(
    "a_section_that_is_cut_off_is_refused",
    "A payload that ends amid a section is not accepted.",
    message(b"cut off here")[:-4],
)


# -- what is kept


def unchanged(name: str, sentence: str, payload: bytes) -> Case:
    """Return a case: the bare message of `payload` is delivered byte for byte."""

    async def run(peer: Conversation) -> None:
        came = await there_and_back(peer, payload)
        kept = bare(came.payload)
        must(kept == bare(payload), f"the bytes {bare(payload).hex()}", kept.hex())

    return Case(name, "core", "3.2", sentence, run)


ALL_PROPERTIES = properties(
    message_id=ULong(7),
    user_id=b"",
    to="elsewhere",
    subject="subject",
    reply_to="reply",
    correlation_id=b"correlation",
    content_type=Symbol("text/plain"),
    content_encoding=Symbol("identity"),
    absolute_expiry_time=Timestamp(4_000_000_000_000),
    creation_time=Timestamp(1),
    group_id="group",
    group_sequence=UInt(2**32 - 1),
    reply_to_group_id="other group",
)


def wide(code: int, constructor: int, content: bytes, *, count: int | None = None) -> bytes:
    """Return a section with its descriptor in 8 bytes, and size and count in 4 each.

    Shorter encodings of the same values would suffice.
    """
    inner = content if count is None else count.to_bytes(4) + content
    return b"\0\x80" + code.to_bytes(8) + bytes([constructor]) + len(inner).to_bytes(4) + inner


WIDE = (
    wide(0x73, 0xD0, b"\xb1\0\0\0\x02id", count=1)
    + wide(0x74, 0xD1, b"\xb1\0\0\0\x03age" + b"\x80" + (7).to_bytes(8), count=2)
    + wide(DATA, 0xB0, b"abc")
)

data_comes_out_unchanged = unchanged(
    "data_comes_out_unchanged",
    "A bare message with every property and several data sections is not changed.",
    message(
        b"one",
        message_annotations(x_opt_before=1),
        ALL_PROPERTIES,
        section(0x74, {"number": UInt(1), "text": "äöü", "none": None, "real": 1.5}),
    )
    + section(DATA, b"")
    + section(DATA, b"\xff" * 300),
)

sequences_come_out_unchanged = unchanged(
    "sequences_come_out_unchanged",
    "A bare message with several sequence sections is not changed.",
    section(SEQUENCE, [1, "two", None]) + section(SEQUENCE, []),
)

a_value_comes_out_unchanged = unchanged(
    "a_value_comes_out_unchanged",
    "A bare message with one value, a map of maps, is not changed.",
    section(VALUE, {"list": [1, [2, [3]]], "map": {"key": b"value"}, "symbol": Symbol("s")}),
)

wide_encodings_come_out_unchanged = unchanged(
    "wide_encodings_come_out_unchanged",
    "A bare message is not encoded anew, even where that would make it shorter.",
    WIDE,
)


@case("core", "3.2.3", "Message annotations are propagated to the receiver.")
async def message_annotations_are_propagated(peer: Conversation) -> None:
    payload = message(
        b"", message_annotations(x_opt_text="text", x_opt_number=UInt(7), x_opt_none=None)
    )
    came = await there_and_back(peer, payload)
    for key, value in (("x-opt-text", "text"), ("x-opt-number", UInt(7))):
        found = annotation(came, key)
        must(found == value, f"the annotation {key}={value!r}", found)


@case("core", "3.2.10", "An annotation whose key begins with x-opt- and is not known is ignored.")
async def an_unknown_optional_annotation_is_ignored(peer: Conversation) -> None:
    name = "x-opt-nobody-has-heard-of-this"
    both = section(0x71, Map([(Symbol(name), 1)])) + section(0x72, Map([(Symbol(name), 2)]))
    must(bodies([await there_and_back(peer, message(b"kept", both))]) == [b"kept"], "it", "other")


@case("core", "3.2", "The sections of a message that is sent on come in their order, each once.")
async def sections_are_sent_in_order(peer: Conversation) -> None:
    payload = message(
        b"",
        header(durable=False, ttl=60_000),
        section(0x71, Map([(Symbol("x-opt-hop"), 1)])),
        message_annotations(x_opt_key=1),
        properties(subject="subject"),
        section(0x74, {"key": "value"}),
    ) + section(FOOTER, Map([(Symbol("x-opt-sum"), 1)]))
    codes = [code for code, _ in sections((await there_and_back(peer, payload)).payload)]
    must(codes == sorted(set(codes)), "sections in order", [hex(code) for code in codes])


# -- the header


@case("core", "3.2.1", "A message sent as durable is durable to its receiver, or is not accepted.")
async def durable_is_passed_on(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender(source=Source(outcomes=list(ALL_OUTCOMES)))
    receiver = await session.attach_receiver()
    await send_all(sender, message(b"", header(durable=False)))
    receiver.settle(await receive_one(receiver))
    await sender.credit()
    sender.transfer(message(b"", header(durable=True)))
    told = await peer.receive()
    while not isinstance(told.body, Disposition | Detach):
        told = await peer.receive()
    if isinstance(told.body, Detach) or not isinstance(told.body.state, Accepted):
        return
    came = await receive_one(receiver)
    receiver.settle(came)
    must(header_of(came).durable, "durable=true", header_of(came))
    await peer.expect_nothing()


@case("core", "3.2.1", "A message without header is not durable, of priority 4, and never expires.")
async def a_missing_header_means_the_defaults(peer: Conversation) -> None:
    came = header_of(await there_and_back(peer, message(b"")))
    must(not came.durable, "durable=false", came)
    must(came.priority == 4, "priority=4", came)
    must(came.ttl is None, "no ttl", came)


@case("core", "3.2.1", "The priority of a message is told to its receiver.")
async def priority_is_passed_on(peer: Conversation) -> None:
    came = header_of(await there_and_back(peer, message(b"", header(priority=7))))
    must(came.priority == 7, "priority=7", came)


@case("core", "3.2.1", "delivery-count is 0 when a message is delivered for the first time.")
async def delivery_count_begins_at_zero(peer: Conversation) -> None:
    came = header_of(await there_and_back(peer, message(b"")))
    must(came.delivery_count == 0, "delivery-count=0", came)


@case("core", "3.2.1", "A ttl is computed from the message's arrival: it is not raised on the way.")
async def ttl_does_not_grow(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"", header(ttl=60_000)))
    await pass_time(peer, 50)
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    receiver.settle(came)
    ttl = header_of(came).ttl
    must(ttl is None or ttl <= 60_000, "a ttl of 60000 at most", ttl)
    await peer.expect_nothing()


@case("core", "3.2.1", "A ttl is reduced by the time that the message has waited (SHOULD).")
async def ttl_is_reduced_by_the_wait(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"", header(ttl=60_000)))
    await pass_time(peer, 50)
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    receiver.settle(came)
    await peer.expect_nothing()
    ttl = header_of(came).ttl
    if ttl is None or ttl > 60_000 - 50:
        # JMS computes JMSExpiration from it
        raise NotApplicable("the ttl is told as it came, or not at all", Kind.IGNORED)
    must(ttl >= 1, "a ttl of 1 at least", ttl)


@case("core", "3.2.1", "A message whose ttl has run out is not delivered.")
async def a_message_past_its_ttl_is_not_delivered(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await send_all(sender, message(b"mortal", header(ttl=10)), message(b"immortal"))
    await pass_time(peer, 100)
    receiver = await session.attach_receiver()
    found = await receive_all(receiver)
    for each in found:
        receiver.settle(each)
    must(bodies(found) == [b"immortal"], "the message without ttl alone", bodies(found))
    await peer.expect_nothing()


@case("jms", "11.2", "A message past its absolute-expiry-time has expired, and is not delivered.")
async def a_message_past_its_expiry_time_is_not_delivered(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    soon = properties(absolute_expiry_time=Timestamp(now_ms().value + 10))
    await send_all(sender, message(b"mortal", soon), message(b"immortal"))
    await pass_time(peer, 100)
    receiver = await session.attach_receiver()
    found = await receive_all(receiver)
    for each in found:
        receiver.settle(each)
    must(bodies(found) == [b"immortal"], "the message without expiry alone", bodies(found))
    await peer.expect_nothing()


@case("core", "3.2.1", "A message that expires while a link holds it does not come again.")
async def a_message_that_expires_while_held_does_not_come_again(peer: Conversation) -> None:
    session = await connected_session(peer)
    sent = [message(body, header(ttl=MORTAL_MS)) for body in (b"released", b"modified", b"closed")]
    await send_all(await session.attach_sender(), *sent, message(b"immortal"))
    receiver = await session.attach_receiver()
    other = await session.attach_receiver(name=peer.name("other"))
    held = [await receive_one(receiver), await receive_one(receiver), await receive_one(other)]
    must(bodies(held) == [b"released", b"modified", b"closed"], "three messages", bodies(held))
    await pass_time(peer, MORTAL_MS)
    receiver.settle(held[0], RELEASED)
    receiver.settle(held[1], Modified(delivery_failed=True))
    await other.detach()
    await peer.expect_nothing()
    found = await take_all(receiver)
    must(found == [b"immortal"], "the message without ttl alone", found)


@case("core", "3.2.1", "Distinct priorities, where there are any, are those of the specification.")
async def distinct_priorities_are_those_of_the_specification(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    sent = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 4, 5]
    await send_all(sender, *(message(b"%d" % each, header(priority=each)) for each in sent))
    receiver = await session.attach_receiver()
    found = await receive_all(receiver)
    for each in found:
        receiver.settle(each)
    came = [int(body) for body in bodies(found)]
    await peer.expect_nothing()
    if came == sent:
        raise NotApplicable(
            "messages come in the order they were sent, whatever their priority", Kind.IGNORED
        )
    possible = [ordered_by(count, sent) for count in range(2, 11)]
    must(came in possible, "an order by 2 to 10 priorities, each in the order sent", came)


def ordered_by(count: int, priorities: list[int]) -> list[int]:
    """Return `priorities` in the order of delivery by a broker with `count` distinct priorities."""
    lowest, highest = 5 - (count + 1) // 2, 4 + count // 2
    return sorted(priorities, key=lambda each: -min(max(each, lowest), highest))


@case("core", "3.2.1", "A message that another link has acquired is not first-acquirer any more.")
async def first_acquirer_ends_with_the_first(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b""))
    first = await session.attach_receiver()
    await receive_one(first)
    await first.detach()
    second = await session.attach_receiver(name=peer.name("second"))
    came = await receive_one(second)
    second.settle(came)
    must(not header_of(came).first_acquirer, "first-acquirer=false", header_of(came))
    await peer.expect_nothing()
