"""Core 4.4.3: messages that a transaction acquires, by a flow that names it."""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Accepted,
    DeliveryState,
    Modified,
    Outcome,
    Rejected,
    TransactionalState,
)
from broker.amqp.performatives import SENDER, SND_SETTLED, Detach, Error, Flow
from broker.amqp.terminus import Source

from .conversation import Conversation
from .core_4_transactions import ROLLBACK, detached
from .exchange import ALL_OUTCOMES, send_all, state_in_words, take_all
from .frames import Disposition, Transfer
from .harness import case
from .jms_transactions import coordinator, declared, discharge
from .messages import message
from .session import Receiver, Sender, Session
from .steps import MANY, bodies, connected_session, must, put
from .verdict import Failed, Kind, NotApplicable

NOT_IMPLEMENTED: Final = "amqp:not-implemented"
LONG: Final = bytes(range(256)) * 16
"""A body of several frames of 512 bytes."""


def acquire(receiver: Receiver, txn_id: bytes, credit: int = MANY, *, drain: bool = True) -> None:
    """Give credit by a flow that names the transaction."""
    receiver.grant(credit, drain=drain, properties={"txn-id": txn_id})


async def acquired(receiver: Receiver, txn_id: bytes, count: int) -> list[Transfer]:
    """Return `count` deliveries, which must name the transaction.

    Raise NotApplicable if the broker detaches the link because it does not offer acquisition.
    """
    found: list[Transfer] = []
    peer = receiver.session.peer
    while len(found) < count:
        came = (await peer.receive()).body
        if isinstance(came, Detach):
            told = "none" if came.error is None else came.error.condition
            must(told == NOT_IMPLEMENTED, f"{NOT_IMPLEMENTED}, or deliveries", told)
            raise NotApplicable(
                "the broker acquires no messages in transactions, which it may not",
                Kind.NOT_OFFERED,
            )
        if isinstance(came, Flow):
            continue
        must(isinstance(came, Transfer), "a delivery", type(came).__name__.lower())
        assert isinstance(came, Transfer)
        state = came.state
        must(isinstance(state, TransactionalState), "transactional-state", in_words(came))
        assert isinstance(state, TransactionalState)
        must(state.txn_id == txn_id, "the id of the transaction", state.txn_id)
        found.append(came)
    return found


def in_words(transfer: Transfer) -> str:
    """Return the state of a delivery for a verdict."""
    state = transfer.state
    return "none" if state is None else type(state).__name__.lower()


async def filled(peer: Conversation, *payloads: bytes) -> tuple[Session, Sender, Receiver]:
    """Return a session with these messages in its queue, a coordinator and a receiver."""
    session = await connected_session(peer)
    link = await coordinator(session)
    await send_all(await session.attach_sender(), *(message(each) for each in payloads))
    source = Source(address=peer.address, capabilities=["queue"], outcomes=list(ALL_OUTCOMES))
    return session, link, await session.attach_receiver(source=source)


async def discharged(link: Sender, txn_id: bytes, *, fail: bool) -> list[Disposition]:
    """Discharge the transaction; return the dispositions of deliveries that came before."""
    number = link.transfer(discharge(txn_id, fail=fail))
    peer = link.session.peer
    found: list[Disposition] = []
    while True:
        came = (await peer.receive()).body
        if not isinstance(came, Disposition):
            must(isinstance(came, Flow | Transfer), "the answer to the discharge", came)
        elif came.role is SENDER:
            found.append(came)
        elif came.covers(number):
            must(isinstance(came.state, Accepted), "accepted", state_in_words(came.state))
            return found


async def left(peer: Conversation) -> list[bytes]:
    """Return the bodies that another connection gets from the queue, in order."""
    async with peer.another() as other:
        session = await connected_session(other)
        found = await take_all(await session.attach_receiver())
        await other.close()
    return found


