"""A slice of a lease's batch, read by links: repeatedly, by every client that may."""

import pytest

from broker.amqp.errors import INVALID_FIELD, NOT_FOUND, RESOURCE_LOCKED, UNAUTHORIZED_ACCESS
from broker.amqp.performatives import Attach, Detach, Flow
from broker.amqp.terminus import COPY, MOVE, NEVER, Source
from broker.security.identity import Identity
from tests.support.access import ADA, access_of
from tests.support.broker import Broker, Client, log_in
from tests.support.frames import Transfer, attach_receiver, body_of
from tests.unit.links.test_slices import lease_slice, said
from tests.unit.management.test_leases import Driver, driver

pytestmark = pytest.mark.requirement("PIP-06")


def attach(
    client: Client,
    *,
    lease: str = "l",
    fencing_token: int = 1,
    batch_number: int = 1,
    index: int = 0,
    address: str = "q",
    mode: str = COPY,
) -> None:
    """Attach a receiver with a lease-slice filter of these values."""
    value = said(lease=lease, fencing_token=fencing_token, batch=batch_number, slice=index)
    source = Source(address=address, distribution_mode=mode, filter=[lease_slice(value)])
    client.send(attach_receiver(source=source, name=f"slice {index}"))


def reader(broker: Broker, *, credit: int = 100, index: int = 0, **fields: object) -> Client:
    """Return a client that reads a slice, with credit that it drains."""
    client = broker.session(f"reader {index}")
    attach(client, index=index, **fields)  # type: ignore[arg-type]
    client.bodies()
    client.flow(handle=0, credit=credit, delivery_count=0, drain=True)
    return client


def taken(client: Client) -> tuple[list[bytes], bool]:
    """Return the bodies received, and whether the drain has ended."""
    found = client.bodies()
    bodies = [body_of(each.payload) for each in found if isinstance(each, Transfer)]
    drained = any(isinstance(each, Flow) and each.link_credit == 0 for each in found)
    return bodies, drained


def leased(count: int = 10, **wanted: object) -> tuple[Broker, Driver]:
    """Return a broker with a lease `l` that has a batch, and the lease's driver."""
    broker, lead = driver(count)
    lead.open()
    lead.acquire(**wanted)  # type: ignore[arg-type]
    return broker, lead


def test_all_of_a_slice_comes_in_order_then_a_drain_ends() -> None:
    broker, _ = leased(slices=2)
    assert taken(reader(broker)) == ([b"0", b"1", b"2", b"3", b"4"], True)
    assert taken(reader(broker, index=1)) == ([b"5", b"6", b"7", b"8", b"9"], True)
    assert taken(reader(broker)) == ([b"0", b"1", b"2", b"3", b"4"], True)
    assert broker.queue().state.acquired == 10


def test_an_empty_slice_is_drained_at_once() -> None:
    broker, _ = leased(1, slices=2)
    assert taken(reader(broker, index=1)) == ([], True)


def test_it_comes_within_credit() -> None:
    broker, _ = leased(slices=2)
    client = reader(broker, credit=2)
    assert taken(client)[0] == [b"0", b"1"]
    client.flow(handle=0, credit=9, delivery_count=2, drain=True)
    assert taken(client) == ([b"2", b"3", b"4"], True)


def test_it_is_settled_while_somebody_reads() -> None:
    broker, lead = leased(slices=2)
    client = reader(broker, credit=2)
    assert lead.settle(1).status == 200
    client.bodies()
    client.flow(handle=0, credit=9, delivery_count=2, drain=True)
    assert taken(client) == ([b"2", b"3", b"4"], True)


def test_what_a_reader_says_of_copies_changes_nothing() -> None:
    broker, _ = leased(slices=1)
    client = reader(broker)
    taken(client)
    client.hang_up()
    assert broker.queue().state.acquired == 10
    assert broker.container.link_count() == 2, "those of the driver"


