"""Clients of a simulated broker that have no link, as those of JMS over HTTP."""

from __future__ import annotations

from broker.links.linkless import LinklessClient
from broker.links.posting import Posted, post, posting_target
from broker.links.receipts import MessageReceipt, Receipts, SingleConsumer, queue_to_receive
from broker.security.entrance import HTTP, Entrance
from tests.support.access import ADA
from tests.support.broker import Broker, Doorman
from tests.support.frames import message

LOCK_MS = 30_000


def linkless(broker: Broker, user: str = ADA) -> tuple[LinklessClient, list[str]]:
    """Return a client of `user`, and the list of its refusals."""
    users = broker.container.authenticator
    assert isinstance(users, Doorman)
    entrance = Entrance(listener=HTTP, kind=HTTP, host="127.0.0.1")
    refusals: list[str] = []
    client = LinklessClient(
        broker.container,
        users.identity(user),
        entrance,
        denied=lambda right, decision: refusals.append(decision.text(right.verb, right.resource)),
    )
    return client, refusals


def send(
    broker: Broker,
    address: str = "q",
    kind: str = "queue",
    *,
    user: str = ADA,
    encoded: bytes | None = None,
) -> Posted:
    """Post a message, by default a durable one, and run a round of work."""
    client, _ = linkless(broker, user)
    target = posting_target(client, address, kind)
    posted = post(client, target, message(durable=True) if encoded is None else encoded)
    broker.container.run_round()
    return posted


class Taker:
    """Takes messages of a queue for a user, each with a receipt."""

    def __init__(self, broker: Broker, user: str = ADA, *, per_user: int = 10) -> None:
        self.broker = broker
        self.client, self.refusals = linkless(broker, user)
        self.receipts = Receipts(broker.container, per_user=per_user, lock_ms=LOCK_MS)
        self.notified = 0

    def notify(self) -> None:
        self.notified += 1

    def begin(self, address: str = "q", *, drain: bool = True) -> SingleConsumer:
        """Attach a consumer, and run a round of work."""
        queue, _ = queue_to_receive(self.client, address, copies=False)
        consumer = SingleConsumer(self.client, queue, self.notify)
        consumer.begin(drain=drain)
        self.broker.container.run_round()
        return consumer

    def take(self, address: str = "q") -> MessageReceipt:
        """Take the next message, which must be there."""
        _, right = queue_to_receive(self.client, address, copies=False)
        consumer = self.begin(address)
        assert consumer.entry is not None
        return self.receipts.issue(self.client, consumer, right)
