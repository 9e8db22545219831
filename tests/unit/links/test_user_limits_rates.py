"""Rates of users: credit is held back, nothing is refused, and other users do not notice."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from broker.amqp.performatives import Attach, Detach, Flow
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.credit.quota import LOOK_EVERY_MS
from broker.security.access import AccessRules
from broker.security.identity import ADMIN
from broker.security.limits import limit_of
from tests.support.access import ADA, RuledUsers, session_as
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, attach_receiver, attach_sender, message
from tests.support.stores import GatedStore
from tests.support.subscriptions import subscribe
from tests.unit.test_journal import settle

pytestmark = pytest.mark.requirement("SEC-05")

BOB = "bob"
TURN_MS = 10
SECONDS = 5

BLOCKING = AddressPolicy(max_messages=1000, full="block")


def rules(**amounts: int) -> AccessRules:
    limits = [limit_of({"who": ["user:ada"], **amounts}, 1)] if amounts else []
    return AccessRules(limits=limits)


def users() -> RuledUsers:
    return RuledUsers({ADA: [ADMIN], BOB: [ADMIN], "": [ADMIN]})


def limited(**amounts: int) -> Broker:
    """Return a broker in which `ada` has these limits, and `bob` none."""
    return Broker(authenticator=users(), access=rules(**amounts))


class Sender:
    """A client that sends whenever it has credit, by default to a topic without subscribers."""

    def __init__(
        self,
        broker: Broker,
        name: str,
        *,
        user: str = ADA,
        size: int = 10,
        address: str | None = "t",
        kind: str = "topic",
    ) -> None:
        self.client = session_as(broker, user, name)
        self.sent = 0
        self.credit = 0
        self.payload = message(bytes(size), to=None if address else "q")
        self.client.send(attach_sender(address, kind=kind))
        assert self.client.expect(Attach).target is not None

    def look(self) -> None:
        """Read the credit that the broker has granted. Nothing else may arrive."""
        for body in self.client.bodies():
            assert isinstance(body, Flow)
            if body.handle == 0:
                self.credit = body.delivery_count + body.link_credit - self.sent

    def send(self, most: int = 1_000_000) -> None:
        """Send as long as there is credit, at most `most` messages."""
        self.look()
        while self.credit > 0 and most > 0:
            self.credit -= 1
            most -= 1
            transfer = Transfer(delivery_id=self.sent, settled=True, payload=self.payload)
            self.client.send(transfer)
            self.sent += 1
            self.look()


def run(broker: Broker, *senders: Sender, ms: int = SECONDS * 1000) -> int:
    """Let all of them send for that time; return how many messages they have sent."""
    before = sum(each.sent for each in senders)
    for _ in range(ms // TURN_MS):
        for each in senders:
            each.send()
        broker.advance(TURN_MS)
    return sum(each.sent for each in senders) - before


RATES = [
    # messages per second, bytes per second, size of a body, messages per second that get through
    pytest.param(100, 0, 10, 100, id="messages"),
    pytest.param(2, 0, 10, 2, id="two messages a second"),
    pytest.param(2000, 0, 10, 2000, id="many messages"),
    pytest.param(0, 100_000, 1000, 96, id="bytes"),
    pytest.param(0, 100_000, 20_000, 5, id="bytes of large messages"),
    pytest.param(50, 100_000, 1000, 50, id="the stricter one: messages"),
    pytest.param(500, 100_000, 1000, 96, id="the stricter one: bytes"),
]


@pytest.mark.parametrize("producers", [1, 3])
@pytest.mark.parametrize(("messages", "octets", "size", "expected"), RATES)
def test_a_user_sends_at_its_rate(
    producers: int, messages: int, octets: int, size: int, expected: int
) -> None:
    """After the first second, whose amount is there at once."""
    amounts = {"messages_per_s": messages, "bytes_per_s": octets}
    broker = limited(**{name: amount for name, amount in amounts.items() if amount})
    senders = [Sender(broker, f"c{number}", size=size) for number in range(producers)]
    first = run(broker, *senders, ms=1000)
    assert first <= expected * 2.2 + producers
    sent = run(broker, *senders)
    assert sent == pytest.approx(expected * SECONDS, rel=0.1, abs=producers)
    shares = [each.sent for each in senders]
    assert min(shares) >= max(shares) * 0.5 - 2, "each of them gets its turn"


async def test_receipts_that_come_after_their_link_has_ended_take_nothing_of_the_rate() -> None:
    store = GatedStore()
    broker = Broker(
        store=store, credit=100, authenticator=users(), access=rules(messages_per_s=100)
    )
    client = session_as(broker, ADA, "a")
    client.attach(attach_sender("q"))
    large = message(bytes(9000), durable=True)  # with a window, receipts ask for credit
    committing = asyncio.create_task(broker.journal.run(broker.container.run_round))
    await settle()
    for number in range(50):
        client.transfer(number, payload=large)
        await settle()
    client.send(Detach(handle=0, closed=True))
    for _ in range(2):  # the first message is committed alone, the others together behind it
        store.let_all_through()
        await settle()
    committing.cancel()
    with suppress(asyncio.CancelledError):
        await committing
    other = Sender(broker, "other")
    other.look()
    assert broker.queue("q").contents() == 50
    assert other.credit > 0


def test_other_users_are_not_held_back() -> None:
    broker = limited(messages_per_s=10)
    held, free = Sender(broker, "a"), Sender(broker, "b", user=BOB)
    run(broker, held, ms=2000)
    assert held.credit == 0
    free.send(most=10_000)
    assert free.sent == 10_000
    assert (held.client.peer.quota is None, free.client.peer.quota is None) == (False, True)


ROUTES = [
    pytest.param("q", "queue", None, id="a queue"),
    pytest.param("q", "queue", BLOCKING, id="a queue that blocks when it is full"),
    pytest.param(None, "", None, id="the anonymous relay"),
]


@pytest.mark.parametrize(("address", "kind", "policy"), ROUTES)
def test_every_way_to_send_is_limited(
    address: str | None, kind: str, policy: AddressPolicy | None
) -> None:
    broker = Broker(authenticator=users(), access=rules(messages_per_s=50), policy=policy)
    one = Sender(broker, "a", address=address, kind=kind)
    run(broker, one, ms=1000)
    assert run(broker, one) == pytest.approx(50 * SECONDS, rel=0.1)


def test_a_client_that_connects_again_gets_no_more() -> None:
    broker = limited(messages_per_s=100)
    sent = 0
    for number in range(50):
        one = Sender(broker, f"c{number}")
        sent += run(broker, one, ms=20)
        one.client.hang_up()
    assert sent <= 100 + 100 * 1.2
    broker.advance(3000)
    broker.advance(1000)
    assert broker.container.user_limits.usage(ADA) is None, "it owes nothing"


def test_credit_that_was_not_used_is_paid_back() -> None:
    broker = limited(messages_per_s=100)
    for number in range(100):
        one = Sender(broker, f"c{number}")
        one.look()
        assert one.credit > 0
        one.client.send(Detach(handle=0, closed=True))
        one.client.hang_up()


def test_a_reload_changes_the_rate_of_open_links() -> None:
    broker = limited(messages_per_s=10)
    one = Sender(broker, "a")
    run(broker, one, ms=3000)
    assert one.credit == 0
    broker.container.adopt_access(rules(messages_per_s=200))
    run(broker, one, ms=1000)
    assert run(broker, one) == pytest.approx(200 * SECONDS, rel=0.1)
    broker.container.adopt_access(rules())
    broker.advance(1)
    one.send(most=5000)
    assert one.credit > 0, "without a rate there is credit at once"
    assert one.client.peer.quota is None
    broker.container.adopt_access(rules(messages_per_s=10))
    broker.advance(1)
    run(broker, one, ms=2000)
    assert run(broker, one) == pytest.approx(10 * SECONDS, rel=0.1, abs=1)


def test_consumers_are_not_held_back() -> None:
    broker = limited(messages_per_s=1)
    broker.fill("q", 500)
    client = session_as(broker, ADA, "a")
    client.attach(attach_receiver("q"))
    client.flow(handle=0, credit=500, delivery_count=0)
    assert sum(isinstance(body, Transfer) for body in client.bodies()) == 500


def test_a_producer_that_leaves_waits_no_more() -> None:
    broker = limited(messages_per_s=1)
    one = Sender(broker, "a")
    one.send()
    quota = one.client.peer.quota
    assert quota is not None
    assert quota.waiting.any()
    one.client.send(Detach(handle=0, closed=True))
    assert not quota.waiting.any()


def test_requests_to_the_broker_are_not_held_back() -> None:
    broker = limited(messages_per_s=1)
    one = Sender(broker, "a")
    one.send()
    client = one.client
    for number in range(1, 4):
        client.send(attach_sender("$management", name=f"m{number}", handle=number))
        assert client.expect(Attach).target is not None
        assert client.expect(Flow).link_credit > 0


# -- backlogs

SIZE = 1000


def filled(broker: Broker) -> int:
    return sum(queue.state.bytes for queue in broker.queues())


def receive(client: Client, *, credit: int) -> list[Transfer]:
    client.flow(handle=0, credit=credit, delivery_count=0)
    return [body for body in client.bodies() if isinstance(body, Transfer)]


def test_a_user_fills_its_queues_up_to_its_backlog() -> None:
    broker = limited(backlog_bytes=100 * SIZE)
    senders = [
        Sender(broker, f"c{address}", size=SIZE, address=address, kind="queue") for address in "ab"
    ]
    run(broker, *senders, ms=500)
    assert 100 * SIZE <= filled(broker) <= 250 * SIZE, "beyond it only what had credit"
    assert run(broker, *senders, ms=5000) == 0
    reader = session_as(broker, BOB, "r")
    reader.attach(attach_receiver("a", snd_settle_mode=1))
    taken = len(receive(reader, credit=1000))
    assert taken > 0
    assert run(broker, *senders, ms=1000) > 0


def test_durable_subscriptions_of_a_user_are_part_of_its_backlog() -> None:
    broker = limited(backlog_bytes=100 * SIZE)
    subscribe(session_as(broker, ADA, "s"), "durable", address="t")
    one, other = Sender(broker, "a", size=SIZE), Sender(broker, "b", user=BOB, size=SIZE)
    other.send(most=100)
    broker.advance(int(LOOK_EVERY_MS))
    one.send()
    assert one.sent <= 100, "what had credit before"
    assert run(broker, one, ms=3000) == 0
    other.send(most=100)
    assert other.sent == 200, "the backlog holds its own user back, and no other"


def test_queues_of_others_are_not_part_of_a_backlog() -> None:
    broker = limited(backlog_bytes=100 * SIZE)
    session_as(broker, BOB, "b").attach_sender("q")
    one = Sender(broker, "a", size=SIZE, address="q", kind="queue")
    one.send(most=1000)
    assert one.sent == 1000


def test_a_client_that_sends_before_it_settles_goes_on_slowly() -> None:
    """It consumes from its full queue and sends to another one: else it would wait for itself."""
    broker = limited(backlog_bytes=100 * SIZE)
    one = Sender(broker, "a", size=SIZE, address="q", kind="queue")
    run(broker, one, ms=1000)
    assert run(broker, one, ms=1000) == 0
    one.client.attach(attach_receiver("q", handle=1))
    one.client.flow(handle=1, credit=1, delivery_count=0)
    assert [type(body) for body in one.client.bodies()] == [Transfer]
    sent = run(broker, one, ms=1000)
    assert 10 <= sent <= 51


def test_a_reload_ends_the_wait_for_a_backlog() -> None:
    broker = limited(backlog_bytes=SIZE)
    one = Sender(broker, "a", size=SIZE, address="q", kind="queue")
    run(broker, one, ms=1000)
    assert run(broker, one, ms=1000) == 0
    broker.container.adopt_access(rules())
    broker.advance(1)
    one.send(most=1000)
    assert one.credit > 0
