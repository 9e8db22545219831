"""Links of the fault tests' client: senders, receivers and the coordinator's link."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from broker.amqp.outcomes import (
    ACCEPTED,
    Accepted,
    Declared,
    DeliveryState,
    Outcome,
    Released,
    TransactionalState,
)
from broker.amqp.performatives import Flow
from broker.amqp.types import UInt
from tests.conformance.frames import Disposition, Transfer
from tests.support.frames import body_of, header_of
from tests.support.transactions import declare, discharge

if TYPE_CHECKING:
    from tests.faults.client import Client

WINDOW: Final = 2**20
"""Number of transfers that the client's session window allows the broker."""

PATIENCE_S: Final = 20.0
"""Seconds after which a missing answer means that the broker hangs."""


class Lost(ConnectionError):  # noqa: N818 - named for what happened
    """The connection is lost, and with it every answer that had not arrived."""


class Refused(Exception):  # noqa: N818 - named for what the broker did
    """The broker refused the link: it was detached at once."""


class Sender:
    """A link to the broker. A message's future has its outcome, None if that never arrived."""

    def __init__(self, client: Client, handle: int) -> None:
        self._client: Final = client
        self._handle: Final = handle
        self._sent = 0
        self.credit_end = 0

    @property
    def credit(self) -> int:
        return self.credit_end - self._sent

    async def room(self) -> None:
        """Wait until a message may be sent."""
        while self.credit <= 0 or self._client.window <= 0:
            await self._client.change()

    async def send(
        self, payload: bytes, *, transaction: bytes | None = None, halt_at: int | None = None
    ) -> asyncio.Future[DeliveryState | None]:
        """Send a message; await `room` first. With `halt_at`, send only that many bytes of it."""
        self._sent += 1
        state = None if transaction is None else TransactionalState(txn_id=transaction)
        return await self._client.transfer(self._handle, payload, state=state, halt_at=halt_at)


class Delivery:
    """A message that was received."""

    def __init__(self, delivery_id: int, payload: bytes) -> None:
        self.delivery_id: Final = delivery_id
        self.payload: Final = payload

    @property
    def body(self) -> bytes:
        return body_of(self.payload)

    @property
    def flagged(self) -> bool:
        """Return whether the message's header says that it may have been delivered before."""
        header = header_of(self.payload)
        count = header[4]
        return header[3] is not True or (isinstance(count, UInt) and count.value > 0)


class Receiver:
    """A link from the broker; it renews its credit whenever half of `credit` is used."""

    def __init__(self, client: Client, handle: int, credit: int) -> None:
        self._client: Final = client
        self._handle: Final = handle
        self._credit: Final = credit
        self._granted = 0
        self._count = 0
        self._partial = b""
        self._delivery_id = 0
        self._deliveries: Final[deque[Delivery]] = deque()
        self.drained = False
        self._grant()

    def _grant(self, *, drain: bool = False) -> None:
        if self._credit and (drain or self._granted - self._count <= self._credit // 2):
            self._granted = self._count + self._credit
            self._client.flow(self._handle, count=self._count, credit=self._credit, drain=drain)

    def arrived(self, transfer: Transfer) -> None:
        """Add a frame to the delivery under way; the last one completes it."""
        self._partial += transfer.payload
        if transfer.delivery_id is not None:
            self._delivery_id = transfer.delivery_id
        if transfer.more:
            return
        self._deliveries.append(Delivery(self._delivery_id, self._partial))
        self._partial = b""
        self._count += 1

    def flowed(self, flow: Flow) -> None:
        self.drained = flow.drain and flow.link_credit == 0

    async def next(self, patience_s: float = PATIENCE_S) -> Delivery | None:
        """Return the next message, None if none arrives within `patience_s` seconds."""
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        while not self._deliveries:
            if loop.time() >= until:
                return None
            await self._client.change(until - loop.time())
        self._grant()
        return self._deliveries.popleft()

    async def all(self) -> list[Delivery]:
        """Drain the link; return all messages that were available."""
        self.drained = False
        self._granted = self._count + WINDOW
        self._client.flow(self._handle, count=self._count, credit=WINDOW, drain=True)
        while not self.drained:
            await self._client.change()
        found = list(self._deliveries)
        self._deliveries.clear()
        return found

    def accept(
        self, first: Delivery, last: Delivery | None = None, *, transaction: bytes | None = None
    ) -> None:
        """Accept and settle one delivery, or all from `first` to `last`."""
        self._settle(first, last or first, ACCEPTED, transaction=transaction)

    def release(self, delivery: Delivery) -> None:
        """Return a delivery to the queue as if it had not been sent."""
        self._settle(delivery, delivery, Released(), transaction=None)

    def _settle(
        self,
        first: Delivery,
        last: Delivery,
        outcome: Outcome,
        *,
        transaction: bytes | None,
    ) -> None:
        state: DeliveryState = outcome
        if transaction is not None:
            state = TransactionalState(txn_id=transaction, outcome=outcome)
        self._client.say(
            Disposition(first=first.delivery_id, last=last.delivery_id, settled=True, state=state)
        )


class Transactions:
    """The link to the transaction coordinator."""

    def __init__(self, sender: Sender) -> None:
        self._sender: Final = sender

    async def declare(self) -> bytes:
        """Begin a transaction and return its id; raise Lost if the broker declares none."""
        state = await self._command(declare())
        if not isinstance(state, Declared):
            raise Lost("no transaction was declared")
        return state.txn_id

    async def discharge(self, transaction: bytes, *, fail: bool = False) -> DeliveryState | None:
        """End a transaction; return its outcome, None if it is lost with the connection."""
        return await self._command(discharge(transaction, fail=fail))

    async def ask_discharge(self, transaction: bytes) -> asyncio.Future[DeliveryState | None]:
        """Send the discharge without waiting for the answer; return a future of the outcome."""
        await self._sender.room()
        return await self._sender.send(discharge(transaction))

    async def _command(self, payload: bytes) -> DeliveryState | None:
        await self._sender.room()
        return await (await self._sender.send(payload))


def is_accepted(state: DeliveryState | None) -> bool:
    """Return whether `state` means accepted, within a transaction or not."""
    if isinstance(state, TransactionalState):
        return isinstance(state.outcome, Accepted)
    return isinstance(state, Accepted)
