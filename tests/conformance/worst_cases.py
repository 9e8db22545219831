"""Cases that stop a careless broker, or occupy it for minutes: they run after all others.

They are classes of `docs/design/hostile-input.md`. Cases run in the order of their modules'
names, so the name of this module matters.
"""

from __future__ import annotations

from typing import Final

from broker.amqp import descriptors
from broker.amqp.outcomes import ACCEPTED
from broker.amqp.performatives import RCV_SECOND, RECEIVER, SENDER, Attach
from broker.amqp.terminus import Source, Target

from .conversation import Conversation
from .core_2_7_6_dispositions import expect_left, ids, unsettled
from .core_2_7_performatives import attach_fields, expect_blame_or_service, prepared
from .frames import Disposition, raw_frame
from .harness import case
from .messages import message, section
from .session import Session
from .steps import connected_session, must, next_frame, put
from .verdict import Kind, NotApplicable

MANY_LINKS: Final = 4000

MANY_UNSETTLED: Final = 20_000


@case(
    "reliability", "C12", "Ranges of 2^31-1 deliveries cost what is unsettled, not what they name."
)
async def enormous_ranges_are_cheap(peer: Conversation) -> None:
    receiver, deliveries = await unsettled(peer, 2)
    first = ids(deliveries)[0]
    last = (first + 0x7FFF_FFFF) % 2**32
    receiver.session.send(Disposition(first=first, last=last, state=ACCEPTED))
    await peer.expect_nothing()
    await expect_left(receiver)


@case("reliability", "C12", "Ranges of all ids there are do no harm, in either role.")
async def ranges_of_all_ids_do_no_harm(peer: Conversation) -> None:
    receiver, _ = await unsettled(peer, 2)
    other = await peer.begin(1)
    for role in (SENDER, RECEIVER):
        receiver.session.send(
            Disposition(role=role, first=0, last=0xFFFF_FFFF, state=ACCEPTED),
            Disposition(role=role, first=1, last=0, state=ACCEPTED),
        )
    await put(other, b"goes on")


@case("reliability", "C5", "Values nested thousands deep in an attach do no harm.")
async def deep_values_in_an_attach_do_no_harm(peer: Conversation) -> None:
    fields = section(descriptors.ATTACH, attach_fields(peer.address))
    assert fields[3] == 0xC0
    deep = b"\x45"
    for _ in range(5000):
        deep = b"\xd0" + (len(deep) + 4).to_bytes(4) + (1).to_bytes(4) + deep
    properties = b"\xa3\x01x" + deep
    properties = b"\xd1" + (len(properties) + 4).to_bytes(4) + (2).to_bytes(4) + properties
    body = fields[6:] + b"\x40\x40\x40" + properties
    whole = fields[:3] + b"\xd0" + (len(body) + 4).to_bytes(4) + (14).to_bytes(4) + body
    await prepared(peer)
    await expect_blame_or_service(peer, raw_frame(whole))
    async with peer.another() as other:
        await prepared(other)


@case("reliability", "R3", "A session ends at once, however many links and deliveries it has.")
async def end_of_many_links_is_cheap(peer: Conversation) -> None:
    session = await connected_session(peer)
    links = await _attach_many(session)
    sender = await session.attach_sender("", handle=links, rcv_settle_mode=RCV_SECOND)
    assert sender.remote_attach is not None
    if sender.remote_attach.rcv_settle_mode != RCV_SECOND:
        raise NotApplicable("the broker settles first on all links", Kind.NOT_OFFERED)
    payload = message(b"unsettled")
    for _ in range(MANY_UNSETTLED):
        while sender.link_credit < 1:
            await next_frame(peer)
        sender.transfer(payload)
    await session.end()
    async with peer.another() as other:
        await prepared(other)


async def _attach_many(session: Session) -> int:
    """Attach as many links as the broker lets us, but for one; return their number."""
    assert session.remote_begin is not None
    links = min(MANY_LINKS, int(session.remote_begin.handle_max))
    for handle in range(links):
        session.send(
            Attach(
                name=session.peer.name(f"idle-{handle}"),
                handle=handle,
                role=SENDER,
                rcv_settle_mode=RCV_SECOND,
                source=Source(address="conformance"),
                target=Target(address=session.peer.address, capabilities=["queue"]),
                initial_delivery_count=0,
            )
        )
    answers = 0
    while answers < links:
        answer = (await next_frame(session.peer)).body
        if isinstance(answer, Attach):
            must(answer.target is not None, "an accepted link", answer)
            answers += 1
    return links
