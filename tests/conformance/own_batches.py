"""Leases and stages: batches of messages of jms-broker that programs take and send.

A lease holds messages for a program, whichever connections it has. A stage keeps messages of an
attempt until the batch that they belong to is committed, once. Their requests are in
`docs/reference/management.md`.
"""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import RELEASED

from .conversation import Conversation
from .exchange import header_of, receive_all, send_all, take_all
from .harness import case
from .jms_subscriptions import numbered
from .messages import message
from .own_requests import Requests, requests
from .session import Session
from .steps import bodies, connected_session, must
from .verdict import Kind, NotApplicable

LEASE: Final = "lease"
SINK: Final = "sink"


async def leased(
    asking: Requests, session: Session, *, messages: int, most: int, selector: str = ""
) -> tuple[str, int]:
    """Lease that number of messages; return the name and the fencing token of the lease.

    Raise NotApplicable if the broker has no leases.
    """
    name = session.peer.name("lease")
    opened = await asking.first(
        "OPEN", LEASE, name, address=session.peer.address, selector=selector
    )
    token = opened.number("fencing_token")
    wanted = {"batch": 1, "max_messages": most, "fencing_token": token}
    acquired = await asking.done("ACQUIRE", LEASE, name, **wanted)
    must(acquired.number("messages") == messages, f"a batch of {messages}", acquired)
    return name, token


@case("own", "leases", "What a lease held returns to its place with its release, uncounted.")
async def a_released_lease_returns_its_messages(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"1"), message(b"2"), message(b"3"))
    asking = await requests(session)
    name, token = await leased(asking, session, messages=2, most=2)
    consumer = await session.attach_receiver()
    found = await receive_all(consumer)
    must(bodies(found) == [b"3"], "the message that is not leased", bodies(found))
    consumer.settle(found[0], RELEASED)
    await asking.done("RELEASE", LEASE, name, fencing_token=token)
    found = await receive_all(consumer)
    for each in found:
        consumer.settle(each)
    must(bodies(found) == [b"1", b"2", b"3"], "all messages in their order", bodies(found))
    counts = [header_of(each).delivery_count for each in found]
    must(counts == [0, 0, 0], "no delivery that failed", counts)
    await peer.expect_nothing()


@case("own", "leases", "A lease takes what its selector selects, and what is settled is gone.")
async def a_lease_takes_what_its_selector_selects(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await send_all(sender, numbered(2, b"two"), numbered(1, b"one"), numbered(2, b"2"))
    asking = await requests(session)
    name, token = await leased(asking, session, messages=1, most=9, selector="x = 1")
    consumer = await session.attach_receiver()
    found = await take_all(consumer)
    must(found == [b"two", b"2"], "what the selector does not take", found)
    await asking.done("SETTLE", LEASE, name, batch=1, fencing_token=token)
    await asking.done("RELEASE", LEASE, name, fencing_token=token)
    found = await take_all(consumer)
    must(found == [], "nothing of the settled batch", found)


async def stage(session: Session, query: str, attempt: int, payload: bytes) -> None:
    """Stage a message for an attempt of batch 0; raise NotApplicable if the broker stages none."""
    wishes: dict[str, object] = {
        "stage-query": query,
        "stage-batch": 0,
        "stage-partition": 0,
        "stage-attempt": attempt,
    }
    sender = await session.attach_sender(
        name=session.peer.name(f"attempt-{attempt}"), properties=wishes
    )
    assert sender.remote_attach is not None
    if "stage-query" not in sender.remote_attach.properties:
        raise NotApplicable("the broker stages no messages", Kind.NOT_OFFERED)
    await send_all(sender, payload)
    await sender.detach()


@case("own", "stages", "Staged messages come with the commit of their batch, and only once.")
async def a_staged_batch_is_delivered_once(peer: Conversation) -> None:
    session = await connected_session(peer)
    query = peer.name("query")
    await stage(session, query, 1, message(b"once"))
    consumer = await session.attach_receiver()
    found = await take_all(consumer)
    must(found == [], "nothing before the commit", found)
    asking = await requests(session)
    task = {"batch": 0, "partitions": [0], "counts": [1]}
    await asking.done("COMMIT", SINK, query, attempts=[1], **task)
    found = await take_all(consumer)
    must(found == [b"once"], "the staged message", found)
    await stage(session, query, 2, message(b"again"))
    await asking.done("COMMIT", SINK, query, attempts=[2], **task)
    found = await take_all(consumer)
    must(found == [], "nothing of a batch that was committed before", found)
    await asking.done("FORGET", SINK, query)
