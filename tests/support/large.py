"""A broker whose store keeps the bodies of large messages, and messages for it."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from broker.amqp.limits import Limits
from broker.large_body_store import LargeBodyStore
from broker.routing.addresses.policy import AddressPolicy
from storage.api import StoreError
from storage.contents import CHUNK_SIZE
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, message
from tests.support.stores import GatedStore

FRAME = 200_000
"""Bytes of a large message per frame."""

SIZE = 5 * CHUNK_SIZE + 77
"""Size in bytes of a body that is streamed."""


class StreamingBroker:
    """A broker on a store whose commits complete only while a test lets it `work`."""

    def __init__(
        self, policy: AddressPolicy | None = None, *, limits: Limits | None = None
    ) -> None:
        self.store = GatedStore(keeps_contents=True)
        self.broker = Broker(store=self.store, policy=policy, limits=limits)
        self.contents = LargeBodyStore(self.broker.journal, self.store)
        self.broker.container.contents = self.contents
        self.broker.router.context.bodies = self.contents

    async def __aenter__(self) -> Self:
        container = self.broker.container
        self._committing = asyncio.get_running_loop().create_task(
            self.broker.journal.run(container.run_round)
        )
        self.contents.start(container.run_round)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.contents.close()
        self._committing.cancel()
        with suppress(asyncio.CancelledError, StoreError):
            await self._committing

    async def work(self) -> None:
        """Let the store complete all operations, and the tasks that wait for them continue."""
        for _ in range(40):
            self.store.let_all_through()
            await asyncio.sleep(0)

    async def swept(self) -> int:
        """Delete unused large bodies; return the number of chunks that are left."""
        self.broker.container.run_round()
        await self.work()
        while await self.store.sweep():
            pass
        return await self.store.chunks()


def large(size: int = SIZE, **fields: object) -> tuple[bytes, bytes]:
    """Return an encoded message with a body of `size` bytes, and that body."""
    body = bytes(range(251)) * (size // 251 + 1)
    body = body[:size]
    return message(body, **fields), body  # type: ignore[arg-type]


def pieces(payload: bytes, number: int = 0, **fields: object) -> list[Transfer]:
    """Return the frames of a large delivery."""
    frames: list[Transfer] = []
    for at in range(0, len(payload), FRAME):
        given: dict[str, object] = {
            "delivery_id": number,
            "tag": b"%d" % number,
            "payload": payload[at : at + FRAME],
            "more": at + FRAME < len(payload),
            **fields,
        }
        frames.append(Transfer(**given))  # type: ignore[arg-type]
    return frames


async def received(streaming: StreamingBroker, client: Client) -> list[Transfer]:
    """Return the frames of the next delivery, once it is complete."""
    found: list[Transfer] = []
    while not found or found[-1].more:
        await streaming.work()
        client.flow(incoming_window=1000)
        frames = client.frames()
        assert frames, "a delivery that goes on was expected"
        for index, frame in enumerate(frames):
            assert isinstance(frame.body, Transfer), frame.body
            found.append(frame.body)
            if not frame.body.more:
                client.put_back(frames[index + 1 :])
                break
    return found
