"""Leases after a restart: they hold the messages that they held before."""

import pytest

from broker.links.leased import LeasedMessages
from storage.leases import StoredLease, StoredLeaseBatch, StoredLeases
from tests.support.leases import HOUR_MS, acquire, opened
from tests.support.notices import notice_texts
from tests.support.routing import Routing, bodies, counts, encoded, new_message
from tests.unit.links.test_recovery import put, restarted, taken, text

pytestmark = pytest.mark.requirement("PIP-10")


def slices(routing: Routing, batch_number: int = 1, *, count: int = 4) -> list[list[bytes]]:
    """Return the bodies in the first `count` slices of a batch of the lease `l`."""
    leases = routing.router.leases
    fencing_token = leases.named["l"].fencing_token
    return [
        bodies(leases.slice_of("l", fencing_token, batch_number, index=index))
        for index in range(count)
    ]


def test_batches_slices_and_members_are_as_they_were() -> None:
    old = Routing()
    for number in range(20):
        group = "" if number % 3 else f"g{number % 2}"
        body = encoded(b"%d" % number, group=group)
        old.queue().put(
            new_message(body, group=group, durable=True, priority=number % 10), old.batch
        )
    lease = opened(old)
    acquire(old, lease, max_messages=7)
    acquire(old, lease, slices=3)
    before = slices(old), slices(old, 2, count=3)
    new = restarted(old)
    assert (slices(new), slices(new, 2, count=3)) == before
    found = new.router.leases.named["l"]
    assert (found.fencing_token, found.batch_number, found.settled, found.held()) == (1, 2, 0, 20)
    assert counts(new.queue()) == counts(old.queue())
    again = restarted(new)
    assert (slices(again), slices(again, 2, count=3)) == before


def test_nobody_else_gets_what_is_leased() -> None:
    old = Routing()
    put(old, 1, 2, 3)
    acquire(old, opened(old), max_messages=2)
    new = restarted(old)
    assert taken(new, new.queue()) == [text(3)]
    new.router.leases.release("l", new.batch)
    assert counts(new.queue())[:2] == (2, 1)


def test_what_returns_after_a_restart_finds_its_place() -> None:
    old = Routing()
    put(old, 1, 2, 3)
    put(old, 9, priority=9)
    acquire(old, opened(old))
    new = restarted(old)
    put(new, 4)
    new.router.leases.release("l", new.batch)
    assert taken(new, new.queue()) == [text(9), text(1), text(2), text(3), text(4)]


def test_it_is_settled_after_a_restart() -> None:
    old = Routing()
    put(old, 1, 2, 3)
    acquire(old, opened(old), max_messages=2)
    new = restarted(old)
    assert new.router.leases.settle("l", 1, 1, batch=new.batch) == 1
    assert [each.encoded for each in new.stored()] == [text(3)]
    assert counts(new.queue())[:2] == (1, 0)


def test_its_next_batch_has_the_next_number() -> None:
    old = Routing()
    put(old, 1, 2)
    acquire(old, opened(old), max_messages=1)
    new = restarted(old)
    lease = opened(new)
    assert (lease.fencing_token, lease.batch_number) == (2, 1)
    assert acquire(new, lease) == [text(2)]
    assert acquire(new, lease, 1) == [text(1)]


def test_messages_of_no_batch_can_be_delivered() -> None:
    old = Routing()
    put(old, 1)
    opened(old)
    new = restarted(old)
    assert taken(new, new.queue()) == [text(1)]


def test_a_delivery_count_is_what_it_was_though_the_broker_was_killed() -> None:
    old = Routing()
    put(old, 1, 2)
    acquire(old, opened(old), max_messages=1)
    new = restarted(old, delivered=10_000)
    (entry,) = new.router.leases.slice_of("l", 1, 1, index=0)
    assert entry.delivery_count == 0, "a slice is read as it was, any number of times"
    (other,) = new.consumer(new.queue(), 1).entries
    assert other.delivery_count == 1


def test_if_a_batch_is_damaged_any_message_may_have_been_delivered() -> None:
    old = Routing()
    put(old, 1, 2)
    acquire(old, opened(old), max_messages=1)
    damaged = StoredLeases([stored_lease("l")], [], fencing_token=5, damaged=["l"])
    new = restarted(old, leases=damaged)
    entries = new.consumer(new.queue(), 2).entries
    assert [entry.delivery_count for entry in entries] == [1, 1]
    assert new.batch.delivered == {"q": 29}, "after the next kill, too"


