"""The broker's own filters: their forms, and the annotations of copies that they select."""

import pytest

from broker.amqp.decode import take_value
from broker.amqp.descriptors import DELIVERY_ANNOTATIONS
from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.terminus import COPY, NEVER, Source, SourceFilter
from broker.amqp.types import Described, Int, Map, Symbol, Timestamp, ULong
from broker.links.filters import filters_of
from broker.links.slices import BROWSE_SLICE, LEASE_SLICE, placed
from broker.message import Message, opaque_message
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.entry import QueueEntry
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, attach_receiver, body_of
from tests.support.routing import Routing, new_message
from tests.unit.links.test_filters import stated


def lease_slice(value: object) -> SourceFilter:
    return stated("lease-slice", LEASE_SLICE, value)


def browse_slice(value: object) -> SourceFilter:
    return stated("browse-slice", BROWSE_SLICE, value)


def said(**values: object) -> Map:
    return Map(list(values.items()))


@pytest.mark.requirement("PIP-06")
def test_a_lease_slice_is_read_whatever_the_width_of_its_numbers() -> None:
    value = said(lease="l", fencing_token=3, batch=ULong(2), slice=Int(1))
    filters = filters_of(Source(filter=[lease_slice(value)]))
    found = filters.lease_slice
    assert found is not None
    assert (found.lease, found.fencing_token, found.batch_number, found.index) == ("l", 3, 2, 1)
    assert [each.key for each in filters.stated] == ["lease-slice"], "it is echoed"
    assert filters.of("client") is None


@pytest.mark.requirement("PIP-18")
def test_a_browse_slice_is_a_part() -> None:
    value = said(slice=Int(1), slices=Int(4), arrived_until_ms=5)
    filters = filters_of(Source(filter=[browse_slice(value)]))
    part = filters.part
    assert part is not None
    assert (part.index, part.slices, part.arrived_until_ms) == (1, 4, 5)
    assert [each.key for each in filters.stated] == ["browse-slice"]
    wanted = filters.of("client")
    assert wanted is not None
    assert wanted.part is part
    part = filters_of(Source(filter=[browse_slice(said())])).part
    assert part is not None
    assert (part.index, part.slices, part.arrived_until_ms) == (0, 1, 0)


WRONG = [
    pytest.param(lease_slice("l"), id="a lease-slice that is no map"),
    pytest.param(lease_slice(said(lease="l", fencing_token=1, batch=1)), id="without a slice"),
    pytest.param(
        lease_slice(said(lease=1, fencing_token=1, batch=1, slice=0)), id="a numbered lease"
    ),
    pytest.param(
        lease_slice(said(lease="l", fencing_token=1, batch=1, slice=256)),
        id="too high a slice",
    ),
    pytest.param(
        lease_slice(said(lease="l", fencing_token=True, batch=1, slice=0)),
        id="a boolean fencing token",
    ),
    pytest.param(
        lease_slice(said(lease="l", fencing_token=1, batch=1, slice=0, more=1)),
        id="an unknown key",
    ),
    pytest.param(browse_slice(said(slice=2, slices=2)), id="a slice that there is not"),
    pytest.param(browse_slice(said(slices=257)), id="too many slices"),
    pytest.param(browse_slice(said(slices=0)), id="no slices"),
    pytest.param(browse_slice(said(arrived_until_ms=-1)), id="a time before all"),
    pytest.param(browse_slice(said(arrived_until="x")), id="another unknown key"),
]


@pytest.mark.requirement("PIP-06", "PIP-18")
@pytest.mark.parametrize("wrong", WRONG)
def test_what_means_nothing_is_refused(wrong: SourceFilter) -> None:
    with pytest.raises(LinkFault) as refused:
        filters_of(Source(filter=[wrong]))
    assert refused.value.condition == INVALID_FIELD


