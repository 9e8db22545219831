"""The messages of an outgoing link: with the right header, settled or not, within the credit."""

import pytest

from broker.amqp.outcomes import RELEASED
from broker.amqp.performatives import (
    SND_SETTLED,
    Detach,
    Flow,
)
from broker.amqp.types import UInt
from tests.support.broker import Broker, Client
from tests.support.deliveries import browser, fields_of, publish
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    body_of,
    message,
)

# -- the header


@pytest.mark.requirement("RCV-01", "RCV-03", "PRD-04", "DST-14")
@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param(message(), [False, 4, None, True, None], id="nothing said"),
        pytest.param(message(durable=True), [True, 4, None, True, None], id="durable"),
        pytest.param(message(priority=9), [False, 9, None, True, None], id="priority"),
        pytest.param(message(priority=200), [False, 9, None, True, None], id="priority too high"),
        pytest.param(message(ttl=0), [False, 4, 0, True, None], id="ttl 0, never"),
        pytest.param(message(ttl=5000), [False, 4, 4000, True, None], id="ttl, a second later"),
    ],
)
def test_the_header_of_a_first_delivery(payload: bytes, expected: list[object]) -> None:
    broker = Broker()
    publish(broker, payload)
    broker.clock.advance(1000)
    client = broker.session()
    client.attach_receiver(credit=1)
    (sent,) = client.expect_deliveries(b"hello")
    assert fields_of(sent) == expected


@pytest.mark.requirement("PRD-04")
def test_an_expired_message_is_not_delivered() -> None:
    broker = Broker()
    publish(broker, message(b"short", ttl=1000))
    publish(broker, message(b"long", ttl=5000))
    broker.clock.advance(1000)
    client = broker.session()
    client.attach_receiver(credit=5)
    client.expect_deliveries(b"long")
    assert broker.stats.expired == 1


@pytest.mark.requirement("PRD-04")
def test_the_ttl_goes_on_running_while_a_message_is_out() -> None:
    broker = Broker()
    publish(broker, message(ttl=5000))
    client = broker.session()
    client.attach_receiver(credit=5)
    (sent,) = client.expect_deliveries(b"hello")
    assert fields_of(sent)[2] == 5000
    broker.clock.advance(2000)
    client.send(Disposition(first=0, state=RELEASED))
    (sent,) = client.expect_deliveries(b"hello")
    assert fields_of(sent)[2] == 3000
    broker.clock.advance(3000)
    client.send(Disposition(first=1, state=RELEASED))
    client.expect_nothing()


@pytest.mark.requirement("PRD-05")
def test_behind_the_header_a_message_is_as_it_came() -> None:
    broker = Broker()
    kept = message(b"body", to="q", annotations={"x-opt-a": UInt(7), "x-opt-b": "é"})
    delivery_annotations = b"\x00\x53\x71\xc1\x01\x00"
    publish(broker, b"\x00\x53\x70\xc0\x02\x01\x41" + delivery_annotations + kept)
    client = broker.session()
    client.attach_receiver(credit=1)
    (sent,) = client.expect_deliveries(b"body")
    assert sent.payload.endswith(kept)
    assert delivery_annotations not in sent.payload


# -- settled or not


def test_an_unsettled_delivery_is_kept_until_its_outcome() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver(credit=2)
    one, two = client.expect_deliveries(b"0", b"1")
    assert (one.settled, two.settled) == (False, False)
    assert [one.delivery_id, two.delivery_id] == [0, 1]
    assert one.tag != two.tag
    assert broker.queue().state.acquired == 2
    client.send(Disposition(first=0, last=1))
    client.expect_nothing()
    assert (broker.queue().state.acquired, broker.stats.acknowledged) == (0, 2)


def test_a_pre_settled_delivery_is_gone_at_once() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver(credit=2, snd_settle_mode=SND_SETTLED)
    one, two = client.expect_deliveries(b"0", b"1")
    assert (one.settled, two.settled) == (True, True)
    assert (broker.queue().state.acquired, broker.stats.acknowledged) == (0, 2)
    client.send(Disposition(first=0, last=1, state=RELEASED))
    client.send(Detach(handle=0))
    client.expect_last(Detach)
    assert broker.queue().backlogs.waiting == 0


def test_delivery_ids_count_over_all_links_of_a_session() -> None:
    broker = Broker()
    broker.fill("a", 2)
    broker.fill("b", 2)
    client = broker.session()
    client.attach_receiver("a", name="a", handle=1, credit=2)
    client.expect_deliveries(b"0", b"1")
    client.attach_receiver("b", name="b", handle=2)
    client.flow(handle=2, credit=2, delivery_count=0)
    transfers = client.bodies()
    assert [each.delivery_id for each in transfers if isinstance(each, Transfer)] == [2, 3]
    client.send(Disposition(first=1, last=2))
    assert [broker.queue(name).state.acquired for name in "ab"] == [1, 1]


