"""Durable messages on a slow store: no client is answered before the commit, or after its link."""

import asyncio
from contextlib import suppress

import pytest

from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, RECEIVER, Attach, Detach
from storage.api import StoreError
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, message
from tests.support.stored import stored_messages
from tests.support.stores import GatedStore
from tests.support.subscriptions import looking_up, subscribing


def accepted(client: Client, first: int, last: int | None = None) -> None:
    """Check that the next frame, which is the last, reports these deliveries as accepted."""
    answer = client.expect_last(Disposition)
    assert isinstance(answer.state, Accepted)
    assert (answer.role, answer.settled) == (RECEIVER, True)
    assert (answer.first, answer.last) == (first, first if last is None else last)


class Journaled:
    """A broker on a store whose commits wait, and a client with a sender's link."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.broker = Broker(store=self.store)
        self.client = self.broker.session()
        self.client.attach_sender()
        self.committing = asyncio.get_running_loop().create_task(
            self.broker.journal.run(self.broker.container.run_round)
        )

    async def commit(self) -> None:
        """Let the commit under way complete, and the clients be answered."""
        await self.work()
        self.store.let_through()
        await self.work()

    async def work(self) -> None:
        """Let the journal continue as far as it can."""
        for _ in range(5):
            await asyncio.sleep(0)

    async def stop(self) -> None:
        self.committing.cancel()
        with suppress(asyncio.CancelledError, StoreError):
            await self.committing


async def subscribed(journaled: Journaled) -> Client:
    """Return a client with a durable subscription that is stored."""
    client = journaled.broker.session("subscriber")
    client.send(subscribing("durable"))
    await journaled.commit()
    client.expect_last(Attach)
    return client


@pytest.mark.requirement("PRD-03")
async def test_a_durable_message_is_accepted_once_it_is_on_disk() -> None:
    journaled = Journaled()
    client = journaled.client
    client.transfer(0, payload=message(durable=True))
    await journaled.work()
    assert len(journaled.store.commits) == 1
    client.expect_nothing()
    journaled.store.let_through()
    await journaled.work()
    accepted(client, 0)
    assert len(await stored_messages(journaled.store, "q")) == 1
    await journaled.stop()


@pytest.mark.requirement("PRD-03")
async def test_what_comes_during_a_commit_waits_for_the_next() -> None:
    journaled = Journaled()
    client = journaled.client
    client.transfer(0, payload=message(durable=True))
    await journaled.work()
    client.transfer(1, payload=message(durable=True))
    client.transfer(2, payload=message(durable=True))
    await journaled.work()
    journaled.store.let_through()
    await journaled.work()
    accepted(client, 0)
    journaled.store.let_through()
    await journaled.work()
    accepted(client, 1, 2)
    await journaled.stop()


@pytest.mark.requirement("PRD-03")
async def test_a_message_that_is_not_durable_does_not_wait_for_the_disk() -> None:
    journaled = Journaled()
    client = journaled.client
    client.transfer(0, payload=message(durable=True))
    client.transfer(1)
    await journaled.work()
    accepted(client, 1)
    journaled.store.let_through()
    await journaled.work()
    accepted(client, 0)
    await journaled.stop()


@pytest.mark.requirement("PRD-03")
async def test_a_failing_disk_accepts_nothing() -> None:
    journaled = Journaled()
    journaled.client.transfer(0, payload=message(durable=True))
    await journaled.work()
    journaled.store.let_through(failing=True)
    with pytest.raises(StoreError):
        await journaled.committing
    journaled.broker.container.run_round()
    journaled.client.expect_nothing()


@pytest.mark.parametrize("mode", [RCV_FIRST, RCV_SECOND], ids=["settles first", "settles second"])
async def test_a_link_that_has_gone_is_not_told_late(mode: int) -> None:
    """Deliveries end with their link; the session must keep nothing of them either."""
    journaled = Journaled()
    client = journaled.client
    client.attach_sender(name="other", handle=1, rcv_settle_mode=mode)
    client.transfer(0, handle=1, payload=message(durable=True))
    client.send(Detach(handle=1))
    client.expect_last(Detach)
    await journaled.work()
    journaled.store.let_through()
    await journaled.work()
    client.expect_nothing()
    await journaled.stop()


async def test_a_session_that_has_gone_is_not_told_late() -> None:
    journaled = Journaled()
    journaled.client.transfer(0, payload=message(durable=True))
    await journaled.work()
    journaled.client.hang_up()
    journaled.store.let_through()
    await journaled.work()
    journaled.client.expect_nothing()
    assert journaled.broker.watcher.errors == []
    await journaled.stop()


@pytest.mark.requirement("PRD-03", "RCV-08")
async def test_a_message_may_be_consumed_before_it_is_on_disk() -> None:
    """Its sender is answered at once: the message is not needed any more, and is never stored."""
    journaled = Journaled()
    reader = journaled.broker.session("reader")
    reader.attach_receiver(credit=1)
    journaled.client.transfer(0, payload=message(durable=True))
    reader.expect_deliveries(b"hello")
    reader.send(Disposition(first=0))
    accepted(journaled.client, 0)
    await journaled.work()
    (made_the_queue,) = journaled.store.commits
    assert made_the_queue.appended == [None]
    journaled.store.let_through()
    await journaled.work()
    assert await stored_messages(journaled.store, "q") == []
    await journaled.stop()


@pytest.mark.requirement("SUB-02")
async def test_a_durable_subscriber_is_answered_once_its_subscription_is_on_disk() -> None:
    """Messages published after the answer belong to the subscription, even if the broker crashes.

    So the subscription must be stored before the answer.
    """
    journaled = Journaled()
    client = journaled.broker.session("subscriber")
    client.send(subscribing("durable"))
    await journaled.work()
    client.expect_nothing()
    journaled.store.let_through()
    await journaled.work()
    assert client.expect_last(Attach).source is not None
    assert [each.address for each in await journaled.store.subscriptions()] == ["t"]
    await journaled.stop()


@pytest.mark.requirement("SUB-34")
async def test_who_unsubscribes_is_answered_once_the_subscription_has_left_the_disk() -> None:
    journaled = Journaled()
    client = await subscribed(journaled)
    client.send(Detach(handle=0, closed=True))
    await journaled.work()
    client.expect_nothing()
    journaled.store.let_through()
    await journaled.work()
    assert client.expect_last(Detach).closed
    assert await journaled.store.subscriptions() == []
    await journaled.stop()


@pytest.mark.requirement("SUB-02")
async def test_who_joins_a_subscription_is_answered_once_that_is_on_disk() -> None:
    journaled = Journaled()
    words = "shared global durable"
    first, second, looking = [journaled.broker.session(name) for name in ("a", "b", "c")]
    first.send(subscribing(words))
    await journaled.work()
    second.send(subscribing(words))
    looking.send(looking_up("shared global"))
    await journaled.work()
    for client in (first, second, looking):
        client.expect_nothing()
    journaled.store.let_through()
    await journaled.work()
    for client in (first, second, looking):
        assert client.expect_last(Attach).source is not None
    assert len(journaled.store.commits) == 1, "there was nothing else to be written"
    await journaled.stop()


@pytest.mark.requirement("SUB-34")
async def test_who_unsubscribes_behind_another_is_answered_with_that_one() -> None:
    journaled = Journaled()
    clients = [journaled.broker.session(name) for name in ("a", "b")]
    clients[0].send(subscribing("shared global durable"))
    await journaled.work()
    journaled.store.let_through()
    await journaled.work()
    clients[0].send(Detach(handle=0))
    for client in clients:
        client.frames()
        client.send(looking_up("shared global", handle=9))
        client.expect_last(Attach)
    for client in clients:
        client.send(Detach(handle=9, closed=True))
        await journaled.work()
    for client in clients:
        client.expect_nothing()
    journaled.store.let_through()
    await journaled.work()
    for client in clients:
        assert client.expect_last(Detach).error is None
    await journaled.stop()


async def test_a_subscriber_that_has_gone_is_not_answered_late() -> None:
    journaled = Journaled()
    client = journaled.broker.session("subscriber")
    client.send(subscribing("durable"))
    await journaled.work()
    client.hang_up()
    journaled.store.let_through()
    await journaled.work()
    client.expect_nothing()
    assert journaled.broker.watcher.errors == []
    await journaled.stop()


async def test_a_subscriber_who_finds_its_subscription_does_not_wait_for_the_disk() -> None:
    journaled = Journaled()
    client = await subscribed(journaled)
    client.send(Detach(handle=0))
    client.expect_last(Detach)
    client.send(subscribing("durable"))
    client.expect_last(Attach)
    await journaled.stop()
