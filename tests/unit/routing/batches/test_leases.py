"""All leases: what is stored of them, how they end, and how many there may be."""

import asyncio

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.batches.lease import UNSETTLED_MAX, BatchLease
from broker.routing.batches.leases import REST_MS, Leases
from broker.routing.errors import (
    HeldExclusively,
    InvalidAddress,
    LeaseFenced,
    LeaseGone,
    LimitReached,
    NoSuchLeaseBatch,
)
from storage.leases import StoredLeases
from tests.support.leases import RecordingAcquirer, acquire, ask, opened
from tests.support.parties import RecordingWitness
from tests.support.routing import Routing, bodies, counts, encoded, new_message
from tests.unit.routing.queues.test_message_events import events


def stored(routing: Routing) -> StoredLeases:
    routing.commit()
    return asyncio.run(routing.store.leases())


@pytest.mark.requirement("PIP-10")
def test_what_is_leased_is_stored_whatever_its_header_says() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"durable", durable=True), routing.batch)
    routing.put(queue, b"not")
    lease = opened(routing)
    acquire(routing, lease)
    assert [each.encoded for each in routing.stored()] == [b"durable", b"not"]
    (lease_batch,) = stored(routing).batches
    assert lease_batch.numbers == [1, 2]
    routing.router.leases.settle("l", lease.fencing_token, 1, batch=routing.batch)
    assert routing.stored() == []
    assert stored(routing).batches == []


@pytest.mark.requirement("PIP-01", "PIP-07", "PIP-09")
def test_a_lease_is_stored_as_it_is() -> None:
    routing = Routing()
    lease = opened(routing, selector="a = 1", ttl_ms=5)
    (kept,) = stored(routing).leases
    assert (kept.name, kept.queue, kept.selector) == ("l", "q", "a = 1")
    assert (kept.fencing_token, kept.ttl_ms, kept.batch_number, kept.settled) == (1, 5, 0, 0)
    lease = opened(routing)
    routing.put(routing.queue(), b"1", b"2")
    acquire(routing, lease, max_messages=1)
    acquire(routing, lease)
    routing.router.leases.settle("l", 2, 1, batch=routing.batch)
    (kept,) = stored(routing).leases
    assert (kept.selector, kept.fencing_token, kept.batch_number, kept.settled) == ("", 2, 2, 1)
    assert [each.batch_number for each in stored(routing).batches] == [2]
    routing.router.leases.release("l", routing.batch)
    assert stored(routing).leases == []
    assert stored(routing).batches == []


BODIES = [b"1", b"2", b"3", b"4", b"5"]


def half_built() -> tuple[Routing, BatchLease, RecordingAcquirer]:
    """Return a lease whose batch of five messages is being made."""
    routing = Routing()
    routing.router.leases.built_at_once = 4
    routing.put(routing.queue(), *BODIES)
    lease = opened(routing)
    acquirer = ask(routing, lease, slices=2, max_messages=5)
    routing.pump()
    routing.advance(0)
    assert (acquirer.batches, acquirer.refusals, stored(routing).batches) == ([], [], [])
    assert len(routing.stored()) == 3, "a part of them"
    return routing, lease, acquirer


@pytest.mark.requirement("PIP-04", "PIP-10")
def test_a_large_batch_is_made_in_several_turns() -> None:
    routing, lease, acquirer = half_built()
    routing.put(routing.queue(), b"6")
    routing.advance(0)
    (lease_batch,) = acquirer.batches
    assert lease_batch is not None
    assert [bodies(lease_batch.slice(index)) for index in (0, 1)] == [BODIES[:3], BODIES[3:]]
    (kept,) = stored(routing).batches
    assert (len(kept.numbers), kept.counts, kept.slices) == (5, [0] * 5, bytes([0, 0, 0, 1, 1]))
    assert acquire(routing, lease) == [b"6"]


