"""Sources whose unsettled deliveries outlive the broker, as a start restores them."""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter

from broker.amqp.outcomes import Modified
from broker.amqp.terminus import CONNECTION_CLOSE
from broker.routing.entries.redelivery import Disposal
from storage.leases import StoredLease, StoredLeaseBatch, StoredLeases, StoredTerminus
from tests.support.notices import notice_texts
from tests.support.routing import Routing, bodies, counts
from tests.unit.links.test_recovery import put, restarted, taken, text

pytestmark = pytest.mark.requirement("RCV-08")

NAME = "$terminus/one"


def stored(queue: str = "q", default: Modified | None = None) -> StoredLease:
    encoded = BytesWriter()
    if default is not None:
        default.write(encoded)
    return StoredLease(
        name=NAME,
        queue=queue,
        selector="",
        fencing_token=0,
        ttl_ms=0,
        batch_number=0,
        settled=0,
        terminus=StoredTerminus(
            container_id="client",
            link="link",
            owner="alice",
            address="q",
            expiry_policy=CONNECTION_CLOSE,
            timeout_s=60,
            default_outcome=encoded.getvalue(),
        ),
    )


def lease_batch(number: int, *numbers: int, counts: list[int] | None = None) -> StoredLeaseBatch:
    return StoredLeaseBatch(
        lease=NAME,
        batch_number=number,
        slice_count=1,
        numbers=list(numbers),
        slices=bytes(len(numbers)),
        counts=counts or [0] * len(numbers),
    )


def started(old: Routing, lease: StoredLease, *batches: StoredLeaseBatch) -> Routing:
    """Return a router built from the store of `old`, in which that lease is, too."""
    changes = old.batch.lease_changes()
    changes.keep(lease)
    for each in batches:
        changes.acquire(each)
    return restarted(old)


def test_its_messages_stay_acquired_in_their_order_and_with_their_counts() -> None:
    old = Routing()
    put(old, 1, 2, 3, 4)
    new = started(old, stored(), lease_batch(7, 3, counts=[5]), lease_batch(9, 1, 2))
    assert counts(new.queue())[:2] == (1, 3)
    (terminus,) = new.router.termini.all()
    assert (terminus.key, terminus.user) == (("client", "link", False), "alice")
    assert (terminus.expiry.terms.policy, terminus.expiry.terms.timeout_s) == (CONNECTION_CLOSE, 60)
    assert terminus.deliveries is not None
    entries = [each.entry for each in terminus.deliveries.all()]
    assert bodies([each for each in entries if each is not None]) == [text(3), text(1), text(2)]
    assert entries[0] is not None
    assert (entries[0].delivery_count, entries[0].history is not None) == (2, True)
    assert taken(new, new.queue()) == [text(4)]


@pytest.mark.parametrize(
    ("default", "disposal"),
    [(None, Disposal.RELEASE), (Modified(delivery_failed=True), Disposal.COUNT)],
)
def test_its_default_outcome_says_how_they_return(
    default: Modified | None, disposal: Disposal
) -> None:
    old = Routing()
    put(old, 1)
    new = started(old, stored(default=default), lease_batch(1, 1))
    (terminus,) = new.router.termini.all()
    assert terminus.disposal is disposal


def test_without_messages_it_ends() -> None:
    old = Routing()
    put(old, 1)
    new = started(old, stored(), lease_batch(1, 77))
    assert new.router.termini.count() == 0
    assert list(new.batch.lease_changes().ended) == [NAME]
    assert new.queue().state.observer is None


def test_without_its_queue_it_ends() -> None:
    old = Routing()
    put(old, 1)
    new = started(old, stored(queue="gone"), lease_batch(1, 1))
    assert new.router.termini.count() == 0
    assert list(new.batch.lease_changes().ended) == [NAME]
    assert counts(new.queue())[:2] == (1, 0)


def test_a_damaged_batch_ends_it_and_its_messages_may_have_been_delivered() -> None:
    old = Routing()
    put(old, 1, 2)
    old.commit()
    leases = StoredLeases([stored()], [lease_batch(1, 1)], fencing_token=0, damaged=[NAME])
    new = restarted(old, leases=leases)
    assert new.router.termini.count() == 0
    assert counts(new.queue())[:2] == (2, 0)
    (line,) = notice_texts(new.router.notices)
    assert line.startswith("what link link of client held is damaged in the store")
    assert new.queue().persistence.suspected_up_to > 0


def test_a_message_belongs_to_one_source_alone() -> None:
    old = Routing()
    put(old, 1)
    new = started(old, stored(), lease_batch(1, 1), lease_batch(2, 1))
    (terminus,) = new.router.termini.all()
    assert terminus.count() == 1
