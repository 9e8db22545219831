"""A lease as a consumer: its queue treats it like any other."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.batches.lease import LEASE_BATCH_BYTES_MAX, Wanted
from broker.routing.entries.redelivery import Disposal
from tests.support.leases import acquire, ask, opened
from tests.support.routing import Routing, bodies, counts, encoded, new_message
from tests.support.selected import selectable

pytestmark = pytest.mark.requirement("PIP-03")


def test_it_takes_by_priority_and_arrival() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"1", b"2")
    routing.put(queue, b"urgent", priority=9)
    assert acquire(routing, opened(routing)) == [b"urgent", b"1", b"2"]


def test_what_it_has_nobody_else_sees() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"1", b"2", b"3")
    assert acquire(routing, opened(routing), max_messages=2) == [b"1", b"2"]
    assert routing.browser(queue, 9).copies == [b"3"]
    assert bodies(routing.consumer(queue, 9).entries) == [b"3"]


def test_it_takes_nothing_while_nobody_asks() -> None:
    routing = Routing()
    opened(routing)
    routing.put(routing.queue(), b"1")
    routing.pump()
    assert counts(routing.queue()) == (1, 0, 1)


def test_others_have_their_turn() -> None:
    routing = Routing()
    queue = routing.queue()
    other = routing.consumer(queue, 9)
    acquirer = ask(routing, opened(routing))
    routing.put(queue, b"1", b"2", b"3", b"4")
    routing.pump()
    (lease_batch,) = acquirer.batches
    assert lease_batch is not None
    assert len(lease_batch.entries) == len(other.entries) == 2


def test_it_takes_what_its_selector_takes() -> None:
    routing = Routing()
    queue = routing.queue()
    for color in ("red", "blue", "red"):
        queue.put(selectable({"color": color}), routing.batch)
    lease = opened(routing, selector="color = 'red'")
    assert len(acquire(routing, lease)) == 2
    assert len(acquire(routing, lease)) == 0
    lease = opened(routing, selector="color = 'blue'")
    assert len(acquire(routing, lease)) == 1


def test_what_came_too_late_waits_until_later() -> None:
    routing = Routing()
    queue = routing.queue()
    for when in (1000, 3000, 2000):
        queue.put(new_message(b"%d" % when, arrived_ms=when), routing.batch)
    lease = opened(routing)
    assert acquire(routing, lease, arrived_until_ms=2000) == [b"1000", b"2000"]
    assert acquire(routing, lease, arrived_until_ms=2000) == []
    queue.put(new_message(b"soon", arrived_ms=2000), routing.batch)
    assert acquire(routing, lease, arrived_until_ms=2000) == [b"soon"]
    assert acquire(routing, lease) == [b"3000"]


def test_a_group_is_its_own_until_it_goes() -> None:
    routing = Routing()
    queue = routing.queue()
    lease = opened(routing)
    routing.put_grouped(queue, "a1", "b1", "a2")
    assert acquire(routing, lease, max_messages=1) == [b"a1"]
    other = routing.consumer(queue, 9)
    assert other.taken == [b"b1"]
    assert acquire(routing, lease) == [b"a2"]
    routing.router.leases.release("l", routing.batch)
    routing.pump()
    assert other.taken == [b"b1", b"a1", b"a2"]


@pytest.mark.parametrize(
    ("settles", "comes_back_empty", "goes_to_another"),
    [
        pytest.param(True, True, True, id="nothing came, and it has nothing"),
        pytest.param(True, False, False, id="it has not asked again"),
        pytest.param(False, True, False, id="it has something of it"),
    ],
)
def test_a_group_goes_to_another_once_a_lease_is_through(
    *, settles: bool, comes_back_empty: bool, goes_to_another: bool
) -> None:
    routing = Routing()
    queue = routing.queue()
    lease = opened(routing)
    routing.put_grouped(queue, "a1")
    acquire(routing, lease)
    other = routing.consumer(queue, 9)
    if settles:
        routing.router.leases.settle("l", lease.fencing_token, 1, batch=routing.batch)
    if comes_back_empty:
        assert acquire(routing, lease) == []
    routing.put_grouped(queue, "a2")
    assert other.taken == ([b"a2"] if goes_to_another else [])
    assert acquire(routing, lease) == ([] if goes_to_another else [b"a2"])


def test_an_exclusive_queue_is_its_own() -> None:
    routing = Routing(policy=AddressPolicy(exclusive=True))
    queue = routing.queue()
    lease = opened(routing)
    other = routing.consumer(queue, 9)
    routing.put(queue, b"1", b"2")
    routing.pump()
    assert other.taken == []
    assert acquire(routing, lease, max_messages=1) == [b"1"]
    routing.router.leases.release("l", routing.batch)
    routing.pump()
    assert other.taken == [b"1", b"2"]


def test_who_stands_by_gets_nothing() -> None:
    routing = Routing(policy=AddressPolicy(exclusive=True))
    queue = routing.queue()
    routing.consumer(queue)
    routing.put(queue, b"1")
    assert acquire(routing, opened(routing)) == []


def test_what_is_leased_does_not_expire() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(expires_at_ms=routing.clock.wall_ms() + 10), routing.batch)
    lease = opened(routing)
    acquire(routing, lease)
    routing.advance(5000)
    assert counts(queue) == (0, 1, 1)
    routing.router.leases.settle("l", lease.fencing_token, 1, batch=routing.batch)
    assert routing.stats.expired == 0
    assert routing.stats.acknowledged == 1


def test_what_has_expired_is_not_leased() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(expires_at_ms=routing.clock.wall_ms() + 10), routing.batch)
    routing.clock.advance(10)
    assert acquire(routing, opened(routing)) == []
    assert routing.stats.expired == 1


def test_running_out_again_and_again_does_not_dead_letter() -> None:
    routing = Routing(policy=AddressPolicy(max_delivery_count=1, dead_letter="dlq"))
    queue = routing.queue()
    routing.put(queue, b"1")
    for count in range(1, 5):
        acquire(routing, opened(routing, ttl_ms=1000))
        routing.advance(1000)
        (entry,) = routing.consumer(queue, 1).entries
        assert entry.delivery_count == count
        queue.dispose(entry, Disposal.RELEASE, routing.batch)
        queue.consumers.attached.clear()
    assert routing.stats.dead_lettered == 0


def test_what_comes_from_the_store_in_windows_is_leased_whole() -> None:
    routing = Routing(paging_window=64)
    queue = routing.queue()
    for number in range(500):
        queue.put(new_message(encoded(b"%d" % number), durable=True), routing.batch)
    routing.page_out(keep=1)
    routing.shelf.is_slow = True
    acquirer = ask(routing, opened(routing))
    routing.pump()
    assert acquirer.batches == []
    while not acquirer.batches:
        assert routing.shelf.loads, "it waits for nothing"
        routing.shelf.bring()
        routing.pump()
    (lease_batch,) = acquirer.batches
    assert lease_batch is not None
    assert len(lease_batch.entries) == 500


def test_a_batch_has_a_limit_of_its_own() -> None:
    assert Wanted().max_bytes == LEASE_BATCH_BYTES_MAX
    assert Wanted(max_bytes=LEASE_BATCH_BYTES_MAX + 1).max_bytes == LEASE_BATCH_BYTES_MAX
    assert Wanted(max_bytes=5).max_bytes == 5
