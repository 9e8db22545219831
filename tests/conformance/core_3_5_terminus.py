"""Core 3.5: sources and targets: dynamic nodes, distribution modes, filters, default outcomes."""

from __future__ import annotations

from librt.strings import BytesWriter

from broker.amqp.encode import put_value
from broker.amqp.outcomes import ACCEPTED, Modified
from broker.amqp.performatives import SND_SETTLED, Detach
from broker.amqp.terminus import Source, SourceFilter, Target
from broker.amqp.types import Array, Described, Symbol, UInt, ULong

from .conversation import Conversation
from .exchange import (
    ALL_OUTCOMES,
    check_empty,
    granted,
    header_of,
    queue,
    receive_all,
    receive_one,
    send_all,
)
from .frames import Transfer
from .harness import case
from .messages import message
from .session import Link, Receiver, Sender, Session
from .steps import bodies, connected_session, must
from .verdict import Failed, Kind, NotApplicable

LIFETIME_POLICY = "lifetime-policy"
DELETE_ON_CLOSE = Described(ULong(0x2B), [])
DELETE_ON_NO_LINKS = Described(ULong(0x2C), [])
DELETE_ON_NO_MESSAGES = Described(ULong(0x2D), [])
DELETE_ON_NO_LINKS_OR_MESSAGES = Described(ULong(0x2E), [])


# -- dynamic nodes (3.5.3, 3.5.4, 3.5.10)


def wished(policy: Described, **fields: object) -> dict[str, object]:
    """Return the fields of a terminus that requests a dynamic node with that lifetime policy."""
    return {
        "dynamic": True,
        "dynamic_node_properties": {LIFETIME_POLICY: policy},
        "capabilities": ["temporary-queue"],
    } | fields


async def answered(link: Sender | Receiver) -> Source | Target:
    """Return the terminus that the broker made; raise NotApplicable if it makes none."""
    made = await granted(link)
    if made is None:
        raise NotApplicable("the broker refuses to make the node", Kind.NOT_OFFERED)
    return made


async def dynamic_target(session: Session, policy: Described = DELETE_ON_CLOSE) -> Sender:
    """Return a link to its dynamic node; raise NotApplicable if its lifetime is another one."""
    link = session.new_sender(
        name=session.peer.name("creator"),
        target=Target(**wished(policy)),  # type: ignore[arg-type]
    )
    made = await answered(link)
    given = made.dynamic_node_properties.get(LIFETIME_POLICY)
    if policy is not DELETE_ON_CLOSE and given != policy:
        raise NotApplicable(
            "the broker gives the node another lifetime, and says so", Kind.NOT_OFFERED
        )
    return link


def address_of(link: Link) -> str:
    """Return the address of the broker's terminus; raise Failed if it has none."""
    attach = link.remote_attach
    assert attach is not None
    made = attach.target if isinstance(link, Sender) else attach.source
    assert isinstance(made, Source | Target)
    if not made.address:
        raise Failed("the address of the node that was made", "none")
    return made.address


@case("core", "3.5.4", "A dynamic target is answered with the address of the node that was made.")
async def a_dynamic_target_gets_an_address(peer: Conversation) -> None:
    session = await connected_session(peer)
    creator = await dynamic_target(session)
    assert creator.remote_attach is not None
    made = creator.remote_attach.target
    must(isinstance(made, Target) and made.dynamic, "dynamic=true", "dynamic=false")
    await send_all(creator, message(b"dynamic"))
    receiver = await session.attach_receiver(address_of(creator))
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"dynamic"], "the message through that node", bodies([came]))


@case("core", "3.5.3", "A dynamic source is answered with the address of the node that was made.")
async def a_dynamic_source_gets_an_address(peer: Conversation) -> None:
    session = await connected_session(peer)
    source = Source(**wished(DELETE_ON_CLOSE))  # type: ignore[arg-type]
    receiver = session.new_receiver(source=source)
    made = await answered(receiver)
    must(made.dynamic, "dynamic=true", "dynamic=false")
    sender = await session.attach_sender(address_of(receiver))
    await send_all(sender, message(b"dynamic"))
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"dynamic"], "the message through that node", bodies([came]))


