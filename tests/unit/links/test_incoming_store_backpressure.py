"""Credit while the store is behind: none for producers until some of the backlog is written."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from broker.amqp.performatives import Flow
from broker.routing.credit.store_backpressure import UNWRITTEN_MAX
from storage.batch import OVERHEAD
from tests.support.broker import Broker, Client
from tests.support.frames import attach_sender, message
from tests.support.stores import GatedStore

BODY = bytes(8000)
"""A size so small that the number of unsettled messages is limited by the store alone."""
BACK_AND_FORTH = 5


class Setting:
    """A broker whose store commits when a test lets it, and a producer that never waits."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.broker = Broker(store=self.store, credit=8)
        self.client = self.broker.session()
        self.client.attach_sender()
        self.sent = 0
        self.committing = asyncio.get_running_loop().create_task(
            self.broker.journal.run(self.broker.container.run_round)
        )

    async def work(self) -> None:
        for _ in range(BACK_AND_FORTH):
            await asyncio.sleep(0)

    def send_while_there_is_credit(self) -> None:
        """Send four messages at a time as long as the broker grants credit."""
        while True:
            for _ in range(4):
                self.client.transfer(self.sent, payload=message(BODY, durable=True))
                self.sent += 1
            if not has_credit(self.client):
                return

    async def stop(self) -> None:
        self.committing.cancel()
        with suppress(asyncio.CancelledError):
            await self.committing


def has_credit(client: Client) -> bool:
    """Return whether the broker has granted credit since the last call."""
    return any(isinstance(body, Flow) for body in client.bodies())


async def test_what_waits_for_the_store_is_bounded() -> None:
    setting = Setting()
    setting.client.transfer(0, payload=message(BODY, durable=True))
    setting.sent = 1
    await setting.work()  # the first commit begins, and does not end
    setting.send_while_there_is_credit()
    taken = setting.sent * (len(BODY) + int(OVERHEAD)) / int(UNWRITTEN_MAX)
    assert 1 < taken < 1.1
    await setting.work()
    assert not has_credit(setting.client), "nothing has been written"
    while setting.store.commits and not has_credit(setting.client):
        setting.store.let_through()
        await setting.work()
    before = setting.sent
    setting.send_while_there_is_credit()
    assert setting.sent > before
    await setting.stop()


async def test_an_operator_may_still_manage() -> None:
    setting = Setting()
    setting.send_while_there_is_credit()
    other = setting.broker.session()
    other.attach(attach_sender("$management"))
    assert other.expect_last(Flow).link_credit
    await setting.stop()


async def test_one_that_has_gone_is_not_given_credit() -> None:
    setting = Setting()
    await setting.work()
    setting.send_while_there_is_credit()
    other = setting.broker.session()
    other.attach(attach_sender())
    other.expect_nothing()
    other.hang_up()
    while setting.broker.journal.unwritten_bytes():
        await setting.work()
        if setting.broker.journal.is_committing:
            setting.store.let_through()
    other.expect_nothing()
    await setting.stop()