def test_the_source_that_is_answered_echoes_the_filter() -> None:
    broker, _ = leased()
    client = broker.session("reader")
    attach(client)
    answer = client.expect(Attach)
    assert answer.source is not None
    assert answer.source.address == "q"
    assert answer.source.distribution_mode == COPY
    assert [each.key for each in answer.source.filter] == ["lease-slice"]


REFUSED = [
    pytest.param({"lease": "m"}, NOT_FOUND, id="another lease"),
    pytest.param({"batch_number": 2}, NOT_FOUND, id="a batch to come"),
    pytest.param({"index": 4}, NOT_FOUND, id="a slice that there is not"),
    pytest.param({"fencing_token": 2}, NOT_FOUND, id="a fencing token to come"),
    pytest.param({"address": "other"}, NOT_FOUND, id="another address"),
    pytest.param({"mode": MOVE}, INVALID_FIELD, id="not copies"),
]


@pytest.mark.parametrize(("fields", "condition"), REFUSED)
def test_what_is_not_there_is_refused(fields: dict[str, object], condition: str) -> None:
    broker, _ = leased()
    client = broker.session("reader")
    attach(client, **fields)  # type: ignore[arg-type]
    client.expect_refusal(condition)
    assert "other" not in broker.router.queues


def test_whoever_is_fenced_off_reads_nothing() -> None:
    broker, lead = leased()
    lead.open()
    client = broker.session("reader")
    attach(client)
    client.expect_refusal(RESOURCE_LOCKED)


def test_only_administrators_read() -> None:
    broker, _ = leased()
    client = broker.session("reader")
    log_in(client, "stranger")
    attach(client)
    client.expect_refusal(UNAUTHORIZED_ACCESS)


def leased_from(name: str, *rights: str) -> tuple[Broker, Client]:
    """Return a broker with the lease `l` of a queue, and a reader with these rights."""
    broker, lead = driver()
    broker.fill(name, 3)
    lead.open(address=name)
    lead.acquire()
    broker.container.access = access_of(*rights)
    client = broker.session("reader")
    client.peer.identity = Identity(ADA, roles=frozenset())
    return broker, client


CONCEALED = [
    # the lease's queue, the address of the attach, the lease that is asked for
    pytest.param("secret", "q", "l", id="a lease of another queue"),
    pytest.param("secret", "q", "m", id="no lease"),
]


@pytest.mark.parametrize(("queue", "address", "lease"), CONCEALED)
def test_a_lease_of_a_queue_that_a_client_may_not_lease_is_like_none(
    queue: str, address: str, lease: str
) -> None:
    _, client = leased_from(queue, "lease queue:q")
    attach(client, lease=lease, address=address)
    client.expect(Attach)
    detach = client.expect_last(Detach)
    assert detach.error is not None
    assert detach.error.condition == NOT_FOUND
    assert detach.error.description == f"gone: there is no lease {lease}"


def test_a_queue_that_is_called_like_a_subscription_gives_no_right_on_that() -> None:
    broker, lead = driver()
    subscriber = broker.session("c")
    source = Source(address="t", capabilities=["topic"], durable=2, expiry_policy=NEVER)
    subscriber.attach(attach_receiver(name="s", source=source))
    subscriber.hang_up()
    broker.fill("t", 2, kind="topic")
    lead.open(subscription="durable/c/s")
    lead.acquire(slices=1)
    broker.fill("durable/c/s")
    broker.container.access = access_of("lease queue:#")
    client = broker.session("reader")
    client.peer.identity = Identity(ADA, roles=frozenset())
    attach(client, address="durable/c/s")
    client.expect_refusal(NOT_FOUND)


def test_a_slice_of_a_subscription_is_read_at_its_identity() -> None:
    broker, lead = driver()
    subscriber = broker.session("c")
    source = Source(address="t", capabilities=["topic"], durable=2, expiry_policy=NEVER)
    subscriber.attach(attach_receiver(name="s", source=source))
    subscriber.hang_up()
    broker.fill("t", 2, kind="topic")
    lead.open(subscription="durable/c/s")
    lead.acquire(slices=1)
    assert taken(reader(broker, address="durable/c/s")) == ([b"0", b"1"], True)
