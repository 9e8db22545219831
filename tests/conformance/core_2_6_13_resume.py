"""Core 2.6.13 and 2.7.3: deliveries of a link that was lost, resumed by one of the same name.

Each case asks for a terminus that outlives its link. It does not apply where none is granted.
"""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Accepted,
    Modified,
    Received,
    Rejected,
    State,
    TransactionalState,
)
from broker.amqp.performatives import SENDER, Detach, Flow
from broker.amqp.terminus import LINK_DETACH

from .conversation import Conversation
from .exchange import check_empty, pass_time, take_all
from .frames import Disposition, Transfer
from .harness import case
from .messages import body_of, message
from .resuming import (
    after_all,
    check_map,
    come_back,
    detached,
    holding,
    receiver_back,
    sender_back,
    sent,
    source_of,
    tag_of,
    tags_in,
    unsettled_map,
)
from .session import Receiver, Sender
from .steps import bodies, connected_session, must, put, received, waiting
from .verdict import Kind, NotApplicable

UNKNOWN: Final = b"\xff" * 32
"""A tag that no broker gives."""

SMALL_FRAME: Final = 512
PART_BYTES: Final = 4
"""The bytes of a delivery that a client has of it: fewer than its first section has."""

MANY_TAGS: Final = 120
"""A number of deliveries whose tags do not fit into one frame of SMALL_FRAME bytes."""

MANY_LONG_TAGS: Final = 20
"""A number of deliveries that does so if their tags have 32 bytes."""


# -- the broker sends


