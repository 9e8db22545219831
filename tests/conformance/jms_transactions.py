"""Local transactions, as far as a broker has them (`docs/design/jms-clients.md` 10, 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Accepted,
    Declared,
    Rejected,
    TransactionalState,
)
from broker.amqp.terminus import Coordinator, Source
from broker.amqp.types import Described, ULong

from .conversation import Conversation
from .exchange import (
    ALL_OUTCOMES,
    check_accepted,
    header_of,
    receive_all,
    receive_one,
    send_all,
    state_in_words,
    take_all,
    unless_not_offered,
)
from .frames import Disposition, described
from .harness import case
from .messages import message, section
from .session import Sender, Session
from .steps import bodies, connected_session, must, received
from .verdict import Failed, Kind, NotApplicable

TXN_ID_MAX: Final = 32
"""Maximum bytes of a transaction id that JMS clients accept (10.2)."""

DELAY_MS: Final = 300


def declare() -> bytes:
    return section(0x77, Described(ULong(0x31), []))


def discharge(txn_id: bytes, *, fail: bool) -> bytes:
    return section(0x77, Described(ULong(0x32), [txn_id, fail]))


async def coordinator(session: Session, *, outcomes: Sequence[str] = ALL_OUTCOMES) -> Sender:
    """Return a link to the coordinator with credit, whose source takes `outcomes`.

    Raise NotApplicable if there is none.
    """
    link = session.new_sender(
        name=session.peer.name("coordinator"),
        source=Source(outcomes=list(outcomes)),
        target=Coordinator(capabilities=["amqp:local-transactions"]),
    )
    await unless_not_offered(link)
    await link.credit()
    return link


async def declared(link: Sender) -> bytes:
    """Declare a transaction; return its id."""
    told = await link.send(declare())
    if not isinstance(told.state, Declared):
        raise Failed("declared", state_in_words(told.state))
    must(told.settled, "a settled disposition", "an unsettled one")
    return told.state.txn_id


async def ended(link: Sender, txn_id: bytes, *, fail: bool) -> None:
    """Discharge the transaction; it must be accepted."""
    told = await link.send(discharge(txn_id, fail=fail))
    check_accepted(told)
    must(told.settled, "a settled disposition", "an unsettled one")


async def send_within(sender: Sender, txn_id: bytes, payload: bytes) -> None:
    """Send a message in the transaction; it must be accepted."""
    told = await sender.send(payload, state=TransactionalState(txn_id=txn_id))
    state = told.state
    outcome = state.outcome if isinstance(state, TransactionalState) else state
    must(isinstance(outcome, Accepted), "an accepted outcome", state_in_words(outcome))


@case("jms", "10.2", "A transaction is declared, with an id of 1 to 32 bytes, and settled at once.")
async def a_transaction_can_be_declared(peer: Conversation) -> None:
    link = await coordinator(await connected_session(peer))
    txn_id = await declared(link)
    must(0 < len(txn_id) <= TXN_ID_MAX, "1 to 32 bytes", len(txn_id))
    await ended(link, txn_id, fail=True)


@case("jms", "10.3", "What is sent within a transaction is there once it is committed, not before.")
async def what_was_sent_is_there_after_commit(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session)
    sender = await session.attach_sender()
    receiver = await session.attach_receiver()
    txn_id = await declared(link)
    await send_within(sender, txn_id, message(b"in the transaction"))
    found = await take_all(receiver)
    must(found == [], "nothing before the commit", found)
    await ended(link, txn_id, fail=False)
    found = await take_all(receiver)
    must(found == [b"in the transaction"], "the message after it", found)


@case("jms", "10.3", "What is sent within a transaction is never there once it is rolled back.")
async def what_was_sent_is_gone_after_rollback(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session)
    txn_id = await declared(link)
    sender = await session.attach_sender()
    await send_within(sender, txn_id, message(b"rolled back"))
    await ended(link, txn_id, fail=True)
    await send_all(sender, message(b"outside"))
    found = await take_all(await session.attach_receiver())
    must(found == [b"outside"], "only what was sent outside of the transaction", found)


@case("jms", "10.3", "What is accepted within a transaction is gone once that is committed.")
async def what_was_consumed_is_gone_after_commit(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session)
    await send_all(await session.attach_sender(), message(b"consumed"))
    receiver = await session.attach_receiver()
    txn_id = await declared(link)
    came = await receive_one(receiver)
    receiver.settle(came, TransactionalState(txn_id=txn_id, outcome=ACCEPTED))
    await ended(link, txn_id, fail=False)
    await receiver.detach()
    found = await take_all(await session.attach_receiver(name=peer.name("other")))
    must(found == [], "nothing", found)


@case("jms", "13.6", "What is accepted, and settled, within a transaction is locked until its end.")
async def what_was_consumed_is_locked_before_commit(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session)
    await send_all(await session.attach_sender(), message(b"consumed"))
    receiver = await session.attach_receiver()
    txn_id = await declared(link)
    came = await receive_one(receiver)
    receiver.settle(came, TransactionalState(txn_id=txn_id, outcome=ACCEPTED))
    other = await session.attach_receiver(name=peer.name("other"))
    found = await take_all(other)
    must(found == [], "nothing for another link", found)
    await ended(link, txn_id, fail=False)


@case("jms", "13.21", "A rollback returns what was consumed to its place, and counts it.")
async def a_rollback_returns_messages_to_their_places(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session)
    await send_all(await session.attach_sender(), *(message(b"%d" % at) for at in range(4)))
    receiver = await session.attach_receiver()
    txn_id = await declared(link)
    for each in await received(receiver, 2):
        receiver.settle(each, TransactionalState(txn_id=txn_id, outcome=ACCEPTED))
    await ended(link, txn_id, fail=True)
    found = await receive_all(receiver)
    for each in found:
        receiver.settle(each)
    must(bodies(found) == [b"0", b"1", b"2", b"3"], "the order sent", bodies(found))
    counts = [header_of(each).delivery_count for each in found]
    must(counts == [1, 1, 0, 0], "delivery-counts 1, 1, 0, 0", counts)
    await peer.expect_nothing()


@case("jms", "10.4", "What is released with each rollback keeps its order, however many there are.")
async def many_rollbacks_leave_the_order_as_it_was(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session)
    sent = [b"%d" % at for at in range(8)]
    await send_all(await session.attach_sender(), *map(message, sent))
    receiver = await session.attach_receiver()
    for first in range(5):
        for fail in (True, True, True, False):
            txn_id = await declared(link)
            prefetched = await received(receiver, len(sent) - first)
            must(bodies(prefetched) == sent[first:], "the order sent", bodies(prefetched))
            accepted = TransactionalState(txn_id=txn_id, outcome=ACCEPTED)
            receiver.settle(prefetched[0], accepted)
            await ended(link, txn_id, fail=fail)
            for each in prefetched[1:]:
                receiver.settle(each, RELEASED)
    found = await receive_all(receiver)
    must(bodies(found) == sent[5:], "the order sent", bodies(found))


@case("jms", "13.5", "A discharge and the next declare may be pipelined, and are done in order.")
async def commands_may_be_pipelined(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session)
    first = await declared(link)
    if await link.credit() < 2:
        raise NotApplicable("the broker gives credit for one command at a time", Kind.NOT_OFFERED)
    commit = link.transfer(discharge(first, fail=False))
    begin = link.transfer(declare())
    left = {commit: "accepted", begin: "declared"}
    while left:
        told = await peer.expect(Disposition)
        for delivery_id in [each for each in left if told.covers(each)]:
            wanted = left.pop(delivery_id)
            must(state_in_words(told.state) == wanted, wanted, state_in_words(told.state))
        if isinstance(told.state, Declared):
            must(told.state.txn_id != first, "another transaction id", "the same")


@case(
    "jms", "10.2", "The coordinator's credit is replenished, however many transactions there are."
)
async def the_coordinator_gives_credit_again(peer: Conversation) -> None:
    link = await coordinator(await connected_session(peer))
    for _ in range(50):
        await ended(link, await declared(link), fail=False)


@case("jms", "10.3", "A transaction is rolled back when the session of its coordinator ends.")
async def a_transaction_ends_with_its_coordinator(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await coordinator(session)
    txn_id = await declared(link)
    sender = await session.attach_sender()
    await send_within(sender, txn_id, message(b"never"))
    await send_all(sender, message(b"outside"))
    await session.end()
    found = await take_all(await (await peer.begin(channel=1)).attach_receiver())
    must(found == [b"outside"], "only what was sent outside of the transaction", found)


@case("jms", "10.2", "A discharge of a transaction that nobody declared is refused.")
async def an_unknown_transaction_cannot_be_discharged(peer: Conversation) -> None:
    link = await coordinator(await connected_session(peer))
    link.transfer(discharge(b"\xff no such one", fail=False))
    came = await peer.receive()
    while not isinstance(came.body, Disposition) and not hasattr(came.body, "error"):
        came = await peer.receive()
    if isinstance(came.body, Disposition):
        state = came.body.state
        must(isinstance(state, Rejected), "rejected, or a detach", state_in_words(state))
        return
    must(getattr(came.body, "error", None) is not None, "an error", described(came.raw))
