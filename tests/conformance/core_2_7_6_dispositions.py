"""Core 2.7.6, and 3.5.3 on default-outcome: dispositions that we send, right and wrong."""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import ACCEPTED, DeliveryState, Modified, Outcome, Received, Released
from broker.amqp.performatives import RECEIVER, SENDER, Flow
from broker.amqp.terminus import Source

from .conversation import Conversation
from .frames import Disposition, Transfer
from .harness import case
from .messages import message, sections
from .session import Receiver
from .steps import bodies, connected_session, must, put, received, waiting
from .verdict import Kind, NotApplicable

HEADER: Final = 0x70
DELIVERY_COUNT: Final = 4


async def unsettled(
    peer: Conversation, count: int, **fields: object
) -> tuple[Receiver, list[Transfer]]:
    """Return a link with `count` unsettled deliveries, and these: "0", "1", and so on."""
    session = await connected_session(peer)
    await put(session, *[b"%d" % each for each in range(count)])
    receiver = await session.attach_receiver("", **fields)
    return receiver, await received(receiver, count)


def ids(deliveries: list[Transfer]) -> list[int]:
    return [each.delivery_id for each in deliveries if each.delivery_id is not None]


async def expect_left(receiver: Receiver, *wanted: bytes) -> None:
    """Check that exactly these messages are in the queue after the link is closed."""
    await receiver.detach()
    left = await waiting(receiver.session, len(wanted))
    must(sorted(left) == sorted(wanted), f"the messages {list(wanted)}", left)


@case("core", "2.7.6", "A disposition settles all deliveries from first to last.")
async def range_settles_all_deliveries_in_it(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 5)
    first, *_, last = ids(deliveries)[:4]
    receiver.session.send(Disposition(first=first, last=last, state=ACCEPTED))
    await expect_left(receiver, b"4")


@case("core", "2.7.6", "Without last a disposition is for first alone.")
async def disposition_without_last_is_for_one(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 3)
    receiver.session.send(Disposition(first=ids(deliveries)[0], state=ACCEPTED))
    await expect_left(receiver, b"1", b"2")


@case("core", "2.7.6", "Deliveries may be settled in any order.")
async def deliveries_may_be_settled_in_any_order(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 4)
    for place in (3, 0, 2):
        receiver.settle(deliveries[place])
    await expect_left(receiver, b"1")


@case("core", "2.7.6", "A range goes over all links of the session.")
async def range_goes_over_all_links(peer: Conversation) -> None:
    one, first = await unsettled(peer, 1)
    await put(one.session, b"more")
    two = await one.session.attach_receiver()
    second = await received(two, 1)
    told = Disposition(first=ids(first)[0], last=ids(second)[0], state=ACCEPTED)
    one.session.send(told)
    await two.detach()
    await expect_left(one)


@case("core", "2.7.6", "What a range names besides known deliveries is no error.")
async def range_may_name_unknown_deliveries(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 3)
    receiver.settle(deliveries[1])
    first = ids(deliveries)[0]
    receiver.session.send(Disposition(first=first, last=first + 50, state=ACCEPTED))
    await expect_left(receiver)


@case("jms", "13.23", "A receiver's disposition of an unknown delivery is ignored.")
async def receivers_disposition_of_the_unknown_is_ignored(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 1)
    receiver.session.send(Disposition(role=RECEIVER, first=4711, state=ACCEPTED))
    await peer.expect_nothing()
    receiver.settle(deliveries[0])
    await expect_left(receiver)