@case("core", "2.6.13", "A delivery that both ends hold unsettled is resumed under its tag.")
async def known_delivery_is_resumed_under_its_tag(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    again = await receiver_back(former, {tag_of(delivery): None})
    (resumed,) = await received(again, 1)
    must(resumed.resume and resumed.tag == delivery.tag, "the delivery resumed", resumed)
    must(not resumed.settled, "unsettled", resumed)
    again.settle(resumed)
    await after_all(again)


@case("core", "2.6.13", "A delivery that the client's complete map lacks comes anew.")
async def delivery_that_the_map_lacks_comes_anew(peer: Conversation) -> None:
    former, deliveries = await holding(peer, 2)
    again = await receiver_back(former, {tag_of(deliveries[1]): None}, kept=2)
    first, second = await received(again, 2)
    must(first.resume and first.tag == deliveries[1].tag, "the known one resumed", first)
    must(not second.resume and body_of(second.payload) == b"0", "the other one anew", second)


@case("core", "2.6.13", "A delivery that the client's map has accepted is settled, not resent.")
async def accepted_in_the_map_is_settled(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    again = await receiver_back(former, {tag_of(delivery): ACCEPTED})
    await settled_without_payload(again, tag_of(delivery))
    await after_all(again)


@case("core", "2.6.13", "A delivery that the client's map has released is there for others.")
async def released_in_the_map_returns(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    again = await receiver_back(former, {tag_of(delivery): RELEASED})
    await after_all(again, b"0")


@case("core", "2.6.13", "A delivery that the client's map has rejected leaves its queue.")
async def rejected_in_the_map_is_gone(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    again = await receiver_back(former, {tag_of(delivery): Rejected()})
    await after_all(again)


@case("core", "2.6.13", "A delivery that failed by the client's map returns, and counts.")
async def modified_in_the_map_returns(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    again = await receiver_back(former, {tag_of(delivery): Modified(delivery_failed=True)})
    await after_all(again, b"0")


@case("core", "2.6.13", "A delivery of which the client has a part is aborted, or goes on there.")
async def part_of_a_delivery_is_aborted_or_goes_on(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    part = Received(section_number=0, section_offset=PART_BYTES)
    again = await receiver_back(former, {tag_of(delivery): part})
    again.grant(2)
    first = await peer.expect(Transfer, handle=again.remote_handle)
    must(first.resume and first.tag == delivery.tag, "the delivery resumed", first)
    if first.aborted:
        first = await again.receive()
        must(not first.resume and body_of(first.payload) == b"0", "the message anew", first)
    else:
        rest = len(delivery.payload) - PART_BYTES
        must(len(first.payload) == rest, f"an abort, or the other {rest} bytes", first.payload)
    again.settle(first)
    await after_all(again)


@case("core", "2.6.13", "A state within a transaction is no outcome: the delivery is resumed.")
async def transactional_state_in_the_map_is_no_outcome(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    state = TransactionalState(txn_id=b"unknown", outcome=ACCEPTED)
    again = await receiver_back(former, {tag_of(delivery): state})
    (resumed,) = await received(again, 1)
    must(resumed.resume and resumed.tag == delivery.tag, "the delivery resumed", resumed)


@case("core", "2.6.13", "What only the client's map has is not in the broker's, and not sent.")
async def delivery_of_the_client_alone_is_ignored(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    again = await receiver_back(former, {UNKNOWN: None, tag_of(delivery): None})
    assert again.remote_attach is not None
    tags = tags_in(again.remote_attach)
    must(UNKNOWN not in tags, "a map without that tag", tags)
    again.grant(5)
    must((await again.receive()).tag == delivery.tag, "the known delivery", "another")
    await peer.expect_nothing()


@case("core", "2.6.13", "Without a map of the client's, all that it held is there in its order.")
async def without_a_map_everything_returns_in_order(peer: Conversation) -> None:
    former, _ = await holding(peer, 3)
    again = await receiver_back(former, None, kept=None)
    found = await received(again, 3)
    must(bodies(found) == [b"0", b"1", b"2"], "all in order", bodies(found))
    must(not any(each.resume for each in found), "new deliveries", found)


@case("core", "2.7.3", "A client whose map was incomplete gets no new delivery.")
async def nothing_new_after_an_incomplete_map(peer: Conversation) -> None:
    former, deliveries = await holding(peer, 2)
    session = former.session
    await put(session, b"new")
    again = await come_back(former, {tag_of(deliveries[0]): None}, kept=2, incomplete=True)
    assert isinstance(again, Receiver)
    again.grant(5)
    first = await again.receive()
    must(first.resume and first.tag == deliveries[0].tag, "the listed delivery", first)
    await peer.expect_nothing()
    await detached(again)
    states: dict[bytes, State | None] = {tag_of(each): None for each in deliveries}
    complete = await receiver_back(again, states, kept=None)
    check_map(complete, *states)
    found = await received(complete, 3)
    must([each.resume for each in found] == [True, True, False], "two resumed, one new", found)


@case("core", "2.7.3", "A map that does not fit into a frame of the client's is incomplete.")
async def map_beyond_a_frame_is_incomplete(peer: Conversation) -> None:
    await peer.open(max_frame_size=SMALL_FRAME)
    session = await peer.begin()
    await put(session, *[b"%d" % number for number in range(MANY_TAGS)])
    receiver = await session.attach_receiver(source=source_of(peer))
    deliveries = await received(receiver, MANY_TAGS)
    await detached(receiver)
    await put(session, b"new")
    listed: dict[bytes, State | None] = {tag_of(each): ACCEPTED for each in deliveries[:20]}
    again = await receiver_back(receiver, listed)
    attach = again.remote_attach
    assert attach is not None
    must(attach.incomplete_unsettled, "incomplete-unsettled", "a complete map")
    again.grant(MANY_TAGS)
    settled = [await peer.expect(Transfer, handle=again.remote_handle) for _ in listed]
    must(all(each.resume for each in settled), "resumed deliveries alone", settled)


@case("core", "2.6.13", "What is unsettled stays with a link that may come back.")
async def unsettled_deliveries_wait_for_their_link(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    other = await former.session.attach_receiver(name=peer.name("other"))
    await check_empty(other)
    await receiver_back(former, {tag_of(delivery): None})


@case("core", "2.6.13", "An outcome that comes behind a detach counts while its source is there.")
async def outcome_behind_a_detach_counts(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    former.settle(delivery)
    again = await receiver_back(former, {}, kept=None)
    assert again.remote_attach is not None
    must(not tags_in(again.remote_attach), "no unsettled delivery", "one")
    await after_all(again)


@case("core", "3.5.6", "What is unsettled returns when the time of its source is over.")
async def unsettled_deliveries_wait_for_a_time(peer: Conversation) -> None:
    source = source_of(peer, LINK_DETACH, 1)
    former, _ = await holding(peer, 1, source=source)
    granted = former.remote_attach
    assert granted is not None
    assert granted.source is not None
    if (granted.source.expiry_policy, granted.source.timeout) != (LINK_DETACH, 1):
        raise NotApplicable(f"the source lasts by {granted.source.expiry_policy}", Kind.NOT_OFFERED)
    await pass_time(peer, 1500)
    found = await waiting(former.session, 1)
    must(found == [b"0"], "the message", found)


@case("core", "2.6.13", "A lost connection leaves its deliveries to the next one.")
async def deliveries_of_a_lost_connection_are_resumed(peer: Conversation) -> None:
    async with peer.another() as first:
        opened = peer.our_open()
        await first.open(container_id=opened.container_id)
        session = await first.begin()
        await put(session, b"0")
        source = source_of(first)
        receiver = await session.attach_receiver(name=peer.name("lost"), source=source)
        (delivery,) = await received(receiver, 1)
        await first.lose_socket()
    await peer.open(container_id=opened.container_id)
    session = await peer.begin()
    again = await come_back(receiver, {tag_of(delivery): None}, session=session)
    assert isinstance(again, Receiver)
    (resumed,) = await received(again, 1)
    must(resumed.resume and resumed.tag == delivery.tag, "the delivery resumed", resumed)
    again.settle(resumed)
    await after_all(again)


@case("core", "2.6.13", "A link that is stolen leaves its unsettled deliveries to the other one.")
async def stolen_link_leaves_its_deliveries(peer: Conversation) -> None:
    former, (delivery,) = await holding(peer, 1)
    tag = tag_of(delivery)
    # a broker that keeps deliveries beyond a detach has to keep them for a thief, too
    receiver = await receiver_back(former, {tag: None})
    await received(receiver, 1)
    other = await peer.begin(1)
    again = other.new_receiver(
        name=receiver.name, source=receiver.attach.source, unsettled=unsettled_map({tag: None})
    )
    while again.remote_attach is None:
        await peer.receive()
    check_map(again, tag)
    again.grant(1)
    resumed = await peer.expect_until(Transfer)
    must(resumed.resume and resumed.tag == tag, "the delivery resumed", resumed)


@case("core", "2.6.6", "A closing detach ends the source with all that is unsettled.")
async def closed_link_resumes_nothing(peer: Conversation) -> None:
    session = await connected_session(peer)
    await put(session, b"0")
    receiver = await session.attach_receiver(source=source_of(peer))
    (delivery,) = await received(receiver, 1)
    await receiver.detach()
    again = await receiver_back(receiver, {tag_of(delivery): None}, kept=None)
    assert again.remote_attach is not None
    must(not tags_in(again.remote_attach), "no unsettled delivery", "one")
    (anew,) = await received(again, 1)
    must(not anew.resume, "a new delivery", anew)


async def settled_without_payload(link: Receiver, tag: bytes) -> None:
    """Check that the broker settles the delivery of that tag, and sends none of its message."""
    link.grant(1)
    came = await link.receive()
    must(came.tag == tag and came.resume, "the delivery resumed", came)
    must(came.settled is True and came.payload == b"", "settled, without a payload", came)


# -- the broker receives


@case("core", "2.6.13", "A delivery that the broker has is not taken again, but answered again.")
async def resumed_delivery_is_answered_again(peer: Conversation) -> None:
    former = await sent(peer, b"one")
    again = await sender_back(former, {b"one": None})
    told = await again.send(message(b"one"), tag=b"one", resume=True)
    must(isinstance(told.state, Accepted), "the outcome again", told)
    again.session.send(Disposition(role=SENDER, first=told.first, settled=True, state=ACCEPTED))
    await after_all(again, b"one")


@case("core", "2.6.13", "A resumed delivery in several frames is not taken again, either.")
async def resumed_delivery_in_frames_is_answered_again(peer: Conversation) -> None:
    former = await sent(peer, b"one")
    again = await sender_back(former, {b"one": None})
    await again.credit()
    payload = message(b"one")
    delivery_id = again.transfer(payload[:5], tag=b"one", resume=True, more=True)
    again.go_on(payload[5:])
    told = await again.settled(delivery_id)
    must(isinstance(told.state, Accepted), "the outcome again", told)
    await after_all(again, b"one")


@case("core", "2.6.13", "A delivery that the client settles as it resumes it is over.")
async def settled_as_it_is_resumed(peer: Conversation) -> None:
    former = await sent(peer, b"one", b"two")
    again = await sender_back(former, {b"one": ACCEPTED, b"two": None}, kept=2)
    await again.credit()
    again.transfer(tag=b"one", resume=True, settled=True, state=ACCEPTED)
    await peer.expect_nothing(but=(Flow, Disposition))
    await detached(again)
    third = await sender_back(again, {b"two": None})
    assert third.remote_attach is not None
    tags = tags_in(third.remote_attach)
    must(tags == [b"two"], "the other delivery alone", tags)
    await after_all(third, b"one", b"two")


@case("core", "2.6.13", "What the client's complete map lacks is settled: its tag is free.")
async def tag_that_the_map_lacks_is_free(peer: Conversation) -> None:
    former = await sent(peer, b"one", b"two")
    again = await sender_back(former, {b"two": None})
    told = await again.send(message(b"new"), tag=b"one")
    must(isinstance(told.state, Accepted), "accepted", told)
    await after_all(again, b"one", b"two", b"new")


@case("core", "2.7.3", "What an incomplete map of the client's lacks is not settled by that.")
async def incomplete_map_of_a_sender_settles_nothing(peer: Conversation) -> None:
    former = await sent(peer, b"one", b"two")
    again = await come_back(former, {b"two": None}, kept=2, incomplete=True)
    assert isinstance(again, Sender)
    await detached(again)
    again = await sender_back(again, {b"one": None, b"two": None}, kept=None)
    check_map(again, b"one", b"two")
    await after_all(again, b"one", b"two")


@case("core", "2.7.3", "A new delivery behind an incomplete map of the client's does no harm.")
async def new_delivery_after_an_incomplete_map_of_the_client(peer: Conversation) -> None:
    former = await sent(peer, b"one")
    again = await come_back(former, {}, incomplete=True)
    assert isinstance(again, Sender)
    await again.credit()
    again.transfer(message(b"new"), tag=b"new")
    came = await behind_a_new_delivery(peer)
    taken = [b"new"] if isinstance(came, Disposition) and isinstance(came.state, Accepted) else []
    if isinstance(came, Detach):
        must(came.error is not None, "a detach with an error", came)
        again.session.send(Detach(handle=again.handle))
    else:
        await detached(again)
    third = await sender_back(again, {b"one": None})
    check_map(third, b"one")
    await after_all(third, b"one", *taken)


@case("core", "2.7.3", "A broker whose map was incomplete detaches where a new delivery comes.")
async def new_delivery_after_an_incomplete_map_of_the_broker(peer: Conversation) -> None:
    await peer.open(max_frame_size=SMALL_FRAME)
    tags = [b"%032d" % number for number in range(MANY_LONG_TAGS)]
    former = await sent(peer, *tags, session=await peer.begin())
    again = await sender_back(former, dict.fromkeys(tags))
    attach = again.remote_attach
    assert attach is not None
    must(attach.incomplete_unsettled, "incomplete-unsettled", "a complete map")
    await again.credit()
    again.transfer(message(b"new"), tag=b"new")
    came = await behind_a_new_delivery(peer)
    must(isinstance(came, Detach) and came.error is not None, "a detach with an error", came)


async def behind_a_new_delivery(peer: Conversation) -> object:
    """Return the broker's answer to a delivery, which may be an outcome or a detach."""
    came = (await peer.receive()).body
    while isinstance(came, Flow):
        came = (await peer.receive()).body
    return came


@case("core", "2.6.13", "Without a map of the client's, the broker holds nothing of it unsettled.")
async def without_a_map_outcomes_are_forgotten(peer: Conversation) -> None:
    former = await sent(peer, b"one")
    again = await sender_back(former, None, kept=None)
    told = await again.send(message(b"new"), tag=b"one")
    must(isinstance(told.state, Accepted), "accepted", told)
    await after_all(again, b"one", b"new")


@case("core", "2.7.5", "A resumed delivery that is aborted is given up: its tag is free.")
async def resumed_delivery_may_be_aborted(peer: Conversation) -> None:
    former = await sent(peer, b"one")
    again = await sender_back(former, {b"one": None})
    await again.credit(2)
    again.transfer(tag=b"one", resume=True, aborted=True)
    told = await again.send(message(b"new"), tag=b"one")
    must(isinstance(told.state, Accepted), "accepted", told)
    await after_all(again, b"one", b"new")


@case("core", "2.6.12", "A tag of a delivery that its sender has not settled names no other one.")
async def tag_of_a_kept_delivery_is_not_taken_for_another(peer: Conversation) -> None:
    former = await sent(peer, b"one")
    again = await sender_back(former, {b"one": None})
    await again.credit()
    again.transfer(message(b"new"), tag=b"one")
    came = await behind_a_new_delivery(peer)
    refused = isinstance(came, Detach) and came.error is not None
    must(refused or isinstance(came, Disposition), "an error, or an outcome", came)


@case("core", "2.6.13", "What is unsettled of a lost receiver reaches another after its close.")
async def nothing_is_lost_with_a_link_that_is_closed_later(peer: Conversation) -> None:
    former, deliveries = await holding(peer, 3)
    states: dict[bytes, State | None] = {tag_of(each): None for each in deliveries}
    again = await receiver_back(former, states, kept=3)
    await again.detach()
    left = await take_all(await former.session.attach_receiver(name=peer.name("last")))
    must(left == [b"0", b"1", b"2"], "all messages in order", left)
