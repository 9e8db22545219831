"""Requests to the broker's `$management` node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from broker.amqp.terminus import Source, Target
from tests.faults.client import Client
from tests.faults.links import Delivery, Lost, Receiver, Sender
from tests.support.management import MANAGEMENT, REPLY_TO, Reply, read_reply, request


class Asking:
    """A client's pair of links to `$management`; at most one request is outstanding at a time."""

    def __init__(self, sender: Sender, receiver: Receiver) -> None:
        self._sender: Final = sender
        self._receiver: Final = receiver
        self._answer: Delivery | None = None

    @classmethod
    async def of(cls, client: Client) -> Self:
        """Attach both links over `client`, which must have no such links yet."""
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
        """Send a request without waiting for its response."""
        await self._sender.room()
        asked = None if body is None else dict(body)
        await self._sender.send(request(operation, kind, name, body=asked))

    async def has_answered(self) -> bool:
        """Return whether the response has arrived by now; do not wait for it."""
        self._answer = await self._receiver.next(0)
        return self._answer is not None

    async def answer(self) -> Reply:
        """Wait for the response, accept it and return it; raise Lost if none arrives."""
        answer = self._answer or await self._receiver.next()
        self._answer = None
        if answer is None:
            raise Lost("no answer from $management")
        self._receiver.accept(answer)
        return read_reply(answer.payload)

    async def ask(
        self, operation: str, kind: str, name: str, body: Mapping[str, object] | None = None
    ) -> Reply:
        """Send a request and return its response."""
        await self.send(operation, kind, name, body)
        return await self.answer()


async def record_of(client: Client, kind: str, name: str) -> dict[str, object]:
    """Return the record of an entity, by its kind and name; raise Lost unless the status is 200."""
    reply = await (await Asking.of(client)).ask("READ", kind, name)
    if reply.status != 200:
        raise Lost(f"{reply.status} {reply.description}")
    return reply.map
