"""Core 2.6.1 to 2.6.6: names, handles, attaching, refusing, detaching and stealing of links."""

from __future__ import annotations

from broker.amqp.performatives import Attach, Close, Detach, End, Error, Flow
from broker.amqp.terminus import Target

from .conversation import Conversation
from .frames import Transfer, described
from .harness import case
from .messages import message
from .session import Receiver, Sender
from .steps import (
    bodies,
    connected_session,
    expect_harmless,
    must,
    next_frame,
    put,
    received,
    waiting,
)
from .verdict import Failed, Kind, NotApplicable

STOLEN = "amqp:link:stolen"
ERRANT_LINK = "amqp:session:errant-link"
HANDLE_IN_USE = "amqp:session:handle-in-use"


async def shared_container(peer: Conversation, other: Conversation) -> None:
    """Open two connections of one container; raise NotApplicable if the broker refuses that."""
    name = peer.name("one-container")
    await peer.open(container_id=name)
    try:
        await other.open(container_id=name)
        # a broker may refuse it by a close that comes behind its open
        await (await other.begin(1)).end()
    except Failed as failed:
        raise NotApplicable(
            f"a second connection of a container is refused: {failed}", Kind.NOT_OFFERED
        ) from None


async def attached_by_thief(link: Sender | Receiver) -> None:
    """Wait for the attach of a stolen name; raise NotApplicable if the broker refuses the theft."""
    attach = await link.session.peer.expect(Attach, name=link.name)
    if (attach.target if isinstance(link, Sender) else attach.source) is None:
        raise NotApplicable(
            "the broker refuses the second attach of a link, which it may", Kind.NOT_OFFERED
        )


# -- names


@case("core", "2.6.1", "A link that is attached again elsewhere closes the first one as stolen.")
async def second_attach_steals_a_link(peer: Conversation) -> None:
    async with peer.another() as other:
        await shared_container(peer, other)
        name = peer.name("stolen")
        first = await (await peer.begin()).attach_receiver(name=name)
        await attached_by_thief((await other.begin()).new_receiver(name=name))
        await peer.expect(
            Detach,
            handle=first.remote_handle,
            closed=True,
            error=lambda error: error is not None and error.condition == STOLEN,
        )


@case("core", "2.6.1", "A stolen sender's name works for the thief, and no more for the first.")
async def stolen_sender_works_for_the_thief(peer: Conversation) -> None:
    async with peer.another() as other:
        await shared_container(peer, other)
        name = peer.name("stolen")
        first = await (await peer.begin()).attach_sender(name=name)
        second = (await other.begin()).new_sender(name=name)
        await attached_by_thief(second)
        await peer.expect(
            Detach,
            handle=first.remote_handle,
            error=lambda error: error is not None and error.condition == STOLEN,
        )
        await second.send(message(b"of the thief"))
        left = await waiting(second.session)
        must(left == [b"of the thief"], "the thief's message", left)


@case("core", "2.6.1", "A link may be stolen by another session of the same connection.")
async def link_may_be_stolen_within_a_connection(peer: Conversation) -> None:
    name = peer.name("stolen")
    await (await connected_session(peer)).attach_sender(name=name)
    thief = (await peer.begin(1)).new_sender(name=name)
    detach = await peer.expect_until(Detach, lambda body: body.error is not None)
    must(detach.error is not None and detach.error.condition == STOLEN, STOLEN, detach.error)
    while thief.remote_attach is None:
        await peer.receive()
    await thief.send(message())