@case(
    "own",
    "dynamic nodes",
    "Other connections of a user receive from a dynamic node that is no temporary destination.",
)
async def a_dynamic_node_may_be_shared(peer: Conversation) -> None:
    session = await connected_session(peer)
    generic = Target(**wished(DELETE_ON_CLOSE, capabilities=[]))  # type: ignore[arg-type]
    maker = session.new_sender(name=peer.name("generic"), target=generic)
    await answered(maker)
    temporary = await dynamic_target(session)
    async with peer.another() as other:
        second = await connected_session(other)
        receiver = await second.attach_receiver(address_of(maker))
        await send_all(maker, message(b"shared"))
        found = bodies([await receive_one(receiver)])
        must(found == [b"shared"], "the message, at the other connection", found)
        await second.new_receiver(address_of(temporary)).expect_refused()


@case("core", "3.5.4", "Every dynamic node has an address of its own.")
async def dynamic_nodes_have_different_addresses(peer: Conversation) -> None:
    session = await connected_session(peer)
    first = await dynamic_target(session)
    second = session.new_sender(target=Target(**wished(DELETE_ON_CLOSE)))  # type: ignore[arg-type]
    await answered(second)
    must(address_of(first) != address_of(second), "two addresses", address_of(first))


@case("core", "3.5.4", "A dynamic target has no address: one that is given is not what is made.")
async def a_dynamic_target_with_an_address_is_not_made(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = session.new_sender(
        target=Target(**wished(DELETE_ON_CLOSE, address=peer.name("mine")))  # type: ignore[arg-type]
    )
    if await granted(link) is None:
        return
    must(address_of(link) != peer.name("mine"), "a refusal, or an address of the broker's", "mine")


@case("core", "3.5.10", "A node that is deleted on close ends with the link that made it.")
async def a_node_ends_with_the_link_that_made_it(peer: Conversation) -> None:
    session = await connected_session(peer)
    creator = await dynamic_target(session)
    address = address_of(creator)
    await send_all(creator, message(b"served"), message(b"lost"))
    receiver = await session.attach_receiver(address)
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"served"], "the message through the node", bodies([came]))
    await receiver.detach()
    await creator.detach()
    link = session.new_receiver(address)
    if await granted(link) is not None:
        await check_empty(link)


@case("core", "3.5.10", "A node that is deleted on close tells the links that it still has.")
async def the_end_of_a_node_is_told_to_its_links(peer: Conversation) -> None:
    session = await connected_session(peer)
    creator = await dynamic_target(session)
    receiver = await session.attach_receiver(address_of(creator))
    session.send(Detach(handle=creator.handle, closed=True))
    await peer.expect_until(
        Detach, lambda body: body.handle == receiver.remote_handle and body.error is not None
    )


@case("core", "3.5.11", "A node that is deleted without links stays while another link is there.")
async def a_node_may_outlive_the_link_that_made_it(peer: Conversation) -> None:
    session = await connected_session(peer)
    creator = await dynamic_target(session, DELETE_ON_NO_LINKS)
    address = address_of(creator)
    receiver = await session.attach_receiver(address)
    await send_all(creator, message(b"kept"))
    await creator.detach()
    came = await receive_one(receiver)
    receiver.settle(came)
    await peer.expect_nothing()


@case("core", "3.5.12", "A node that is deleted without messages stays while it holds one.")
async def a_node_may_outlive_its_links(peer: Conversation) -> None:
    session = await connected_session(peer)
    creator = await dynamic_target(session, DELETE_ON_NO_MESSAGES)
    address = address_of(creator)
    await send_all(creator, message(b"kept"))
    await creator.detach()
    receiver = await session.attach_receiver(address)
    came = await receive_one(receiver)
    must(bodies([came]) == [b"kept"], "the message", bodies([came]))


@case("core", "3.5.13", "A node that is deleted without links and messages stays with either.")
async def a_node_may_wait_for_both_links_and_messages(peer: Conversation) -> None:
    session = await connected_session(peer)
    creator = await dynamic_target(session, DELETE_ON_NO_LINKS_OR_MESSAGES)
    address = address_of(creator)
    await send_all(creator, message(b"kept"))
    await creator.detach()
    receiver = await session.attach_receiver(address)
    came = await receive_one(receiver)
    receiver.settle(came)
    await peer.expect_nothing()


