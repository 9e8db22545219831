"""Cases that stop a careless broker, or occupy it for minutes: they run after all others.

They are classes of `docs/design/hostile-input.md`. Cases run in the order of their modules'
names, so the name of this module matters.
"""

from __future__ import annotations

from broker.amqp import descriptors
from broker.amqp.outcomes import ACCEPTED
from broker.amqp.performatives import RECEIVER, SENDER

from .conversation import Conversation
from .core_2_7_6_dispositions import expect_left, ids, unsettled
from .core_2_7_performatives import attach_fields, expect_blame_or_service, prepared
from .frames import Disposition, raw_frame
from .harness import case
from .messages import section
from .steps import put


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
