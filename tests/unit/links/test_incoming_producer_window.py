"""Credit of producers of durable messages: as much as their consumers keep up with."""

import asyncio
from contextlib import suppress

import pytest

from broker.amqp.outcomes import ACCEPTED
from broker.amqp.performatives import RECEIVER, Flow
from broker.amqp.terminus import Source
from broker.links.credited_producer import FIRST as FIRST_CREDIT
from broker.routing.credit.producer_window import FIRST
from tests.support.broker import Broker
from tests.support.frames import Disposition, attach_receiver, attach_sender, message
from tests.support.stores import GatedStore
from tests.unit.test_journal import settle

CREDIT = 1000
HOLD_MS = 2
MANY = 200
"""Acknowledgements after which the window of a producer is as wide as it gets."""
PAYLOAD = message(durable=True)


class Setting:
    """A producer of durable messages and their consumer; after `attach` no commit ends."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.broker = Broker(store=self.store, credit=CREDIT, hold_us=HOLD_MS * 1000)
        self.receiver = self.broker.session("receiver")
        self.sender = self.broker.session("sender")
        self.credit = 0
        self.sent = 0
        self.settled = 0

    async def attach(self, kind: str) -> None:
        """Attach both links; a durable subscription is first stored."""
        source = Source(address="q", capabilities=[kind])
        if kind == "topic":
            source = Source(address="q", capabilities=[kind], durable=2, expiry_policy="never")
        committing = asyncio.create_task(self.broker.journal.run(self.broker.container.run_round))
        self.receiver.send(attach_receiver("q", source=source))
        await settle()
        self.store.let_through()
        await settle()
        committing.cancel()
        with suppress(asyncio.CancelledError):
            await committing
        self.receiver.flow(handle=0, credit=100 * CREDIT, delivery_count=0)
        self.receiver.bodies()
        self.sender.attach(attach_sender("q", kind=kind))
        self.credit = self.sender.expect(Flow).link_credit or 0

    def send(self) -> None:
        """Send a message, and look at the credit."""
        self.sender.transfer(self.sent, payload=PAYLOAD)
        self.sent += 1
        self.credit -= 1
        self.look()

    def look(self) -> bool:
        """Take the newest credit that the broker granted; return False if there was no flow."""
        flows = [body for body in self.sender.bodies() if isinstance(body, Flow)]
        for flow in flows:
            self.credit = (flow.delivery_count or 0) + (flow.link_credit or 0) - self.sent
        return bool(flows)

    def settle(self, messages: int = 1) -> None:
        """Acknowledge the oldest `messages` messages that the consumer holds."""
        first, self.settled = self.settled, self.settled + messages
        self.receiver.send(
            Disposition(
                role=RECEIVER, first=first, last=self.settled - 1, settled=True, state=ACCEPTED
            )
        )

    def exchange(self, lag_ms: int, messages: int = MANY) -> None:
        """Send messages, each of which is acknowledged after `lag_ms`."""
        for _ in range(messages):
            self.send()
            self.broker.advance(lag_ms)
            self.settle()
            self.look()

    def fill(self) -> None:
        """Send as many messages as credit allows."""
        while self.credit > 0:
            self.send()


async def attached(kind: str = "queue") -> Setting:
    setting = Setting()
    await setting.attach(kind)
    return setting


@pytest.mark.parametrize("kind", ["queue", "topic"])
async def test_a_producer_whose_messages_are_acknowledged_in_time_gets_all_its_credit(
    kind: str,
) -> None:
    setting = await attached(kind)
    assert setting.credit == FIRST_CREDIT
    setting.exchange(HOLD_MS // 2)
    setting.fill()
    assert setting.sent - setting.settled > CREDIT * 9 // 10


@pytest.mark.parametrize("kind", ["queue", "topic"])
async def test_a_producer_whose_messages_are_acknowledged_late_gets_less(kind: str) -> None:
    setting = await attached(kind)
    setting.exchange(2 * HOLD_MS, 30)
    setting.fill()
    assert setting.sent - setting.settled < FIRST // 2


async def test_messages_that_are_not_acknowledged_take_credit_until_they_are() -> None:
    setting = await attached()
    setting.exchange(0, 1)
    setting.fill()
    unsettled = setting.sent - setting.settled
    assert unsettled <= FIRST_CREDIT
    setting.settle(unsettled // 4)
    assert not setting.look(), "credit comes for half of the window at once"
    setting.settle(unsettled // 2)
    assert setting.look()
    assert setting.credit > 0


async def test_credit_that_a_producer_has_not_used_is_taken_back_when_consumers_get_slow() -> None:
    setting = await attached()
    setting.exchange(HOLD_MS // 2)
    assert setting.credit > CREDIT // 2
    setting.exchange(10 * HOLD_MS, 3)
    assert setting.credit < CREDIT // 2


async def test_without_consumers_messages_that_are_not_written_take_no_credit() -> None:
    setting = await attached()
    setting.receiver.hang_up()
    while setting.sent < 3 * CREDIT:
        assert setting.credit > 0
        setting.send()