def within(txn_id: bytes, outcome: Outcome | None) -> TransactionalState:
    return TransactionalState(txn_id=txn_id, outcome=outcome)


@case("core", "4.4.3", "A flow may name a transaction: deliveries of its link carry it.")
async def acquired_messages_name_their_transaction(peer: Conversation) -> None:
    session, link, receiver = await filled(peer, b"1", b"2")
    txn_id = await declared(link)
    acquire(receiver, txn_id)
    came = await acquired(receiver, txn_id, 2)
    must(bodies(came) == [b"1", b"2"], "both messages", bodies(came))
    other = await session.attach_receiver(name=peer.name("other"))
    found = await take_all(other)
    must(found == [], "nothing for another link", found)


@case("core", "4.4.4.3", "A rollback undoes acquisitions and outcomes: all returns, in its order.")
async def a_rollback_undoes_acquisitions(peer: Conversation) -> None:
    payloads = [b"1", b"2", b"3", b"4", b"5", b"6"]
    _, link, receiver = await filled(peer, *payloads)
    txn_id = await declared(link)
    acquire(receiver, txn_id)
    came = await acquired(receiver, txn_id, len(payloads))
    outcomes: list[Outcome] = [ACCEPTED, RELEASED, Rejected(), Modified(delivery_failed=True)]
    for delivery, outcome in zip(came, outcomes, strict=False):
        receiver.settle(delivery, within(txn_id, outcome))
    receiver.settle(came[4], within(txn_id, ACCEPTED), settled=False)
    await discharged(link, txn_id, fail=True)
    found = await left(peer)
    must(found == payloads, "all of them in their order", found)


@case("core", "4.4.4.3", "A commit applies the outcomes of what its transaction has acquired.")
async def a_commit_applies_outcomes_of_acquired_messages(peer: Conversation) -> None:
    _, link, receiver = await filled(peer, b"accepted", b"released", b"modified", b"rejected")
    txn_id = await declared(link)
    acquire(receiver, txn_id)
    came = await acquired(receiver, txn_id, 4)
    outcomes: list[Outcome] = [ACCEPTED, RELEASED, Modified(delivery_failed=True), Rejected()]
    for delivery, outcome in zip(came, outcomes, strict=True):
        receiver.settle(delivery, within(txn_id, outcome))
    await discharged(link, txn_id, fail=False)
    found = await left(peer)
    must(found == [b"released", b"modified"], "what was given back, in its order", found)


@case("core", "4.4.3", "After a commit its receiver keeps what has no outcome.")
async def a_commit_keeps_the_acquisition(peer: Conversation) -> None:
    _, link, receiver = await filled(peer, b"1")
    txn_id = await declared(link)
    acquire(receiver, txn_id)
    (came,) = await acquired(receiver, txn_id, 1)
    await discharged(link, txn_id, fail=False)
    found = await left(peer)
    must(found == [], "nothing for another connection", found)
    receiver.settle(came, RELEASED)
    await peer.expect_nothing(but=(Flow, Disposition))
    found = await left(peer)
    must(found == [b"1"], "the message once it is released", found)


@case("core", "4.4.4.3", "A commit removes what was sent settled, a rollback returns it.")
async def settled_deliveries_are_acquired_too(peer: Conversation) -> None:
    session, link, _ = await filled(peer, b"1", b"2")
    settled = await session.attach_receiver(name=peer.name("s"), snd_settle_mode=SND_SETTLED)
    assert settled.remote_attach is not None
    if settled.remote_attach.snd_settle_mode != SND_SETTLED:
        raise NotApplicable("the broker does not send settled", Kind.NOT_OFFERED)
    for fail in (True, False):
        txn_id = await declared(link)
        acquire(settled, txn_id)
        came = await acquired(settled, txn_id, 2)
        must(bodies(came) == [b"1", b"2"], "both messages", bodies(came))
        must(all(each.settled for each in came), "settled deliveries", "unsettled ones")
        await discharged(link, txn_id, fail=fail)
    found = await left(peer)
    must(found == [], "nothing after the commit", found)


