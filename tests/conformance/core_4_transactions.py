"""Core part 4: transactions for any client; those of JMS clients are in `jms_transactions`."""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Accepted,
    DeliveryState,
    Error,
    Rejected,
    TransactionalState,
)
from broker.amqp.performatives import RECEIVER, SENDER, Detach, Flow
from broker.amqp.terminus import Coordinator, Source

from .conversation import Conversation
from .exchange import (
    ALL_OUTCOMES,
    properties,
    receive_all,
    receive_one,
    send_all,
    state_in_words,
    take_all,
)
from .frames import Disposition, described
from .harness import case
from .jms_transactions import coordinator, declared, discharge, ended, send_within
from .messages import message
from .session import Link, Sender, Session
from .steps import bodies, connected_session, must, received
from .verdict import Kind, NotApplicable

ROLLBACK: Final = "amqp:transaction:rollback"
UNKNOWN_ID: Final = "amqp:transaction:unknown-id"
TRANSACTION_ERRORS: Final = (ROLLBACK, UNKNOWN_ID, "amqp:transaction:timeout")


async def begun(peer: Conversation) -> tuple[Session, Sender, bytes]:
    """Return a session, its coordinator, and the id of a new transaction."""
    session = await connected_session(peer)
    link = await coordinator(session)
    return session, link, await declared(link)


async def detached(link: Link) -> Error | None:
    """Return the error with which the broker detaches `link`, in the next frame."""
    peer = link.session.peer
    detach = await peer.expect(Detach, handle=link.remote_handle)
    return detach.error


def condition_of(state: DeliveryState | None) -> str:
    """Return the condition of a rejection; fail if the state is another one."""
    must(isinstance(state, Rejected), "rejected", state_in_words(state))
    assert isinstance(state, Rejected)
    return "none" if state.error is None else state.error.condition


@case("core", "4.5.1", "The coordinator says that it has local transactions.")
async def the_coordinator_tells_its_capabilities(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session)
    attach = link.remote_attach
    assert attach is not None
    must(isinstance(attach.target, Coordinator), "a coordinator", attach.target)
    assert isinstance(attach.target, Coordinator)
    offered = attach.target.capabilities
    if "amqp:distributed-transactions" in offered:
        raise NotApplicable("the broker offers distributed transactions", Kind.NOT_OFFERED)
    must("amqp:local-transactions" in offered, "amqp:local-transactions", offered)