@pytest.mark.requirement("PIP-04")
def test_a_lease_that_ends_while_its_batch_is_made_returns_all() -> None:
    routing, _, acquirer = half_built()
    routing.router.leases.release("l", routing.batch)
    routing.advance(0)
    assert (acquirer.batches, len(acquirer.refusals)) == ([], 1)
    assert bodies(routing.consumer(routing.queue(), 9).entries) == BODIES


@pytest.mark.requirement("PIP-04")
def test_a_queue_that_is_deleted_while_a_batch_is_made_leaves_nothing() -> None:
    routing, _, acquirer = half_built()
    routing.router.delete(routing.queue(), routing.batch)
    routing.advance(0)
    assert (acquirer.batches, len(acquirer.refusals), routing.stored()) == ([], 1, [])


@pytest.mark.requirement("PIP-06")
def test_a_slice_is_read_any_number_of_times() -> None:
    routing = Routing()
    routing.put(routing.queue(), b"1", b"2", b"3")
    acquire(routing, opened(routing), slices=2)
    slices = [routing.router.leases.slice_of("l", 1, 1, index=index) for index in (0, 1, 0)]
    assert [bodies(each) for each in slices] == [[b"1", b"2"], [b"3"], [b"1", b"2"]]


WRONG = [
    pytest.param("m", 1, 1, 0, LeaseGone, id="another lease"),
    pytest.param("l", 1, 1, 0, LeaseFenced, id="fenced"),
    pytest.param("l", 3, 1, 0, LeaseGone, id="a fencing token to come"),
    pytest.param("l", 2, 1, 0, LeaseGone, id="settled"),
    pytest.param("l", 2, 3, 0, NoSuchLeaseBatch, id="not acquired"),
    pytest.param("l", 2, 2, 2, NoSuchLeaseBatch, id="no such slice"),
    pytest.param("l", 2, 2, -1, NoSuchLeaseBatch, id="a negative slice"),
]


@pytest.mark.requirement("PIP-06")
@pytest.mark.parametrize(("name", "fencing_token", "batch_number", "index", "error"), WRONG)
def test_a_slice_that_is_not_there(
    name: str, fencing_token: int, batch_number: int, index: int, error: type[Exception]
) -> None:
    routing = Routing()
    routing.put(routing.queue(), b"1", b"2")
    opened(routing)
    lease = opened(routing)
    acquire(routing, lease, max_messages=1)
    acquire(routing, lease, slices=2)
    leases = routing.router.leases
    leases.settle("l", 2, 1, batch=routing.batch)
    with pytest.raises(error):
        leases.slice_of(name, fencing_token, batch_number, index=index)


@pytest.mark.requirement("PIP-04")
def test_the_number_of_unsettled_batches_is_limited() -> None:
    routing = Routing()
    lease = opened(routing)
    routing.put(routing.queue(), *[b"x"] * (UNSETTLED_MAX + 1))
    for _ in range(UNSETTLED_MAX):
        acquire(routing, lease, max_messages=1)
    with pytest.raises(LimitReached):
        ask(routing, lease)
    routing.router.leases.settle("l", 1, 1, batch=routing.batch)
    assert acquire(routing, lease) == [b"x"]


@pytest.mark.requirement("PIP-01")
def test_there_are_only_so_many_leases() -> None:
    routing = Routing()
    leases = Leases(routing.router, leases_max=1)
    batch = routing.batch
    leases.open("a", routing.queue(), ttl_ms=0, batch=batch)
    leases.open("a", routing.queue(), ttl_ms=0, batch=batch)
    with pytest.raises(LimitReached):
        leases.open("b", routing.queue(), ttl_ms=0, batch=batch)


@pytest.mark.requirement("PIP-01")
def test_a_temporary_queue_has_no_leases() -> None:
    routing = Routing()
    with pytest.raises(InvalidAddress):
        opened(routing, routing.temporary_queue())


@pytest.mark.requirement("PIP-01")
def test_a_lease_is_of_one_queue() -> None:
    routing = Routing()
    opened(routing)
    with pytest.raises(HeldExclusively):
        opened(routing, routing.queue("other"))