@case("core", "4.4.3", "The discharge clears the transaction of a link, and leaves its credit.")
async def a_discharge_clears_the_transaction_of_a_link(peer: Conversation) -> None:
    session, link, receiver = await filled(peer, b"1")
    txn_id = await declared(link)
    acquire(receiver, txn_id, 3, drain=False)
    (came,) = await acquired(receiver, txn_id, 1)
    receiver.settle(came, within(txn_id, ACCEPTED))
    await discharged(link, txn_id, fail=False)
    again = await declared(link)
    sender = await session.attach_sender()
    await sender.credit()
    sender.transfer(message(b"2"))
    delivery = await peer.expect_until(Transfer, lambda _: True)
    must(delivery.state is None, "a delivery outside of any transaction", in_words(delivery))
    receiver.settle(delivery)
    await discharged(link, again, fail=True)
    found = await left(peer)
    must(found == [], "nothing", found)


@case("core", "4.4.3", "A drain within a transaction uses all credit up.")
async def a_drain_works_within_a_transaction(peer: Conversation) -> None:
    _, link, receiver = await filled(peer, b"1", b"2")
    txn_id = await declared(link)
    acquire(receiver, txn_id, 5)
    await acquired(receiver, txn_id, 2)
    drained = await peer.expect_until(Flow, lambda flow: flow.handle == receiver.remote_handle)
    must(int(drained.link_credit) == 0, "no credit left", drained.link_credit)
    count = int(drained.delivery_count)
    must(count == 5, "a delivery-count that has used it up", count)


@case("core", "4.4", "A link may acquire for several transactions, one after the other.")
async def a_link_acquires_for_several_transactions(peer: Conversation) -> None:
    _, link, receiver = await filled(peer, b"1", b"2", b"3")
    attach = link.remote_attach
    assert attach is not None
    if "amqp:multi-txns-per-ssn" not in getattr(attach.target, "capabilities", []):
        raise NotApplicable(
            "the broker does not offer several transactions for a session", Kind.NOT_OFFERED
        )
    first, second = await declared(link), await declared(link)
    acquire(receiver, first, 1, drain=False)
    (one,) = await acquired(receiver, first, 1)
    acquire(receiver, second, 2, drain=False)
    others = await acquired(receiver, second, 2)
    receiver.settle(one, within(first, ACCEPTED))
    for each in others:
        receiver.settle(each, within(second, ACCEPTED))
    await discharged(link, first, fail=False)
    await discharged(link, second, fail=True)
    found = await left(peer)
    must(found == [b"2", b"3"], "what was rolled back", found)


async def rolled_back(peer: Conversation, state: DeliveryState, settled: bool) -> None:
    """Give an outcome that does not fit; that must end the coordinator's link by rollback."""
    _, link, receiver = await filled(peer, b"1", b"2")
    txn_id = await declared(link)
    acquire(receiver, txn_id)
    came = await acquired(receiver, txn_id, 2)
    receiver.settle(came[0], state, settled=settled)
    error = await _end_of(link)
    told = "none" if error is None else error.condition
    must(told == ROLLBACK, ROLLBACK, told)
    await peer.expect_nothing(but=(Flow, Disposition, Detach))
    found = await left(peer)
    must(found == [b"1", b"2"], "both messages", found)


async def _end_of(link: Sender) -> Error | None:
    """Return the error of the detach of `link`, which dispositions and flows may precede."""
    detach = await link.session.peer.expect_until(Detach, lambda _: True)
    if detach.handle != link.remote_handle:
        raise Failed("a detach of the coordinator's link", f"handle {detach.handle}")
    return detach.error


@case(
    "core",
    "4.4.4.3",
    "An outcome outside of the transaction that has acquired its delivery rolls that back.",
)
async def an_outcome_outside_of_its_transaction_is_an_error(peer: Conversation) -> None:
    await rolled_back(peer, ACCEPTED, True)


