"""Posting without a link: the rights, limits, event log and durability of a producer's link."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.amqp.errors import LinkFault
from broker.journal import Waiter
from broker.links.posting import NoCredit, post, posting_target, reply_queue
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import InvalidAddress, NoSuchNode, NotPermitted, QueueFull, RoutingError
from broker.security.access import AccessRules
from broker.security.identity import ADMIN
from broker.security.limits import limit_of
from storage.events import EVENT_COLUMNS, EventQuery
from tests.support.access import ADA, RuledUsers, access_of, guarded
from tests.support.broker import Broker
from tests.support.frames import Transfer, body_of, message
from tests.support.linkless import Taker, linkless, send
from tests.support.stores import GatedStore
from tests.support.subscriptions import subscribe

pytestmark = pytest.mark.requirement("MAP-09")


def free(**fields: object) -> Broker:
    """Return a broker in which `ada` may do anything."""
    users = RuledUsers({ADA: {ADMIN}, "": {ADMIN}})
    return Broker(authenticator=users, **fields)  # type: ignore[arg-type]


def test_a_message_reaches_a_consumer_unchanged() -> None:
    broker = free()
    receiver = broker.session()
    receiver.attach_receiver("q", credit=1)
    encoded = message(b"by post", durable=True, properties={"n": 1})
    assert send(broker, encoded=encoded).durable
    payload = receiver.expect(Transfer).payload
    assert bytes(payload)[-len(encoded) + 20 :] == encoded[20:]
    assert body_of(bytes(payload)) == b"by post"
    assert (broker.stats.published, broker.stats.published_bytes) == (1, len(encoded))


RIGHTS = [
    pytest.param("q", "queue", ("send,create queue:q",), "", id="all of a new queue"),
    pytest.param("q", "queue", ("send queue:q",), "create queue:q", id="not to create it"),
    pytest.param("q", "queue", ("create queue:q",), "send queue:q", id="not to send"),
    pytest.param("t/k", "topic", ("send topic:t/k", "create topic:t"), "", id="all of a topic"),
    pytest.param("t/k", "topic", ("send topic:t/x",), "send topic:t/k", id="another key"),
    pytest.param("q", "topic", ("send,create queue:q",), "send topic:q", id="another kind"),
    pytest.param(
        "queue://q", "queue", ("send,create queue:q",), "", id="the name without its prefix"
    ),
]


@pytest.mark.requirement("OPS-08")
@pytest.mark.parametrize(("address", "kind", "rights", "missing"), RIGHTS)
def test_the_rights_are_those_of_a_link(
    address: str, kind: str, rights: tuple[str, ...], missing: str
) -> None:
    broker = guarded(*rights)
    client, refusals = linkless(broker)
    if not missing:
        posting_target(client, address, kind)
        return
    with pytest.raises(NotPermitted, match=f"not allowed to {missing}"):
        posting_target(client, address, kind)
    assert len(refusals) == 1
    assert not broker.router.queues
    assert not broker.router.topics


ADDRESSES = [
    pytest.param("$management", InvalidAddress, id="the broker itself"),
    pytest.param("$sub/x", NoSuchNode, id="a subscription's queue"),
    pytest.param("$tmp/x", NoSuchNode, id="a temporary queue that does not exist"),
    pytest.param("", InvalidAddress, id="nothing"),
    pytest.param("x" * 300, InvalidAddress, id="a long name"),
    pytest.param("topic://q", InvalidAddress, id="a prefix of the other kind"),
]


@pytest.mark.parametrize(("address", "error"), ADDRESSES)
def test_addresses_that_take_no_message(address: str, error: type[RoutingError]) -> None:
    with pytest.raises(error):
        send(free(), address)


def test_a_topic_says_how_many_subscriptions_got_the_message() -> None:
    broker = free()
    assert send(broker, "t", "topic").matched == 0
    subscribe(broker.session("first"))
    assert send(broker, "t", "topic").matched == 1


class Noted(Waiter):
    """Notes that its batch is durable."""

    def __init__(self) -> None:
        self.is_durable = False

    def committed(self) -> None:
        self.is_durable = True


async def test_a_durable_message_is_noted_in_the_batch_of_the_journal() -> None:
    store = GatedStore()
    broker = free(store=store)
    client, _ = linkless(broker)
    posted = post(client, posting_target(client, "q", "queue"), message(durable=True))
    assert posted.durable
    assert len(broker.journal.batch.appended) == 1
    waiter = Noted()
    broker.journal.submit(waiter)
    broker.container.run_round()
    assert not waiter.is_durable


def test_a_message_that_is_not_durable_waits_for_nothing() -> None:
    assert not send(free(), encoded=message()).durable


def test_a_repeated_message_is_a_duplicate() -> None:
    broker = free(policy=AddressPolicy(duplicate_window=10))
    encoded = message(message_id="one", durable=True)
    for _ in range(2):
        assert send(broker, encoded=encoded).durable
    assert broker.queue().contents() == 1


def test_a_full_queue_refuses() -> None:
    broker = free(policy=AddressPolicy(max_messages=1, full="reject"))
    send(broker)
    with pytest.raises(QueueFull):
        send(broker)


async def test_the_event_log_has_the_same_events_as_with_links() -> None:
    broker = free(policy=AddressPolicy(event_log=True))
    send(broker)
    taker = Taker(broker)
    taker.receipts.settle(taker.take(), Disposal.REMOVE)
    broker.container.run_round()
    everything = EventQuery(behind=0, up_to=9, at_most=9, address="", kind="")
    page = await broker.store.events(everything)
    kind, consumer = EVENT_COLUMNS.index("kind"), EVENT_COLUMNS.index("link")
    assert [row[kind] for row in page.rows] == ["enqueued", "delivered", "accepted"]
    assert page.rows[1][consumer] == "127.0.0.1"


def test_a_malformed_message_changes_nothing() -> None:
    broker = free()
    with pytest.raises(LinkFault):
        send(broker, encoded=b"\x00\x53\x99\x40")
    assert broker.queue().contents() == 0


def with_a_slow_store(broker: Broker) -> None:
    broker.router.credit_policy.store_backpressure.is_behind = True


def low_on_memory(broker: Broker) -> None:
    broker.router.memory.is_short = True


@pytest.mark.parametrize(
    "shorten",
    [pytest.param(low_on_memory, id="memory"), pytest.param(with_a_slow_store, id="the store")],
)
def test_a_broker_that_grants_no_credit_takes_no_message(
    shorten: Callable[[Broker], None],
) -> None:
    broker = free()
    shorten(broker)
    with pytest.raises(NoCredit) as refused:
        send(broker)
    assert not refused.value.is_by_user


def limited(**amounts: int) -> Broker:
    rules = AccessRules(limits=[limit_of({"who": ["user:ada"], **amounts}, 1)])
    return free(access=rules)


@pytest.mark.requirement("SEC-05")
def test_the_rates_of_a_user_hold_without_links_too() -> None:
    broker = limited(messages_per_s=2)
    for _ in range(2):
        send(broker)
    with pytest.raises(NoCredit) as refused:
        send(broker)
    assert refused.value.is_by_user
    send(broker, user="")
    broker.advance(1000)
    send(broker)


@pytest.mark.requirement("SEC-05")
def test_the_backlog_of_a_user_is_limited() -> None:
    broker = limited(backlog_bytes=200)
    send(broker, encoded=message(bytes(300)))
    broker.advance(100)
    with pytest.raises(NoCredit):
        send(broker)


@pytest.mark.requirement("SEC-05")
def test_a_user_without_connections_is_forgotten() -> None:
    broker = limited(messages_per_s=2)
    send(broker)
    assert broker.container.user_limits.usage(ADA) is not None
    broker.advance(2000)
    assert broker.container.user_limits.usage(ADA) is None


@pytest.mark.requirement("SEC-05")
def test_a_user_creates_only_so_many_nodes() -> None:
    broker = limited(nodes=1)
    send(broker, "a")
    with pytest.raises(RoutingError, match="has 1 nodes"):
        send(broker, "b")


@pytest.mark.requirement("OPS-08")
def test_a_reply_queue_needs_the_right_to_create_one() -> None:
    client, _ = linkless(Broker(authenticator=RuledUsers(), access=access_of(connecting=())))
    with pytest.raises(NotPermitted, match="create temporary:queue"):
        reply_queue(client)


def test_nobody_else_receives_from_a_reply_queue() -> None:
    broker = free()
    client, _ = linkless(broker)
    made = reply_queue(client)
    other = broker.session("other")
    assert other.attach_receiver(made.address).source is None