@case("jms", "13.23", "A sender's disposition of an unknown delivery is ignored.")
async def senders_disposition_of_the_unknown_is_ignored(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    session.send(Disposition(role=SENDER, first=4711, state=ACCEPTED))
    await peer.expect_nothing()
    await sender.send(message())


@case("jms", "13.23", "A disposition on a session that has no link is ignored.")
async def disposition_without_any_link_is_ignored(peer: Conversation) -> None:
    session = await connected_session(peer)
    for role in (SENDER, RECEIVER):
        session.send(Disposition(role=role, first=0, last=9, state=ACCEPTED))
    await peer.expect_nothing()


@case("jms", "13.23", "A second disposition of one delivery changes nothing.")
async def second_disposition_changes_nothing(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 2)
    receiver.settle(deliveries[0])
    receiver.settle(deliveries[0], Released())
    await peer.expect_nothing()
    await expect_left(receiver, b"1")


@case("core", "2.7.6", "A sender's disposition does not settle what the broker has sent.")
async def roles_have_delivery_ids_of_their_own(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 2)
    first, last = ids(deliveries)
    receiver.session.send(Disposition(role=SENDER, first=first, last=last, state=ACCEPTED))
    await peer.expect_nothing()
    await expect_left(receiver, b"0", b"1")


@case("reliability", "C12", "A range whose last is before its first does no harm to others.")
async def range_that_runs_backwards_does_no_harm(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 3)
    first, _, last = ids(deliveries)
    receiver.session.send(Disposition(first=last, last=first, state=ACCEPTED))
    other = await peer.begin(1)
    await put(other, b"goes on")


@case("core", "2.7.6", "A disposition just before the detach counts.")
async def disposition_just_before_the_detach_counts(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 2)
    receiver.settle(deliveries[0])
    await expect_left(receiver, b"1")


@case("core", "2.7.6", "What is not settled may be given a state more than once: the last counts.")
async def state_may_change_until_it_is_settled(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 1)
    progress = Received(section_number=0, section_offset=1)
    for _ in range(3):
        receiver.settle(deliveries[0], progress, settled=False)
    await peer.expect_nothing(but=(Flow, Disposition))
    receiver.settle(deliveries[0])
    await expect_left(receiver)


@case("core", "2.7.6", "A disposition that neither settles nor has a state changes nothing.")
async def empty_disposition_changes_nothing(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 1)
    receiver.settle(deliveries[0], None, settled=False)
    await peer.expect_nothing()
    receiver.settle(deliveries[0], Released())
    await expect_left(receiver, b"0")


# -- default-outcome


async def delivery_count_after(
    peer: Conversation, default_outcome: Outcome, state: DeliveryState | None
) -> int:
    """Return the delivery-count of the next delivery, after one settled with `state`.

    The link's source has `default_outcome`.
    """
    source = Source(
        address=peer.address,
        capabilities=["queue"],
        default_outcome=default_outcome,
        outcomes=["amqp:accepted:list", "amqp:released:list", "amqp:modified:list"],
    )
    receiver, deliveries = await unsettled(peer, 1, source=source)
    assert receiver.remote_attach is not None
    told = receiver.remote_attach.source
    if told is None or type(told.default_outcome) is not type(default_outcome):
        raise NotApplicable(
            "the broker answers with a default-outcome of its own", Kind.NOT_OFFERED
        )
    receiver.settle(deliveries[0], state)
    await receiver.detach()
    again = await receiver.session.attach_receiver(name=peer.name("again"))
    delivery = (await received(again, 1))[0]
    must(bodies([delivery]) == [b"0"], "the message again", delivery)
    for code, value in sections(delivery.payload):
        if code == HEADER and isinstance(value, list) and len(value) > DELIVERY_COUNT:
            return int(value[DELIVERY_COUNT].value)
    return 0


FAILED: Final = Modified(delivery_failed=True, undeliverable_here=False, message_annotations=None)


@case("core", "3.5.3", "Settled while merely received, a delivery gets the default-outcome.")
async def default_outcome_is_applied_to_received(peer: Conversation) -> None:
    state = Received(section_number=0, section_offset=0)
    count = await delivery_count_after(peer, FAILED, state)
    must(count == 1, "delivery-count 1, by modified with delivery-failed", count)


@case("core", "3.5.3", "A default-outcome released gives the message back uncounted.")
async def default_outcome_released_is_not_counted(peer: Conversation) -> None:
    count = await delivery_count_after(peer, Released(), None)
    must(count == 0, "delivery-count 0, by released", count)
