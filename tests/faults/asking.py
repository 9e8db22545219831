"""What the broker says of itself, by `$management`."""

from __future__ import annotations

from broker.amqp.terminus import Source, Target
from tests.faults.client import Client
from tests.faults.links import Lost
from tests.support.management import MANAGEMENT, REPLY_TO, read_reply, request


async def record_of(client: Client, kind: str, name: str) -> dict[str, object]:
    """The record of that entity."""
    receiver = await client.receiver(
        MANAGEMENT, credit=10, source=Source(address=MANAGEMENT), target=Target(address=REPLY_TO)
    )
    sender = await client.sender(MANAGEMENT)
    await sender.room()
    await sender.send(request("READ", kind, name))
    answer = await receiver.next()
    if answer is None:
        raise Lost("no answer from $management")
    reply = read_reply(answer.payload)
    if reply.status != 200:
        raise Lost(f"{reply.status} {reply.description}")
    return reply.map