@pytest.mark.requirement("PIP-09")
def test_a_queue_takes_its_leases_along() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"1")
    lease = opened(routing)
    acquire(routing, lease)
    waiting = ask(routing, lease, wait_ms=500)
    routing.pump()
    routing.router.delete(queue, routing.batch)
    assert not routing.router.leases.named
    again = opened(routing)
    routing.pump()
    assert isinstance(waiting.refusals[0], LeaseGone)
    (kept,) = stored(routing).leases
    assert kept.fencing_token == again.fencing_token == 2
    assert stored(routing).batches == []
    assert routing.stored() == []


@pytest.mark.requirement("PIP-09")
def test_what_is_being_gathered_returns_with_the_rest() -> None:
    routing = Routing(paging_window=64)
    queue = routing.queue()
    for number in range(500):
        queue.put(new_message(encoded(b"%d" % number), durable=True), routing.batch)
    routing.page_out(keep=1)
    routing.shelf.is_slow = True
    acquirer = ask(routing, opened(routing))
    routing.pump()
    assert queue.state.acquired > 0
    routing.router.leases.release("l", routing.batch)
    assert isinstance(acquirer.refusals[0], LeaseGone)
    assert (queue.backlogs.waiting, queue.state.acquired) == (500, 0)
    assert stored(routing).batches == []


@pytest.mark.requirement("PIP-08")
def test_what_runs_out_counts_as_delivered() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"1", durable=True), routing.batch)
    acquire(routing, opened(routing, ttl_ms=1000))
    routing.advance(999)
    assert counts(queue) == (0, 1, 1)
    routing.advance(1)
    assert counts(queue) == (1, 0, 1)
    (message,) = routing.stored()
    assert message.delivery_count == 1
    assert stored(routing).leases == []


@pytest.mark.requirement("PIP-09")
def test_what_is_released_does_not() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"1", durable=True), routing.batch)
    acquire(routing, opened(routing))
    assert routing.router.leases.release("l", routing.batch) == 1
    (message,) = routing.stored()
    assert message.delivery_count == 0
    assert counts(queue) == (1, 0, 1)


@pytest.mark.requirement("PIP-03")
@pytest.mark.parametrize(
    ("end", "kind", "reason"),
    [
        pytest.param("settle", "settled", "", id="settled"),
        pytest.param("release", "released", "", id="released"),
        pytest.param("run out", "modified", "the lease ran out", id="run out"),
    ],
)
def test_the_event_log_has_it(end: str, kind: str, reason: str) -> None:
    routing = Routing(policy=AddressPolicy(event_log=True), observer=RecordingWitness())
    routing.put(routing.queue(), b"1")
    lease = opened(routing, ttl_ms=1000)
    acquire(routing, lease)
    if end == "settle":
        routing.router.leases.settle("l", 1, 1, batch=routing.batch)
    elif end == "release":
        routing.router.leases.release("l", routing.batch)
    else:
        routing.advance(1000)
    rows = events(routing.batch)
    assert [row["kind"] for row in rows] == ["enqueued", "leased", kind]
    assert rows[1]["consumer"] == rows[2]["consumer"] == "l"
    assert rows[2]["reason"] == reason


@pytest.mark.requirement("PIP-08")
def test_polls_leave_the_timer_queue_short() -> None:
    routing = Routing()
    lease = opened(routing)
    for _ in range(100):
        ask(routing, lease, wait_ms=500)
        routing.pump()
        routing.advance(500)
    assert len(routing.router.timer_queue._heap) < 5


@pytest.mark.requirement("PIP-08")
def test_a_lease_that_has_nothing_rests_when_its_time_is_over() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"1")
    lease = opened(routing, ttl_ms=1000)
    acquire(routing, lease)
    routing.router.leases.settle("l", 1, 1, batch=routing.batch)
    routing.advance(1000)
    assert queue.consumers.attached == []
    assert routing.router.leases.find("l") is lease
    again = opened(routing, ttl_ms=1000)
    assert (again.batch_number, again.settled, queue.consumers.attached) == (1, 1, [again])
    routing.put(queue, b"2")
    assert acquire(routing, again) == [b"2"]