@case("core", "2.6.1", "A name is one for each direction: a sender does not steal a receiver.")
async def directions_have_names_of_their_own(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender(name=peer.name("both"))
    receiver = await session.attach_receiver(name=peer.name("both"))
    await sender.send(message(b"through"))
    came = await received(receiver, 1)
    must(bodies(came) == [b"through"], "the message", bodies(came))


@case("core", "2.6.1", "Containers do not steal each other's links.")
async def containers_have_names_of_their_own(peer: Conversation) -> None:
    async with peer.another() as other:
        session = await connected_session(peer)
        first = await session.attach_sender(name="conformance")
        await (await connected_session(other)).attach_sender(name="conformance")
        await first.send(message())


@case("core", "2.6.1", "A link's name may be long, and of any characters.")
async def names_may_be_long_and_of_any_characters(peer: Conversation) -> None:
    session = await connected_session(peer)
    for name in (peer.name("x" * 2000), peer.name("ein|Name ☃ 'x' <y>")):
        link = session.new_sender(name=name)
        await peer.expect(Attach, name=name)
        await link.credit()


# -- handles


@case("core", "2.6.2", "The broker gives each of its links on a session a handle of its own.")
async def handles_of_the_broker_differ(peer: Conversation) -> None:
    session = await connected_session(peer)
    handles = set()
    for handle in (9, 4):
        sender = await session.attach_sender(handle=handle, name=peer.name(f"s{handle}"))
        handles.add(sender.remote_handle)
    for handle in (200, 300):
        receiver = await session.attach_receiver(handle=handle, name=peer.name(f"r{handle}"))
        handles.add(receiver.remote_handle)
    must(len(handles) == 4, "four handles", handles)


@case(
    "core",
    "2.7.3",
    "An attach on a handle that is in use is answered at once by a close, or by an end as errors of"
    " sessions are (2.5.4), with handle-in-use.",
)
async def handle_in_use_is_an_error_of_its_session(peer: Conversation) -> None:
    session = await connected_session(peer)
    await (await session.attach_sender()).credit()
    session.new_receiver(name=peer.name("second"), handle=0)
    came = await peer.receive()
    while isinstance(came.body, Flow):
        came = await peer.receive()
    is_end = isinstance(came.body, End | Close)
    must(is_end, "an end or a close, and no attach before it", described(came.raw))
    error = came.body.error if isinstance(came.body, End | Close) else None
    told = "no error" if error is None else error.condition
    must(told == HANDLE_IN_USE, HANDLE_IN_USE, told)


async def expect_attach_and_detach(link: Sender) -> None:
    """Check the answers to a detach and to the attach of `link` after it, in either order."""
    attached = detached = False
    while not (attached and detached):
        came = (await next_frame(link.session.peer, but=Detach)).body
        attached = attached or (isinstance(came, Attach) and came.name == link.name)
        detached = detached or isinstance(came, Detach)


@case("core", "2.6.2", "A handle may be used again as soon as its link is detached.")
async def handle_may_be_used_again_at_once(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await session.attach_sender()
    for round_ in range(3):
        session.send(Detach(handle=0, closed=True))
        session.links.pop(0)
        link = session.new_sender(name=peer.name(f"round-{round_}"))
        await expect_attach_and_detach(link)
    await link.send(message())


@case("reliability", "C10", "A transfer on a handle that is not attached is an error.")
async def transfer_on_an_unattached_handle_is_an_error(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.send(Transfer(handle=3, payload=message()))
    await peer.expect_error()


@case("reliability", "C10", "A detach of a handle that is not attached does no harm.")
async def detach_of_an_unattached_handle_does_no_harm(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.send(Detach(handle=3, closed=True))
    await expect_harmless(peer)


@case("reliability", "C10", "A transfer on a link that we receive on is an error.")
async def transfer_on_a_receiver_is_an_error(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    session.send(Transfer(handle=receiver.handle, payload=message()))
    error = await peer.expect_error()
    condition = error.error.condition if error.error else ""
    must(condition != "amqp:internal-error", "an error that blames us", condition)


# -- attaching and refusing


@case("core", "2.6.3", "A sender's link that is refused: attach without target, then detach.")
async def refused_sender_gets_no_target_and_a_closing_detach(peer: Conversation) -> None:
    address = peer.missing_address
    session = await connected_session(peer)
    await session.new_sender(address).expect_refused()


@case("core", "2.6.3", "A receiver's link that is refused: attach without source, then detach.")
async def refused_receiver_gets_no_source_and_a_closing_detach(peer: Conversation) -> None:
    address = peer.missing_address
    session = await connected_session(peer)
    receiver = session.new_receiver(address)
    await receiver.expect_refused()


@case("jms", "13.1", "A refusal by not-found is what tells JMS that there is no destination.")
async def refusal_of_a_missing_address_is_not_found(peer: Conversation) -> None:
    address = peer.missing_address
    session = await connected_session(peer)
    await session.new_sender(address).expect_refused("amqp:not-found")
    await session.new_receiver(address).expect_refused("amqp:not-found")


@case("jms", "13.27", "Our answer to the detach of a refusal is not answered again.")
async def answer_to_a_refusal_is_not_answered(peer: Conversation) -> None:
    address = peer.missing_address
    session = await connected_session(peer)
    await session.new_sender(address).expect_refused()
    session.send(Detach(handle=0, closed=True))
    await peer.expect_nothing()


@case("core", "2.6.3", "A refused link leaves handle, name and session to be used again.")
async def refused_link_leaves_its_session_usable(peer: Conversation) -> None:
    address = peer.missing_address
    session = await connected_session(peer)
    refused = session.new_sender(address)
    await refused.expect_refused()
    session.send(Detach(handle=0, closed=True))
    session.links.pop(0)
    link = await session.attach_sender(name=refused.name)
    await link.send(message())


@case("core", "2.6.3", "Attaches that do not wait for each other are all answered.")
async def pipelined_attaches_are_all_answered(peer: Conversation) -> None:
    session = await connected_session(peer)
    links = [session.new_sender() for _ in range(20)]
    while any(link.remote_attach is None for link in links):
        came = await peer.receive()
        if not isinstance(came.body, Attach | Flow):
            raise Failed("an attach", described(came.raw))
        if isinstance(came.body, Attach):
            must(came.body.target is not None, "a target", came.body.target)


@case("core", "2.6.3", "The broker's attach names the node that the link really is for.")
async def attach_answers_with_the_real_address(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    receiver = await session.attach_receiver()
    assert sender.remote_attach is not None
    assert receiver.remote_attach is not None
    target, source = sender.remote_attach.target, receiver.remote_attach.source
    must(
        isinstance(target, Target) and target.address == peer.address,
        "the target asked for",
        target,
    )
    must(source is not None and source.address == peer.address, "the source asked for", source)


@case("core", "2.7.3", "Capabilities and properties of an attach that nobody knows are let pass.")
async def unknown_capabilities_of_an_attach_are_let_pass(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender(
        offered_capabilities=["x-conformance"],
        desired_capabilities=["x-conformance", "x-more"],
        properties={"x-conformance": "yes"},
    )
    await sender.send(message())


# -- detaching


@case("core", "2.6.6", "A closing detach is answered by a closing detach without error.")
async def closing_detach_is_answered_by_one(peer: Conversation) -> None:
    session = await connected_session(peer)
    links: list[Sender | Receiver] = [
        await session.attach_sender(),
        await session.attach_receiver(),
    ]
    for link in links:
        session.send(Detach(handle=link.handle, closed=True))
        await peer.expect(Detach, handle=link.remote_handle, closed=True, error=None)
    await peer.expect_nothing()


@case("core", "2.6.4", "A detach that does not close is answered by a detach without error.")
async def detach_that_does_not_close_is_answered(peer: Conversation) -> None:
    session = await connected_session(peer)
    links: list[Sender | Receiver] = [
        await session.attach_sender(),
        await session.attach_receiver(),
    ]
    for link in links:
        session.send(Detach(handle=link.handle))
        await peer.expect(Detach, handle=link.remote_handle, error=None)
    await peer.expect_nothing()


@case("core", "2.6.4", "A detached link may be attached again, on any handle.")
async def detached_link_may_be_attached_again(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await sender.send(message(b"before"))
    await sender.detach(closed=False)
    again = await session.attach_sender(name=sender.name, handle=5)
    await again.send(message(b"after"))
    left = await waiting(session)
    must(left == [b"before", b"after"], "both messages", left)


@case("core", "2.6.6", "A detach with an error is answered like any other.")
async def detach_with_an_error_is_answered(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    error = Error(condition="amqp:internal-error", description="it gives up")
    session.send(Detach(handle=sender.handle, closed=True, error=error))
    await peer.expect(Detach, closed=True, error=None)
    await peer.expect_nothing()


@case("core", "2.6.6", "A closed receiver's unsettled deliveries are there for others.")
async def closed_receiver_gives_its_deliveries_back(peer: Conversation) -> None:
    session = await connected_session(peer)
    await put(session, b"1", b"2")
    receiver = await session.attach_receiver()
    await received(receiver, 2)
    await receiver.detach()
    left = await waiting(session)
    must(sorted(left) == [b"1", b"2"], "both messages again", left)


@case("core", "2.6.6", "A delivery of which not all frames had come ends with its link.")
async def detach_drops_an_unfinished_delivery(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await sender.credit()
    sender.transfer(message(b"unfinished")[:7], more=True)
    await sender.detach()
    again = await session.attach_sender(name=sender.name)
    await again.send(message(b"whole"))
    left = await waiting(session)
    must(left == [b"whole"], "one message", left)


@case("jms", "13.7", "Outcomes that come after a link's detach are no error.")
async def outcomes_after_a_detach_are_no_error(peer: Conversation) -> None:
    session = await connected_session(peer)
    await put(session, b"1")
    receiver = await session.attach_receiver()
    delivery = (await received(receiver, 1))[0]
    await receiver.detach()
    receiver.settle(delivery)
    await peer.expect_nothing()
    left = await waiting(session)
    must(left in ([b"1"], []), "the message once or not at all", left)


@case("core", "2.7.6", "Detached, not closed, deliveries live on while their terminus does.")
async def outcomes_of_a_suspended_link_count(peer: Conversation) -> None:
    session = await connected_session(peer)
    await put(session, b"1")
    receiver = await session.attach_receiver()
    assert receiver.remote_attach is not None
    source = receiver.remote_attach.source
    if source is not None and source.expiry_policy == "link-detach":
        raise NotApplicable(
            "the source ends with its link's detach, as the broker says", Kind.NOT_OFFERED
        )
    delivery = (await received(receiver, 1))[0]
    answer = await receiver.detach(closed=False)
    if answer.closed:
        raise NotApplicable("the broker closes a link that is detached", Kind.NOT_OFFERED)
    receiver.settle(delivery)
    left = await waiting(session)
    must(left == [], "no message", left)


# -- errors of a link


async def break_link(peer: Conversation) -> Sender:
    """Return a link that the broker has detached with an error, for a delivery without tag.

    One message, `before`, went through the link. Raise NotApplicable if the broker ends the session
    or connection instead.
    """
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await sender.send(message(b"before"))
    await sender.credit()
    sender.transfer(message(), tag=None)
    error = await peer.expect_error()
    if not isinstance(error, Detach):
        raise NotApplicable(
            f"the broker answers with {type(error).__name__.lower()}, not detach",
            Kind.DID_NOT_HAPPEN,
        )
    return sender


@case("core", "2.6.5", "After an error the link's name may be attached anew.")
async def link_may_be_attached_anew_after_an_error(peer: Conversation) -> None:
    sender = await break_link(peer)
    session = sender.session
    session.send(Detach(handle=sender.handle, closed=True))
    session.links.pop(sender.handle)
    again = session.new_sender(name=sender.name)
    await again.expect_attached()


@case("core", "2.6.5", "What comes on a link after its error ends the session, or is discarded.")
async def transfers_after_a_link_error_are_not_taken(peer: Conversation) -> None:
    sender = await break_link(peer)
    session = sender.session
    sender.transfer(message(b"errant"))
    session.send(Detach(handle=sender.handle, closed=True))
    session.links.pop(sender.handle)
    session.flow(echo=True)
    came = (await peer.receive()).body
    if isinstance(came, End):
        must(came.error is not None and came.error.condition == ERRANT_LINK, ERRANT_LINK, came)
        return
    must(isinstance(came, Flow), "an end with errant-link, or the answer to the flow", came)
    left = await waiting(await peer.begin(1))
    must(left == [b"before"], "the message that came before the error alone", left)


@case("jms", "13.27", "A detach that crosses the broker's is its answer, and not answered again.")
async def detaches_that_cross_answer_each_other(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await sender.credit()
    sender.transfer(message(), tag=None)
    session.send(Detach(handle=sender.handle, closed=True))
    error = await peer.expect_error()
    if not isinstance(error, Detach):
        raise NotApplicable(
            f"the broker answers with {type(error).__name__.lower()}, not detach",
            Kind.DID_NOT_HAPPEN,
        )
    await peer.expect_nothing()


@case("core", "2.6.5", "An error of one link leaves the others of its session alone.")
async def link_error_leaves_other_links_alone(peer: Conversation) -> None:
    session = await connected_session(peer)
    other = await peer.begin(1)
    receiver = await session.attach_receiver()
    bad = await session.attach_sender()
    await bad.credit()
    bad.transfer(message(), tag=None)
    error = await peer.expect_error()
    if not isinstance(error, Detach):
        raise NotApplicable(
            f"the broker answers with {type(error).__name__.lower()}, not detach",
            Kind.DID_NOT_HAPPEN,
        )
    await put(other, b"goes on")
    receiver.grant(1)
    delivery = await receiver.receive()
    receiver.settle(delivery)
    await peer.expect_nothing()