@case("core", "4.4.2", "An outcome of another open transaction than its delivery's rolls back.")
async def an_outcome_of_another_transaction_is_an_error(peer: Conversation) -> None:
    _, link, receiver = await filled(peer, b"1")
    first, second = await declared(link), await declared(link)
    acquire(receiver, first)
    (came,) = await acquired(receiver, first, 1)
    receiver.settle(came, within(second, ACCEPTED))
    error = await _end_of(link)
    told = "none" if error is None else error.condition
    must(told == ROLLBACK, ROLLBACK, told)
    await peer.expect_nothing(but=(Flow, Disposition, Detach))
    found = await left(peer)
    must(found == [b"1"], "the message", found)


@case("core", "4.5.8", "A flow that names a transaction that is not open ends its link.")
async def a_flow_within_no_transaction_is_an_error(peer: Conversation) -> None:
    _, _, receiver = await filled(peer, b"1")
    acquire(receiver, b"\xff no such one")
    error = await detached(receiver)
    assert error is not None
    known = ("amqp:transaction:unknown-id", NOT_IMPLEMENTED)
    must(error.condition in known, "unknown-id, or not-implemented", error.condition)
    if error.condition == NOT_IMPLEMENTED:
        raise NotApplicable("the broker acquires no messages in transactions", Kind.NOT_OFFERED)
    found = await left(peer)
    must(found == [b"1"], "the message, which was not acquired", found)


@case("core", "4.4.3", "The end of its link leaves what was acquired to the transaction.")
async def the_end_of_a_link_undoes_no_acquisition(peer: Conversation) -> None:
    _, link, receiver = await filled(peer, b"1", b"2")
    txn_id = await declared(link)
    acquire(receiver, txn_id)
    came = await acquired(receiver, txn_id, 2)
    receiver.settle(came[0], within(txn_id, ACCEPTED))
    await receiver.detach()
    await discharged(link, txn_id, fail=True)
    found = await left(peer)
    must(found == [b"1", b"2"], "both messages after the rollback", found)


@case("core", "4.3", "What was acquired returns with the end of its coordinator's link.")
async def acquisitions_end_with_their_coordinator(peer: Conversation) -> None:
    _, link, receiver = await filled(peer, b"1", b"2")
    txn_id = await declared(link)
    acquire(receiver, txn_id)
    came = await acquired(receiver, txn_id, 2)
    receiver.settle(came[0], within(txn_id, ACCEPTED))
    link.session.send(Detach(handle=link.handle, closed=True))
    await _end_of(link)
    await peer.expect_nothing(but=(Flow, Disposition))
    found = await left(peer)
    must(found == [b"1", b"2"], "both messages", found)


@case(
    "core",
    "4.4.3",
    "A rollback in the middle of a delivery aborts or completes that before it is accepted.",
)
async def a_rollback_ends_an_unfinished_delivery(peer: Conversation) -> None:
    await peer.open(max_frame_size=512)
    session = await peer.begin()
    link = await coordinator(session)
    txn_id = await declared(link)
    await put(session, LONG)
    receiver = await session.attach_receiver()
    receiver.grant(1, incoming_window=1, properties={"txn-id": txn_id})
    first = (await acquired(receiver, txn_id, 1))[0]
    must(first.more, "a delivery of several frames", "one frame")
    number = link.transfer(discharge(txn_id, fail=True))
    await peer.expect_nothing()
    session.flow()
    is_over = False
    while True:
        came = (await peer.receive()).body
        if isinstance(came, Transfer) and not is_over:
            is_over = came.aborted or not came.more
        elif isinstance(came, Disposition) and came.role is not SENDER and came.covers(number):
            must(is_over, "an abort, or the end of the delivery, before the answer", "the answer")
            break
    found = await left(peer)
    must(found == [LONG], "the message", f"{len(found)} messages")