@pytest.mark.requirement("PIP-08")
def test_it_does_not_rest_for_ever() -> None:
    routing = Routing()
    opened(routing, ttl_ms=1000)
    routing.advance(1000)
    routing.advance(int(REST_MS) - 1)
    assert list(routing.router.leases.named) == ["l"]
    routing.advance(1)
    assert not routing.router.leases.named
    assert stored(routing).leases == []


@pytest.mark.requirement("PIP-08")
def test_a_client_with_the_latest_fencing_token_wakes_it() -> None:
    routing = Routing()
    lease = opened(routing, ttl_ms=1000)
    routing.advance(1000)
    assert lease.rests
    routing.put(routing.queue(), b"1")
    assert acquire(routing, lease) == [b"1"]
    assert not lease.rests


@pytest.mark.requirement("PIP-09")
def test_a_lease_that_rests_ends_with_its_queue_too() -> None:
    routing = Routing()
    opened(routing, ttl_ms=1000)
    routing.advance(1000)
    routing.router.delete(routing.queue(), routing.batch)
    again = opened(routing)
    assert (again.fencing_token, again.queue) == (2, routing.queue())
    routing.advance(1000)
    routing.router.delete(routing.queue(), routing.batch)
    assert routing.router.leases.all() == {}
    routing.pump()
    assert stored(routing).leases == []


@pytest.mark.requirement("PIP-08")
def test_while_a_request_waits_its_lease_does_not_run_out() -> None:
    routing = Routing()
    routing.put(routing.queue(), b"1")
    lease = opened(routing, ttl_ms=1000)
    acquire(routing, lease)
    acquirer = ask(routing, lease, wait_ms=5000)
    routing.pump()
    routing.advance(5000)
    assert acquirer.batches == [None]
    routing.advance(999)
    assert "l" in routing.router.leases.named
    routing.advance(1)
    assert "l" not in routing.router.leases.named


@pytest.mark.requirement("PIP-08")
def test_a_sign_of_life_puts_no_end_to_a_request_that_waits() -> None:
    routing = Routing()
    routing.put(routing.queue(), b"1")
    lease = opened(routing, ttl_ms=1000)
    acquire(routing, lease)
    acquirer = ask(routing, lease, wait_ms=5000)
    routing.pump()
    routing.router.leases.renew("l", lease.fencing_token)
    routing.advance(4999)
    assert acquirer.batches == []
    assert "l" in routing.router.leases.named


def test_what_is_taken_out_of_a_batch_leaves_the_store_with_it() -> None:
    routing = Routing()
    lease = opened(routing)
    routing.put(lease.queue, b"1", b"2", b"3")
    acquire(routing, lease)
    routing.commit()
    second = lease.batches[1].entries[1]
    lease.take_out(1, {second: None}, routing.batch)
    (lease_batch,) = stored(routing).batches
    assert lease_batch.numbers == [1, 3]
    assert len(lease_batch.slices) == 2
    with pytest.raises(NoSuchLeaseBatch):
        lease.take_out(2, {second: None}, routing.batch)


def test_a_request_that_is_withdrawn_frees_the_groups() -> None:
    routing = Routing()
    lease = opened(routing)
    queue = lease.queue
    queue.put(new_message(b"1", group="g"), routing.batch)
    acquire(routing, lease)
    ask(routing, lease, wait_ms=1000)
    routing.router.leases.settle("l", lease.fencing_token, 1, batch=routing.batch)
    routing.pump()
    routing.router.leases.withdraw("l", lease.fencing_token, batch=routing.batch)
    queue.put(new_message(b"2", group="g"), routing.batch)
    assert bodies(routing.consumer(queue, 1).entries) == [b"2"]