@pytest.mark.requirement("PIP-06", "PIP-18")
@pytest.mark.parametrize(
    ("message", "annotations"),
    [
        pytest.param(
            new_message(arrived_ms=1_750_000_000_000),
            [
                ("x-opt-position", 2**40 * 10 + 4),
                ("x-opt-enqueued-time", Timestamp(1_750_000_000_000)),
            ],
            id="when it came",
        ),
        pytest.param(
            new_message(arrived_ms=1_750_000_000_000, ttl_ms=5000),
            [
                ("x-opt-position", 2**40 * 10 + 4),
                ("x-opt-enqueued-time", Timestamp(1_750_000_000_000)),
                ("x-opt-ttl-end", Timestamp(1_750_000_005_000)),
            ],
            id="when its ttl ends",
        ),
        pytest.param(new_message(), [("x-opt-position", 2**40 * 10 + 4)], id="nobody knows when"),
        pytest.param(
            opaque_message(b"", message_format=2**32 - 1),
            [("x-opt-position", 2**40 * 10 + 4), ("x-opt-message-format", 2**32 - 1)],
            id="another message-format",
        ),
    ],
)
def test_a_copy_tells_where_its_message_is(
    message: Message, annotations: list[tuple[str, object]]
) -> None:
    entry = QueueEntry(Routing().queue(), message, 2**40)
    written = placed(entry)
    value, end = take_value(written, 0, len(written))
    assert end == len(written)
    assert value == Described(
        ULong(DELIVERY_ANNOTATIONS), Map([(Symbol(key), told) for key, told in annotations])
    )


# -- by a link


def browser(broker: Broker, value: Map, *, address: str = "q", credit: int = 100) -> Client:
    """Return a client that browses with a browse-slice filter of `value`, and drains its credit."""
    client = broker.session("reader")
    source = Source(address=address, distribution_mode=COPY, filter=[browse_slice(value)])
    client.attach(attach_receiver(source=source))
    client.flow(handle=0, credit=credit, delivery_count=0, drain=True)
    return client


def bodies(client: Client) -> list[bytes]:
    return [body_of(each.payload) for each in client.bodies() if isinstance(each, Transfer)]


@pytest.mark.requirement("PIP-18")
def test_several_browsers_share_a_queue() -> None:
    broker = Broker()
    broker.fill(count=10)
    found = [bodies(browser(broker, said(slice=index, slices=3))) for index in range(3)]
    assert found == [[b"0", b"3", b"6", b"9"], [b"1", b"4", b"7"], [b"2", b"5", b"8"]]


@pytest.mark.requirement("PIP-18")
def test_what_came_later_is_left_out() -> None:
    broker = Broker()
    broker.fill(count=2)
    until = broker.clock.wall_ms()
    broker.advance(1)
    broker.fill(count=3)
    assert bodies(browser(broker, said(arrived_until_ms=until))) == [b"0", b"1"]


@pytest.mark.requirement("PIP-18")
def test_a_subscription_is_browsed_by_its_identity() -> None:
    broker = Broker()
    subscriber = broker.session("c")
    source = Source(address="t", capabilities=["topic"], durable=2, expiry_policy=NEVER)
    subscriber.attach(attach_receiver(name="s", source=source))
    subscriber.hang_up()
    broker.fill("t", 2, kind="topic")
    client = browser(broker, said(), address="durable/c/s")
    assert bodies(client) == [b"0", b"1"]
    client.hang_up()
    (subscription,) = broker.router.subscriptions.named.values()
    assert subscription.queue.backlogs.waiting == 2
    assert "durable/c/s" not in broker.router.queues


@pytest.mark.requirement("PIP-18")
def test_only_copies_are_browsed() -> None:
    broker = Broker()
    client = broker.session()
    source = Source(address="q", filter=[browse_slice(said())])
    client.send(attach_receiver(source=source))
    client.expect_refusal(INVALID_FIELD)


@pytest.mark.requirement("PIP-18")
def test_a_message_knows_when_it_came() -> None:
    broker = Broker(policy=AddressPolicy())
    broker.fill()
    came = broker.clock.wall_ms()
    broker.advance(5000)
    (transfer,) = [each for each in browser(broker, said()).bodies() if isinstance(each, Transfer)]
    told = b"\xa3\x13x-opt-enqueued-time\x83" + int(came).to_bytes(8, "big")
    assert told in transfer.payload