@case("core", "3.5.9", "A lifetime policy that is none is refused, or another one is answered.")
async def an_unknown_lifetime_policy_is_not_granted(peer: Conversation) -> None:
    session = await connected_session(peer)
    unknown = Described(Symbol("conformance:delete-on-whim:list"), [])
    link = session.new_sender(target=Target(**wished(unknown)))  # type: ignore[arg-type]
    made = await granted(link)
    if made is None:
        return
    given = made.dynamic_node_properties.get(LIFETIME_POLICY)
    must(given != unknown, "a refusal, or the policy that is in force", given)


# -- distribution modes (3.5.3, 3.5.7)


async def copying(session: Session, snd_settle_mode: int = 0) -> Receiver:
    """Return a link that copies (distribution-mode copy); raise NotApplicable if it moves."""
    source = queue(session.peer.address, distribution_mode="copy")
    link = session.new_receiver(source=source, snd_settle_mode=snd_settle_mode)
    made = await answered(link)
    assert isinstance(made, Source)
    if made.distribution_mode != "copy":
        raise NotApplicable("the broker does not copy from queues, and says so", Kind.NOT_OFFERED)
    return link


@case("core", "3.5.3", "A source of a node with several distribution modes tells which one it has.")
async def the_distribution_mode_is_told(peer: Conversation) -> None:
    session = await connected_session(peer)
    await copying(session)
    other = await session.attach_receiver(name=peer.name("moving"))
    assert other.remote_attach is not None
    assert other.remote_attach.source is not None
    mode = other.remote_attach.source.distribution_mode
    must(mode == "move", "distribution-mode=move, for the node knows copy as well", mode)


@case("core", "3.5.7", "Copying leaves a message where it is.")
async def copy_leaves_the_message(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"body"))
    browser = await copying(session, snd_settle_mode=SND_SETTLED)
    seen = await receive_all(browser)
    must(bodies(seen) == [b"body"], "the message", bodies(seen))
    receiver = await session.attach_receiver(name=peer.name("moving"))
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"body"], "the message again", bodies([came]))
    await peer.expect_nothing()


@case("core", "3.5.7", "A message that was moved to one link is not available to another.")
async def move_takes_the_message(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"body"))
    receiver = await session.attach_receiver(source=queue(peer.address, distribution_mode="move"))
    came = await receive_one(receiver)
    await check_empty(await session.attach_receiver(name=peer.name("other")))
    receiver.settle(came)
    await peer.expect_nothing()


@case("core", "3.5.7", "A distribution mode that is none is not answered as if it were in force.")
async def an_unknown_distribution_mode_is_not_granted(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = session.new_receiver(source=queue(peer.address, distribution_mode="conformance"))
    made = await granted(link)
    mode = made.distribution_mode if isinstance(made, Source) else None
    must(mode in (None, "move", "copy"), "a refusal, or the mode in force", mode)


# -- filters (3.5.8)


def filtered(address: str, value: object) -> Source:
    """Return a source with one filter, of any value."""
    out = BytesWriter()
    put_value(out, value)
    return queue(
        address,
        filter=[
            SourceFilter(key="conformance", descriptor=None, value=value, encoded=out.getvalue())
        ],
    )


@case("core", "3.5.3", "A filter that the broker does not know is not answered as if in force.")
async def an_unknown_filter_is_not_answered(peer: Conversation) -> None:
    session = await connected_session(peer)
    unknown = Described(Symbol("conformance:unknown-filter:string"), "x")
    link = session.new_receiver(source=filtered(peer.address, unknown))
    made = await granted(link)
    keys = [each.key for each in made.filter] if isinstance(made, Source) else []
    must("conformance" not in keys, "an attach without the filter", keys)


@case("core", "3.5.8", "A filter that is null filters nothing.")
async def a_null_filter_filters_nothing(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"body"))
    receiver = await session.attach_receiver(source=filtered(peer.address, None))
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"body"], "the message", bodies([came]))
    await peer.expect_nothing()


