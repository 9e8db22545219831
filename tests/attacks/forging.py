"""Attacks of a user by messages: a forged user-id, a reply address, dead letters."""

from __future__ import annotations

from typing import Final

from broker.amqp.errors import RESOURCE_LOCKED
from broker.amqp.outcomes import Declared, Rejected, TransactionalState
from broker.amqp.performatives import Detach
from broker.amqp.terminus import COPY, Coordinator, Source
from tests.attacks.intruding import ATTEMPTS
from tests.attacks.plan import Deadline, Reached, Site
from tests.attacks.users import (
    HEALTHY,
    MALLORY,
    PRIVATE,
    REPLIER,
    again_and_again,
    client_of,
    field_of,
    hear_refusal,
    hear_rejection,
    send,
    taken,
)
from tests.conformance.frames import Transfer
from tests.conformance.session import Receiver, Session
from tests.conformance.verdict import Failed
from tests.support.frames import message
from tests.support.management import MANAGEMENT, request
from tests.support.transactions import declare

POSTED: Final = "mallory.posted"
FORGED: Final = message(to=POSTED, user_id=HEALTHY.encode())
TRUE: Final = message(to=POSTED, user_id=MALLORY.encode())


async def user_ids(site: Site) -> Reached:
    """Send messages in another user's name: to a queue, by the relay, settled, in a transaction."""
    reached = Reached()
    async with client_of(site, MALLORY, "posting") as session:

        async def attempt() -> None:
            for address in (POSTED, None):
                sender = await session.attach_sender(address)
                hear_rejection((await sender.send(FORGED)).state, reached)
                await send(sender, TRUE)
                await sender.credit()
                sender.transfer(FORGED, settled=True)
                detach = await session.peer.expect(Detach, closed=True)
                assert detach.error is not None
                reached.hear(detach.error.condition, detach.error.description or "")
                session.send(Detach(handle=sender.handle, closed=True))
                del session.links[sender.handle]
            await _forge_in_a_transaction(session, reached)

        count = await again_and_again(site, attempt)
        found = await taken(session, POSTED)
    names = {field_of(each, "user_id") for each in found}
    reached.figures = {ATTEMPTS: count, "messages in their sender's own name": len(found)}
    reached.check(names == {MALLORY.encode()}, f"there are messages of {names}")
    reached.check(len(found) == 2 * count, f"{2 * count} true messages, {len(found)} were there")
    return reached


async def _forge_in_a_transaction(session: Session, reached: Reached) -> None:
    wanted = Coordinator(capabilities=["amqp:local-transactions"])
    coordinator = await session.attach_sender(target=wanted)
    declared = (await coordinator.send(declare())).state
    assert isinstance(declared, Declared)
    sender = await session.attach_sender(POSTED)
    told = (await sender.send(FORGED, state=TransactionalState(txn_id=declared.txn_id))).state
    assert isinstance(told, TransactionalState)
    hear_rejection(told.outcome, reached)
    await sender.detach()
    await coordinator.detach()


REQUESTS: Final = "requests"


async def reply_to(site: Site) -> Reached:
    """Name another user's queue as reply address: to an application, and to the broker itself."""
    reached = Reached()
    answers = 0
    async with (
        client_of(site, HEALTHY, "requesting") as owner,
        client_of(site, REPLIER, "replying") as replier,
        client_of(site, MALLORY, "naming") as mallory,
    ):
        private = Source(dynamic=True, capabilities=["temporary-queue"])
        replies = await owner.attach_receiver(None, source=private)
        temporary = _address_of(replies)
        asks = await mallory.attach_sender(REQUESTS)
        manages = await mallory.attach_sender(MANAGEMENT)
        answering = await replier.attach_receiver(REQUESTS)
        relay = await replier.attach_sender(None)

        async def attempt() -> None:
            nonlocal answers
            for address in (PRIVATE, temporary):
                await send(asks, request(reply_to=address))
                answering.grant(1)
                asked = await answering.receive()
                answering.settle(asked)
                outcome = (await relay.send(message(to=_reply_address(asked)))).state
                if address == PRIVATE:
                    hear_rejection(outcome, reached)
                else:
                    replies.grant(1)
                    replies.settle(await replies.receive())
                    answers += 1
                hear_rejection((await manages.send(request(reply_to=address))).state, reached)
            await _read(site, reached, temporary)

        count = await again_and_again(site, attempt)
        there = len(await taken(owner, PRIVATE))
    reached.figures = {ATTEMPTS: count, "answers of the replier to their owner": answers}
    reached.check(not there, f"{there} messages reached a queue that is closed to their senders")
    return reached


async def _read(site: Site, reached: Reached, address: str) -> None:
    """Try to receive from, and to browse, the temporary queue of another user's connection."""
    for mode in (None, COPY):
        async with client_of(site, MALLORY, "reading") as session:
            source = Source(address=address, distribution_mode=mode)
            await hear_refusal(session.new_receiver(None, source=source), reached, RESOURCE_LOCKED)


def _address_of(receiver: Receiver) -> str:
    """Return the address that the broker has given to a temporary queue."""
    attach = receiver.remote_attach
    source = None if attach is None else attach.source
    if source is None or source.address is None:
        raise Failed("the address of a temporary queue", repr(source))
    return source.address


def _reply_address(asked: Transfer) -> str:
    found = field_of(asked, "reply_to")
    if not isinstance(found, str):
        raise Failed("the reply address of a request", repr(found))
    return found


FAILING: Final = "mallory.failing"
CLAIMS: Final[dict[str, object]] = {
    "x-opt-ORIG-ADDRESS": PRIVATE,
    "x-opt-ORIG-QUEUE": PRIVATE,
    "x-opt-dead-letter-held": True,
}
"""Annotations with which a message claims to be a dead letter of another queue."""

EXPIRY_S: Final = 5.0
"""Maximum seconds until all expired messages have been moved."""


async def dead_letters(site: Site) -> Reached:
    """Make the broker move messages, and read where it has moved them."""
    reached = Reached()
    async with client_of(site, MALLORY, "failing") as mallory:
        sender = await mallory.attach_sender(FAILING)
        receiver = await mallory.attach_receiver(FAILING)

        async def attempt() -> None:
            await send(sender, message(to=PRIVATE, annotations=CLAIMS))
            receiver.grant(1)
            receiver.settle(await receiver.receive(), Rejected())
            await send(sender, message(to=PRIVATE, annotations=CLAIMS, ttl=1))
            for address in ("dead", "late"):
                async with client_of(site, MALLORY, "looking") as other:
                    await hear_refusal(other.new_sender(address), reached)
                    await hear_refusal(other.new_receiver(address), reached)
                    source = Source(address=address, distribution_mode=COPY)
                    await hear_refusal(other.new_receiver(None, source=source), reached)

        count = await again_and_again(site, attempt)
        # the messages that it meets on its way have expired, and are moved
        receiver.grant(1, drain=True)
        await mallory.peer.expect_nothing()
    async with client_of(site, HEALTHY, "reading-dead-letters") as owner:
        dead = await taken(owner, "dead")
        late, deadline = 0, Deadline(EXPIRY_S)
        while late < count and not deadline.is_over():
            late += len(await taken(owner, "late"))
        there = len(await taken(owner, PRIVATE))
    reached.figures = {ATTEMPTS: count, "dead letters": len(dead), "expired": late}
    reached.check(len(dead) == count, f"{count} messages were rejected, {len(dead)} are there")
    reached.check(late == count, f"{count} messages were to expire, {late} are there")
    reached.check(not there, f"{there} messages reached a queue that their sender may not use")
    return reached
