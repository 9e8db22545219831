"""Steps of the cases on messages: send and receive, and take received messages apart."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from broker.amqp import descriptors
from broker.amqp.decode import take_value
from broker.amqp.errors import NOT_IMPLEMENTED
from broker.amqp.outcomes import Accepted, DeliveryState, Rejected
from broker.amqp.performatives import Attach, Close, Detach, End, Flow
from broker.amqp.terminus import Source, Target
from broker.amqp.types import Described, Integer, Map, Symbol, Timestamp, UByte, UInt, ULong

from .conversation import Conversation
from .frames import Disposition, Transfer, described
from .messages import section, sections
from .session import Receiver, Sender
from .steps import bodies, connected_session
from .verdict import Failed, Kind, NotApplicable

ALL_OUTCOMES: Final = [
    "amqp:accepted:list",
    "amqp:rejected:list",
    "amqp:released:list",
    "amqp:modified:list",
]

PROPERTIES: Final = (
    *("message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type"),
    *("content_encoding", "absolute_expiry_time", "creation_time", "group_id", "group_sequence"),
    "reply_to_group_id",
)


# -- sending and receiving


async def send_all(sender: Sender, *payloads: bytes) -> None:
    """Send messages; each must be accepted before the next one is sent."""
    for payload in payloads:
        check_accepted(await sender.send(payload))


def check_accepted(told: Disposition) -> None:
    """Raise Failed unless the outcome is accepted."""
    if not isinstance(told.state, Accepted):
        raise Failed("accepted", state_in_words(told.state))


def check_one_name_is_two_nodes(peer: Conversation) -> None:
    """Raise NotApplicable if the user said that addresses tell topics from queues."""
    if peer.options.topic_template != peer.options.queue_template:
        raise NotApplicable(
            "addresses tell topics from queues, as --address-template says", Kind.NOT_OFFERED
        )


async def receive_all(receiver: Receiver, credit: int = 50) -> list[Transfer]:
    """Return all messages that a drain brings (2.6.7), unsettled."""
    peer = receiver.session.peer
    receiver.grant(credit, drain=True)
    found: list[Transfer] = []
    while receiver.link_credit > 0:
        body = (await peer.receive()).body
        if isinstance(body, Transfer):
            found.append(body)
        elif not isinstance(body, Flow | Disposition):
            raise Failed("messages, and a flow that ends the drain", type(body).__name__.lower())
    return found


async def take_all(receiver: Receiver) -> list[bytes]:
    """Return the bodies of all messages that a drain brings, and accept them."""
    found = await receive_all(receiver)
    for each in found:
        if each.settled is not True:
            receiver.settle(each)
    await receiver.session.peer.expect_nothing()
    return bodies(found)


async def check_empty(receiver: Receiver) -> None:
    """Check that there is no message for the link."""
    found = await receive_all(receiver)
    if found:
        raise Failed("no message", f"{len(found)}, the first {bodies(found)[0]!r}")


async def there_and_back(peer: Conversation, payload: bytes) -> Transfer:
    """Return a message as it is delivered after it passed through a queue."""
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), payload)
    receiver = await session.attach_receiver()
    receiver.grant(1)
    came = await receiver.receive()
    receiver.settle(came)
    await peer.expect_nothing()
    return came


async def receive_one(receiver: Receiver) -> Transfer:
    """Return one message, for one credit."""
    receiver.grant(1)
    return await receiver.receive()


async def pass_time(peer: Conversation, milliseconds: int) -> None:
    """Keep the connection busy for that time."""
    until = time.monotonic() + milliseconds / 1000
    while time.monotonic() < until:
        await peer.expect_nothing()


async def granted(link: Sender | Receiver) -> Source | Target | None:
    """Return the broker's terminus; None if it refuses the link as it should (2.6.3).

    None also if it ends session or connection with an error, because of an invalid attach.
    """
    peer = link.session.peer
    came = await peer.receive()
    while isinstance(came.body, Flow):
        came = await peer.receive()
    attach = came.body
    if isinstance(attach, End | Close) and attach.error is not None:
        return None
    if not isinstance(attach, Attach):
        raise Failed("an attach, or a refusal", described(came.raw))
    made = attach.source if isinstance(link, Receiver) else attach.target
    if isinstance(made, Source | Target):
        return made
    if attach.fault is not None:
        raise Failed("an attach with a terminus that can be", attach.fault.description)
    await peer.expect(
        Detach, handle=link.remote_handle, closed=True, error=lambda error: error is not None
    )
    return None


async def unless_not_offered(link: Sender | Receiver) -> Attach:
    """Return the broker's attach; raise NotApplicable if it is refused as not-implemented.

    Raise Failed if it is refused with another condition than amqp:not-implemented.
    """
    peer = link.session.peer
    attach = await peer.expect(Attach, name=link.name, role=not link.role)
    if (attach.source if isinstance(link, Receiver) else attach.target) is not None:
        return attach
    if attach.fault is not None:
        raise Failed("an attach with a terminus that can be", attach.fault.description)
    detach = await peer.expect_until(Detach)
    condition = detach.error.condition if detach.error is not None else "no error"
    if condition == NOT_IMPLEMENTED:
        raise NotApplicable("the broker refuses it with amqp:not-implemented", Kind.NOT_OFFERED)
    raise Failed("the link", f"a refusal with {condition}")


# -- parts of messages to send


def header(
    *,
    durable: bool | None = None,
    priority: int | None = None,
    ttl: int | None = None,
    delivery_count: int | None = None,
) -> bytes:
    """Return a header section; a field that is None is null."""
    return section(
        descriptors.HEADER,
        [
            durable,
            None if priority is None else UByte(priority),
            None if ttl is None else UInt(ttl),
            None,
            None if delivery_count is None else UInt(delivery_count),
        ],
    )


def properties(**fields: object) -> bytes:
    """Return a properties section with these fields (3.2.4)."""
    assert fields.keys() <= set(PROPERTIES)
    return section(descriptors.PROPERTIES, [fields.get(name) for name in PROPERTIES])


def message_annotations(**pairs: object) -> bytes:
    """Return a section of message-annotations; `_` in a key stands for `-`."""
    return section(descriptors.MESSAGE_ANNOTATIONS, symbol_map(pairs))


def symbol_map(pairs: dict[str, object]) -> Map:
    return Map([(Symbol(key.replace("_", "-")), value) for key, value in pairs.items()])


def queue(address: str | None, **fields: object) -> Source:
    """Return a source of capability `queue` that allows every outcome."""
    given = {"address": address, "outcomes": list(ALL_OUTCOMES), "capabilities": ["queue"]} | fields
    return Source(**given)  # type: ignore[arg-type]


def target(address: str | None, *capabilities: str) -> Target:
    return Target(address=address, capabilities=list(capabilities))


def now_ms() -> Timestamp:
    return Timestamp(int(time.time() * 1000))


# -- parts of received messages


@dataclass(frozen=True)
class Header:
    """The header of a message; absent fields have the defaults of 3.2.1."""

    durable: bool
    priority: int
    ttl: int | None
    first_acquirer: bool
    delivery_count: int


def header_of(came: Transfer) -> Header:
    """Return the header of a received message."""
    fields: list[object] = []
    for code, value in sections(came.payload):
        if code == descriptors.HEADER:
            assert isinstance(value, list)
            fields = value
    durable, priority, ttl, first_acquirer, count = [*fields, None, None, None, None, None][:5]
    return Header(
        durable=durable is True,
        priority=4 if priority is None else number(priority),
        ttl=None if ttl is None else number(ttl),
        first_acquirer=first_acquirer is True,
        delivery_count=0 if count is None else number(count),
    )


def annotations_of(came: Transfer) -> Map:
    """Return the message-annotations of a received message; empty if there are none."""
    for code, value in sections(came.payload):
        if code == descriptors.MESSAGE_ANNOTATIONS and isinstance(value, Map):
            return value
    return Map([])


def annotation(came: Transfer, key: str) -> object:
    return annotations_of(came).get(Symbol(key))


def bare(payload: bytes) -> bytes:
    """Return the bare message (3.2): from the properties on, without the footer."""
    kept = b""
    at = 0
    while at < len(payload):
        value, behind = take_value(payload, at, len(payload))
        assert isinstance(value, Described)
        assert isinstance(value.descriptor, ULong)
        if descriptors.PROPERTIES <= value.descriptor.value < descriptors.FOOTER:
            kept += payload[at:behind]
        at = int(behind)
    return kept


def number(value: object) -> int:
    """Return a decoded integer of any width as an int; raise Failed for other values."""
    if isinstance(value, Integer):
        return value.value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Failed("a number", repr(value))


def state_in_words(state: DeliveryState | None) -> str:
    """Return a delivery state in words and, for a rejection, its condition."""
    if state is None:
        return "no state"
    if isinstance(state, Rejected) and state.error is not None:
        return f"rejected with {state.error.condition}"
    return type(state).__name__.lower()