@case(
    "core", "3.5.8", "A filter that is neither null nor described is not answered as if in force."
)
async def a_filter_without_descriptor_is_not_answered(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = session.new_receiver(source=filtered(peer.address, "x = 1"))
    made = await granted(link)
    keys = [each.key for each in made.filter] if isinstance(made, Source) else []
    must("conformance" not in keys, "a refusal, or an attach without the filter", keys)


# -- outcomes (3.5.3)


@case("core", "3.5.3", "The outcomes that a source names are descriptors of outcomes.")
async def the_outcomes_of_a_source_are_outcomes(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver(source=queue(peer.address))
    assert receiver.remote_attach is not None
    assert receiver.remote_attach.source is not None
    source = receiver.remote_attach.source
    strange = [each for each in source.outcomes if each not in ALL_OUTCOMES]
    must(not strange, "outcomes of 3.4", strange)


@case("core", "3.5.3", "A source without default-outcome and outcomes supports accepted.")
async def accepted_is_supported_by_default(peer: Conversation) -> None:
    session = await connected_session(peer)
    source = Source(address="conformance", outcomes=[])
    sender = await session.attach_sender(source=source)
    await send_all(sender, message(b""))
    receiver = await session.attach_receiver()
    receiver.settle(await receive_one(receiver), ACCEPTED)
    await check_empty(receiver)


async def after_loss(peer: Conversation, default: Modified | None) -> Transfer:
    """Return the redelivery of a message whose first link was detached while it was unsettled."""
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"body"))
    receiver = await session.attach_receiver(source=queue(peer.address, default_outcome=default))
    await receive_one(receiver)
    await receiver.detach()
    other = await session.attach_receiver(name=peer.name("other"))
    came = await receive_one(other)
    other.settle(came)
    await peer.expect_nothing()
    return came


@case(
    "core", "3.5.3", "The default-outcome is used for what is unsettled when a source is destroyed."
)
async def the_default_outcome_counts_when_a_link_is_closed(peer: Conversation) -> None:
    came = await after_loss(peer, Modified(delivery_failed=True))
    must(header_of(came).delivery_count == 1, "delivery-count=1", header_of(came))


@case("core", "3.5.3", "What is unsettled when a source is destroyed is available again.")
async def an_unsettled_message_comes_back(peer: Conversation) -> None:
    came = await after_loss(peer, None)
    must(bodies([came]) == [b"body"], "the message again", bodies([came]))


@case("core", "3.5.3", "The default-outcome is used for what is settled without an outcome.")
async def the_default_outcome_counts_without_a_state(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"body"))
    default = Modified(delivery_failed=True)
    receiver = await session.attach_receiver(source=queue(peer.address, default_outcome=default))
    receiver.settle(await receive_one(receiver), None)
    again = await receive_one(receiver)
    receiver.settle(again)
    must(header_of(again).delivery_count == 1, "delivery-count=1", header_of(again))
    await peer.expect_nothing()


# -- invalid sources and targets (3.5.5, 3.5.6)


async def check_source_is_an_error(peer: Conversation, at: int, value: object) -> None:
    """Check that an attach is refused whose source has `value` in field number `at`."""
    session = await connected_session(peer)
    fields: list[object] = [peer.address, None, None, None, None, None, None, None, None, None]
    fields.append(Array(0xA3, [Symbol("queue")]))
    fields[at] = value
    source = Described(ULong(0x28), fields)
    name = peer.name("odd")
    attach = [name, UInt(0), True, None, None, source, Described(ULong(0x29), ["conformance"])]
    out = BytesWriter()
    put_value(out, Described(ULong(0x12), attach))
    peer.send_raw(out.getvalue(), channel=session.channel)
    await peer.expect_error()


@case("core", "3.5.5", "A terminus-durability that is none is refused.")
async def an_unknown_durability_is_refused(peer: Conversation) -> None:
    await check_source_is_an_error(peer, 1, UInt(3))


@case("core", "3.5.6", "An expiry-policy that is none is refused.")
async def an_unknown_expiry_policy_is_refused(peer: Conversation) -> None:
    await check_source_is_an_error(peer, 2, Symbol("whenever"))


@case("core", "3.5.3", "A default-outcome that is no outcome is refused.")
async def a_default_outcome_that_is_none_is_refused(peer: Conversation) -> None:
    await check_source_is_an_error(peer, 8, Described(ULong(0x23), [UInt(0), ULong(0)]))