# -- credit


def test_no_more_is_sent_than_there_is_credit() -> None:
    broker = Broker()
    broker.fill(count=5)
    client = broker.session()
    client.attach_receiver()
    client.expect_nothing()
    client.flow(handle=0, credit=2, delivery_count=0)
    client.expect_deliveries(b"0", b"1")
    client.send(Disposition(first=0, last=1))
    client.expect_nothing()
    client.flow(handle=0, credit=1, delivery_count=2)
    client.expect_deliveries(b"2")


def test_credit_counts_from_where_the_receiver_stands() -> None:
    """Two messages were under way when the receiver granted four: two more may follow (2.6.7)."""
    broker = Broker()
    broker.fill(count=9)
    client = broker.session()
    client.attach_receiver(credit=2)
    client.expect_deliveries(b"0", b"1")
    client.flow(handle=0, credit=4, delivery_count=0)
    client.expect_deliveries(b"2", b"3")


def test_credit_may_be_taken_back() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_receiver(credit=5)
    client.flow(handle=0, credit=0, delivery_count=0)
    publish(broker, message())
    client.expect_nothing()


def test_credit_waits_for_messages() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_receiver(credit=2)
    client.expect_nothing()
    broker.fill(count=3)
    client.expect_deliveries(b"0", b"1")


def test_a_shut_session_window_holds_deliveries_up() -> None:
    broker = Broker()
    broker.fill(count=3)
    client = broker.connect()
    client.begin(incoming_window=1)
    client.attach(attach_receiver())
    client.flow(handle=0, credit=3, delivery_count=0, incoming_window=1)
    client.expect_deliveries(b"0")
    client.flow(incoming_window=2)
    client.expect_deliveries(b"1", b"2")


def test_consumers_take_turns() -> None:
    broker = Broker()
    one, two = broker.session("one"), broker.session("two")
    one.attach_receiver(credit=9)
    two.attach_receiver(credit=9)
    broker.fill(count=4)
    one.expect_deliveries(b"0", b"2")
    two.expect_deliveries(b"1", b"3")


# -- drain


def drained(client: Client, *, delivery_count: int) -> None:
    """Check that the last frame is a flow that ends the drain at this delivery-count."""
    flow = client.expect_last(Flow)
    assert (flow.handle, flow.drain) == (0, True)
    assert (flow.delivery_count, flow.link_credit) == (delivery_count, 0)


def test_a_drain_of_an_empty_queue_ends_at_once() -> None:
    client = Broker().session()
    client.attach_receiver()
    client.flow(handle=0, credit=5, delivery_count=0, drain=True)
    drained(client, delivery_count=5)


def test_a_drain_brings_what_there_is_first() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver()
    client.flow(handle=0, credit=5, delivery_count=0, drain=True)
    assert [body_of(client.expect(Transfer).payload) for _ in range(2)] == [b"0", b"1"]
    drained(client, delivery_count=5)


def test_a_drain_that_uses_all_credit_needs_no_flow() -> None:
    """Deliveries use up the credit; the broker answers a second request with its state."""
    broker = Broker()
    broker.fill(count=3)
    client = broker.session()
    client.attach_receiver()
    client.flow(handle=0, credit=2, delivery_count=0, drain=True)
    client.expect_deliveries(b"0", b"1")
    client.flow(handle=0, credit=0, delivery_count=2, drain=True)
    drained(client, delivery_count=2)


def test_a_drain_waits_for_room() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.connect()
    client.begin(incoming_window=1)
    client.attach(attach_receiver())
    client.flow(handle=0, credit=5, delivery_count=0, incoming_window=1, drain=True)
    client.expect_deliveries(b"0")
    client.flow(incoming_window=1)
    assert body_of(client.expect(Transfer).payload) == b"1"
    drained(client, delivery_count=5)


def test_after_a_drain_nothing_comes_without_new_credit() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_receiver()
    client.flow(handle=0, credit=5, delivery_count=0, drain=True)
    drained(client, delivery_count=5)
    broker.fill(count=2)
    client.expect_nothing()
    client.flow(handle=0, credit=1, delivery_count=5)
    client.expect_deliveries(b"0")


def test_a_browser_may_drain() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach(browser())
    client.flow(handle=0, credit=9, delivery_count=0, drain=True)
    assert [body_of(client.expect(Transfer).payload) for _ in range(2)] == [b"0", b"1"]
    drained(client, delivery_count=9)
