"""What the broker says of itself, by `$management`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from broker.amqp.terminus import Source, Target
from tests.faults.client import Client
from tests.faults.links import Delivery, Lost, Receiver, Sender
from tests.support.management import MANAGEMENT, REPLY_TO, Reply, read_reply, request


class Asking:
    """A connection's links to `$management`; one request at a time."""

    def __init__(self, sender: Sender, receiver: Receiver) -> None:
        self._sender: Final = sender
        self._receiver: Final = receiver
        self._answer: Delivery | None = None

    @classmethod
    async def of(cls, client: Client) -> Self:
        """Those of that client, which has none yet."""
        receiver = await client.receiver(
            MANAGEMENT,
            credit=10,
            source=Source(address=MANAGEMENT),
            target=Target(address=REPLY_TO),
        )
        return cls(await client.sender(MANAGEMENT), receiver)

    async def send(
        self, operation: str, kind: str, name: str, body: Mapping[str, object] | None = None
    ) -> None:
        """Send a request, and wait for nothing."""
        await self._sender.room()
        asked = None if body is None else dict(body)
        await self._sender.send(request(operation, kind, name, body=asked))

    async def has_answered(self) -> bool:
        """Whether the answer has come by now."""
        self._answer = await self._receiver.next(0)
        return self._answer is not None

    async def answer(self) -> Reply:
        """The answer; Lost where none comes."""
        answer = self._answer or await self._receiver.next()
        self._answer = None
        if answer is None:
            raise Lost("no answer from $management")
        self._receiver.accept(answer)
        return read_reply(answer.payload)

    async def ask(
        self, operation: str, kind: str, name: str, body: Mapping[str, object] | None = None
    ) -> Reply:
        """What comes of a request."""
        await self.send(operation, kind, name, body)
        return await self.answer()


async def record_of(client: Client, kind: str, name: str) -> dict[str, object]:
    """The record of that entity."""
    reply = await (await Asking.of(client)).ask("READ", kind, name)
    if reply.status != 200:
        raise Lost(f"{reply.status} {reply.description}")
    return reply.map