def test_what_comes_after_a_damaged_batch_was_not_delivered() -> None:
    old = Routing()
    put(old, 1, 2, 3)
    put(old, 9, priority=9)
    acquire(old, opened(old), max_messages=1)
    damaged = StoredLeases([stored_lease("l")], [], fencing_token=5, damaged=["l"])
    new = restarted(old, leases=damaged)
    for priority in (0, 9):
        put(new, 5, priority=priority)
    again = restarted(new, delivered=new.batch.delivered["q"])
    entries = again.consumer(again.queue(), 9).entries
    told = {(entry.message.encoded, int(entry.delivery_count)) for entry in entries}
    assert told == {(text(1), 1), (text(2), 1), (text(3), 1), (text(9), 1), (text(5), 0)}


def test_a_group_goes_on_being_its_own() -> None:
    old = Routing()
    for name in (b"a1", b"a2"):
        body = encoded(name, group="a")
        old.queue().put(new_message(body, group="a", durable=True), old.batch)
    acquire(old, opened(old), max_messages=1)
    new = restarted(old)
    assert taken(new, new.queue()) == []
    new.router.leases.settle("l", 1, 1, batch=new.batch)
    lease = new.router.leases.named["l"]
    assert acquire(new, lease) == [encoded(b"a2", group="a")]


def test_its_time_begins_anew() -> None:
    old = Routing()
    put(old, 1)
    acquire(old, opened(old))
    old.advance(HOUR_MS - 1)
    new = restarted(old)
    new.advance(HOUR_MS - 1)
    assert counts(new.queue())[:2] == (0, 1)
    new.advance(1)
    assert counts(new.queue())[:2] == (1, 0)


def test_fencing_tokens_go_on_after_a_lease_has_ended() -> None:
    old = Routing()
    opened(old)
    old.router.leases.release("l", old.batch)
    old.commit()
    new = restarted(old)
    assert opened(new).fencing_token == 2


def test_a_lease_without_its_queue_is_gone() -> None:
    old = Routing()
    opened(old)
    changes = old.batch.lease_changes()
    changes.keep(stored_lease("m", queue="gone"))
    new = restarted(old)
    assert list(new.router.leases.named) == ["l"]
    new.commit()


def stored_lease(name: str, queue: str = "q") -> StoredLease:
    return StoredLease(
        name=name, queue=queue, selector="", fencing_token=5, ttl_ms=0, batch_number=1, settled=0
    )


def test_lost_messages_of_a_batch_are_reported() -> None:
    old = Routing()
    put(old, 1, 2)
    old.queue()
    changes = old.batch.lease_changes()
    changes.keep(stored_lease("l"))
    changes.acquire(
        StoredLeaseBatch(
            lease="l",
            batch_number=1,
            slice_count=2,
            numbers=[1, 77, 2],
            slices=b"\0\1\1",
            counts=[0, 0, 5],
        )
    )
    new = restarted(old)
    assert slices(new, count=2) == [[text(1)], [text(2)]]
    assert notice_texts(new.router.notices) == [
        "1 messages of batch 1 of lease l could not be read, and are left out"
    ]
    (entry,) = new.router.leases.slice_of("l", 5, 1, index=1)
    assert entry.delivery_count == 2
    assert entry.history is not None


def test_a_damaged_lease_ends_and_what_it_had_waits() -> None:
    old = Routing()
    put(old, 1)
    acquire(old, opened(old))
    old.commit()
    new = Routing(store=old.store)
    leased = LeasedMessages(new.router, new.batch)
    leased.lease(stored_lease("l"), new.queue())
    leased.damaged("l")
    leased.damaged("another")
    leased.finish()
    assert not new.router.leases.named
    assert notice_texts(new.router.notices) == ["lease l is damaged, and has ended"]
    assert list(new.batch.lease_changes().ended) == ["l"]


def test_a_lease_that_had_nothing_rests() -> None:
    old = Routing()
    put(old, 1)
    acquire(old, opened(old))
    old.router.leases.settle("l", 1, 1, batch=old.batch)
    new = restarted(old)
    assert new.queue().consumers.attached == []
    lease = opened(new)
    assert (lease.fencing_token, lease.batch_number, lease.settled) == (2, 1, 1)