@case("core", "4.4.1", "The outcome of a message in a transaction comes with the transaction's id.")
async def an_outcome_within_a_transaction_names_it(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    sender = await session.attach_sender()
    told = await sender.send(message(b"1"), state=TransactionalState(txn_id=txn_id))
    state = told.state
    must(isinstance(state, TransactionalState), "transactional-state", state_in_words(state))
    assert isinstance(state, TransactionalState)
    must(state.txn_id == txn_id, "the id", state.txn_id)
    must(isinstance(state.outcome, Accepted), "accepted", state_in_words(state.outcome))
    await ended(link, txn_id, fail=True)


@case("core", "4.4.1", "A message that comes in several frames is part of its transaction.")
async def a_message_in_pieces_is_part_of_its_transaction(peer: Conversation) -> None:
    session, link, first = await begun(peer)
    sender = await session.attach_sender()
    payload = message(b"in pieces")
    for txn_id, fail in ((first, True), (await declared(link), False)):
        await sender.credit()
        state = TransactionalState(txn_id=txn_id)
        number = sender.transfer(payload[:4], state=state, more=True)
        sender.go_on(payload[4:], state=state)
        await sender.settled(number)
        await ended(link, txn_id, fail=fail)
    found = await take_all(await session.attach_receiver())
    must(found == [b"in pieces"], "the message that was committed, once", found)


@case("core", "4.4.1", "A discharge in the middle of a message ends the coordinator's link.")
async def a_discharge_in_the_middle_of_a_message_is_an_error(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    sender = await session.attach_sender()
    await sender.credit()
    sender.transfer(message(b"half"), state=TransactionalState(txn_id=txn_id), more=True)
    link.transfer(discharge(txn_id, fail=False))
    error = await detached(link)
    assert error is not None
    must(error.condition == ROLLBACK, ROLLBACK, error.condition)


@case("core", "4.4.2", "What was given an outcome, and not settled, is settled by the commit.")
async def a_commit_settles_what_was_not(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    await send_all(await session.attach_sender(), message(b"1"))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    state = TransactionalState(txn_id=txn_id, outcome=ACCEPTED)
    receiver.settle(came, state, settled=False)
    commit = link.transfer(discharge(txn_id, fail=False))
    seen = set[str]()
    while seen != {"commit", "delivery"}:
        told = await peer.expect(Disposition)
        if told.role is SENDER and not told.settled:
            continue  # it may say so before
        must(told.settled, "a settled disposition", "an unsettled one")
        if told.role is SENDER:
            seen.add("delivery")
        elif told.covers(commit):
            must(isinstance(told.state, Accepted), "accepted", state_in_words(told.state))
            seen.add("commit")


@case("core", "4.4.2", "What was not settled is still its receiver's after a rollback.")
async def a_rollback_leaves_what_was_not_settled(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    await send_all(await session.attach_sender(), message(b"1"))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    state = TransactionalState(txn_id=txn_id, outcome=ACCEPTED)
    receiver.settle(came, state, settled=False)
    await ended(link, txn_id, fail=True)
    other = await session.attach_receiver(name=peer.name("other"))
    found = await take_all(other)
    must(found == [], "nothing for another link", found)
    receiver.settle(came, RELEASED)
    found = await take_all(other)
    must(found == [b"1"], "the message once it is released", found)


@case("core", "4.4.2", "Released within a transaction is released once that is committed.")
async def a_release_waits_for_the_commit(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    await send_all(await session.attach_sender(), message(b"1"), message(b"2"))
    receiver = await session.attach_receiver()
    came = await received(receiver, 2)
    receiver.settle(came[0], TransactionalState(txn_id=txn_id, outcome=RELEASED))
    receiver.settle(came[1], RELEASED)
    other = await session.attach_receiver(name=peer.name("other"))
    found = await take_all(other)
    must(found == [b"2"], "only what was released outside", found)
    await ended(link, txn_id, fail=False)
    found = await take_all(other)
    must(found == [b"1"], "the other after the commit", found)


@case("core", "4.4", "Two transactions on one session have nothing to do with each other.")
async def transactions_of_a_session_are_apart(peer: Conversation) -> None:
    session, link, one = await begun(peer)
    attach = link.remote_attach
    assert attach is not None
    assert isinstance(attach.target, Coordinator)
    if "amqp:multi-txns-per-ssn" not in attach.target.capabilities:
        raise NotApplicable(
            "the broker does not offer several transactions for a session", Kind.NOT_OFFERED
        )
    other = await declared(link)
    sender = await session.attach_sender()
    await send_within(sender, one, message(b"one"))
    await send_within(sender, other, message(b"other"))
    await ended(link, one, fail=True)
    await ended(link, other, fail=False)
    receiver = await session.attach_receiver()
    found = bodies(await receive_all(receiver))
    must(found == [b"other"], "what was committed", found)


@case("core", "4.4", "Links of another session take part in a transaction where that is offered.")
async def links_of_other_sessions_take_part(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    attach = link.remote_attach
    assert attach is not None
    assert isinstance(attach.target, Coordinator)
    if "amqp:multi-ssns-per-txn" not in attach.target.capabilities:
        raise NotApplicable(
            "the broker does not offer transactions over several sessions", Kind.NOT_OFFERED
        )
    second = await peer.begin(channel=1)
    await send_within(await second.attach_sender(), txn_id, message(b"1"))
    receiver = await session.attach_receiver()
    found = await take_all(receiver)
    must(found == [], "nothing before the commit", found)
    await ended(link, txn_id, fail=False)
    found = await take_all(receiver)
    must(found == [b"1"], "the message after it", found)


@case(
    "core", "4.3", "What was not discharged is rolled back with the end of its coordinator's link."
)
async def a_transaction_ends_with_its_link(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    sender = await session.attach_sender()
    await send_within(sender, txn_id, message(b"never"))
    await send_all(sender, message(b"outside"))
    await link.detach()
    found = await take_all(await session.attach_receiver())
    must(found == [b"outside"], "only what was sent outside of the transaction", found)
    again = await coordinator(session)
    told = await again.send(discharge(txn_id, fail=False))
    must(condition_of(told.state) == UNKNOWN_ID, UNKNOWN_ID, condition_of(told.state))


@case("core", "4.5.8", "A message within a transaction that is not open ends its link.")
async def a_message_within_no_transaction_is_an_error(peer: Conversation) -> None:
    session, _, _ = await begun(peer)
    sender = await session.attach_sender()
    await sender.credit()
    sender.transfer(message(b"1"), state=TransactionalState(txn_id=b"\xff no such one"))
    error = await detached(sender)
    assert error is not None
    must(error.condition == UNKNOWN_ID, UNKNOWN_ID, error.condition)


@case("core", "4.5.8", "An outcome within a transaction that is not open is never applied.")
async def an_outcome_within_no_transaction_is_not_applied(peer: Conversation) -> None:
    session, _, _ = await begun(peer)
    await send_all(await session.attach_sender(), message(b"1"))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    state = TransactionalState(txn_id=b"\xff no such one", outcome=ACCEPTED)
    receiver.settle(came, state)
    error = await detached(receiver)
    assert error is not None
    must(error.condition == UNKNOWN_ID, UNKNOWN_ID, error.condition)
    found = await take_all(await session.attach_receiver(name=peer.name("other")))
    must(found == [b"1"], "the message", found)


async def to_relay(session: Session) -> Sender:
    """Return a link to the anonymous terminus, with credit, on which a message can be rejected."""
    source = Source(address="conformance", outcomes=list(ALL_OUTCOMES))
    relay = await session.attach_sender(None, source=source)
    await relay.credit()
    return relay


async def doomed(peer: Conversation, session: Session, txn_id: bytes) -> Sender:
    """Send two messages within the transaction: one is accepted, one cannot be and was settled.

    Return the link of the latter, which may end with an error (anonterm 2.2.2).
    """
    await send_within(await session.attach_sender(), txn_id, message(b"1"))
    relay = await to_relay(session)
    relay.transfer(
        message(b"2", properties(to=peer.missing_address)),
        state=TransactionalState(txn_id=txn_id),
        settled=True,
    )
    return relay


async def answer_to_commit(link: Sender, txn_id: bytes, relay: Sender) -> Disposition | Detach:
    """Commit; return the outcome, or the end of the coordinator's link."""
    number = link.transfer(discharge(txn_id, fail=False))
    while True:
        came = await link.session.peer.receive()
        body = came.body
        if isinstance(body, Disposition) and body.role is RECEIVER and body.covers(number):
            return body
        if isinstance(body, Detach) and body.handle != relay.remote_handle:
            return body
        others = isinstance(body, Flow | Detach | Disposition)
        must(others, "an outcome of the discharge, or a detach", described(came.raw))


async def rejection_of_commit(link: Sender, txn_id: bytes, relay: Sender) -> str:
    """Commit; return the condition of the rejection, which must be the answer."""
    answer = await answer_to_commit(link, txn_id, relay)
    must(isinstance(answer, Disposition), "rejected", "a detach")
    assert isinstance(answer, Disposition)
    return condition_of(answer.state)


@case(
    "core",
    "4.4.4.1",
    "A settled message that could not be posted fails the commit. The condition of the rejection is"
    " left open here: 4.3 wants a transaction-error, and Qpid JMS takes the one that fits for doubt"
    " (`a_failed_commit_leaves_no_doubt`).",
)
async def a_rejected_message_fails_the_commit(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    await rejection_of_commit(link, txn_id, await doomed(peer, session, txn_id))
    found = await take_all(await session.attach_receiver())
    must(found == [], "nothing of the transaction", found)
    await declared(link)


@case("jms", "13.4", "A failed commit is rejected by another condition than transaction:rollback.")
async def a_failed_commit_leaves_no_doubt(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    condition = await rejection_of_commit(link, txn_id, await doomed(peer, session, txn_id))
    must(condition != ROLLBACK, "any condition but that, which JMS takes for doubt", condition)


@case(
    "core",
    "4.3",
    "A coordinator's link that cannot take a rejection is detached by a failed commit, with a"
    " transaction-error.",
)
async def a_failed_commit_detaches_where_no_rejection_is_taken(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session, outcomes=["amqp:accepted:list"])
    txn_id = await declared(link)
    answer = await answer_to_commit(link, txn_id, await doomed(peer, session, txn_id))
    must(isinstance(answer, Detach), "a detach of the coordinator's link", answer)
    assert isinstance(answer, Detach)
    told = "none" if answer.error is None else answer.error.condition
    must(told in TRANSACTION_ERRORS, "a condition of transactions", told)
    found = await take_all(await session.attach_receiver())
    must(found == [], "nothing of the transaction", found)


@case(
    "core",
    "4.4.1",
    "Of a transaction with a message that was rejected unsettled, a commit does what was told"
    " before, or nothing and is rejected: 4.4.4.1 allows both.",
)
async def a_commit_does_what_the_outcomes_told(peer: Conversation) -> None:
    session, link, txn_id = await begun(peer)
    missing = peer.missing_address
    await send_within(await session.attach_sender(), txn_id, message(b"1"))
    relay = await to_relay(session)
    sent = message(b"2", properties(to=missing))
    told = await relay.send(sent, state=TransactionalState(txn_id=txn_id))
    state = told.state
    must(isinstance(state, TransactionalState), "transactional-state", state_in_words(state))
    assert isinstance(state, TransactionalState)
    must(isinstance(state.outcome, Rejected), "rejected", state_in_words(state.outcome))
    ending = (await link.send(discharge(txn_id, fail=False))).state
    found = await take_all(await session.attach_receiver())
    if isinstance(ending, Accepted):
        must(found == [b"1"], "the message that was accepted", found)
        return
    condition_of(ending)
    must(found == [], "nothing of a transaction whose commit was rejected", found)
