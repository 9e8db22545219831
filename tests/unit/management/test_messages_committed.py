"""Messages that management moves are delivered when the move is durable, and no earlier."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker.amqp.outcomes import Rejected
from broker.management.management import Management
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, Transfer, attach_sender, message
from tests.support.management import Manager, request
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("RCV-08")

UNMOVABLE = AddressPolicy(dead_letter="/topic/durable/dead")


class Slow:
    """A broker on a store whose commits end only when a test lets them."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.broker = Broker(store=self.store, patterns=[("holding", UNMOVABLE)])
        self.broker.container.service = Management(self.broker.container, None, asyncio.run)

    async def turn(self) -> None:
        """Let the journal run until it waits for the store."""
        for _ in range(5):
            await asyncio.sleep(0)

    async def commit(self) -> None:
        """End all commits, also those that begin meanwhile."""
        await self.turn()
        while self.store._gates:
            self.store.let_all_through()
            await self.turn()

    async def send(self, address: str, *bodies: bytes) -> None:
        """Send durable messages, from a client of its own."""
        sender = self.broker.session("filler")
        sender.attach(attach_sender(address))
        await self.commit()
        for number, body in enumerate(bodies):
            payload = message(body, durable=True)
            sender.send(Transfer(delivery_id=number, settled=True, payload=payload))
        await self.commit()
        sender.hang_up()

    async def reject_all(self, address: str, count: int) -> None:
        client = self.broker.session("rejecting")
        client.attach_receiver(address, credit=count)
        await self.commit()
        client.send(Disposition(first=0, last=count - 1, state=Rejected()))
        await self.commit()
        client.hang_up()

    async def consumer(self, address: str) -> Client:
        client = self.broker.session("consumer")
        client.attach_receiver(address, credit=9)
        await self.commit()
        return client


@pytest.fixture
async def slow() -> AsyncIterator[Slow]:
    made = Slow()
    run = made.broker.journal.run(made.broker.container.run_round)
    committing = asyncio.get_running_loop().create_task(run)
    yield made
    committing.cancel()


@pytest.mark.parametrize(
    ("operation", "source", "target"),
    [
        pytest.param("MOVE", "src", "dst", id="moved to a queue"),
        pytest.param("RETRY", "DLQ", "q", id="a dead letter that is retried"),
        pytest.param("RETRY", "holding", "holding", id="one that was held in its own queue"),
    ],
)
async def test_a_message_is_not_delivered_before_its_move_is_durable(
    slow: Slow, operation: str, source: str, target: str
) -> None:
    """After a crash it would be delivered again from where it was, as if it were new."""
    sent_to = target if operation == "RETRY" else source
    await slow.send(sent_to, b"a", b"b")
    if operation == "RETRY":
        await slow.reject_all(sent_to, 2)
    else:
        await slow.send(target)
    manager = Manager(slow.broker)
    consumer = await slow.consumer(target)
    arguments = {"queue": source, "all": True} | ({"to": target} if operation == "MOVE" else {})
    manager.send(request(operation, "message", body=arguments))
    await slow.turn()
    consumer.expect_nothing()
    await slow.commit()
    consumer.expect_deliveries(b"a", b"b")
