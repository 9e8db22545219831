"""Incoming messages: where each is routed, when and how its sender is answered, and credit."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from broker.amqp.errors import INVALID_FIELD, NOT_FOUND, RESOURCE_LIMIT_EXCEEDED
from broker.amqp.outcomes import Accepted, Error, Rejected
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, RECEIVER, SENDER, Detach, Flow
from broker.amqp.terminus import LINK_DETACH, Source, Target
from broker.amqp.types import Int, UByte
from broker.routing.addresses.policy import REJECT, AddressPolicy
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, Transfer, attach_sender, message

DISCARDING = Target(address=None, capabilities=["DISCARD_UNROUTABLE"])
CLOSED_ADDRESSES = AddressPolicy(auto_create=False)


def accepted(client: Client, first: int, last: int | None = None, *, settled: bool = True) -> None:
    """Check that the last frame is a disposition that accepts these deliveries."""
    answer = client.expect_last(Disposition)
    assert isinstance(answer.state, Accepted)
    assert (answer.role, answer.settled) == (RECEIVER, settled)
    assert (answer.first, answer.last) == (first, first if last is None else last)


def rejected(client: Client, number: int) -> Error:
    """Check that the last frame rejects and settles delivery `number`; return the error."""
    answer = client.expect_last(Disposition)
    assert isinstance(answer.state, Rejected)
    assert (answer.first, answer.last, answer.settled) == (number, number, True)
    assert answer.state.error is not None
    return answer.state.error


# -- accepted


def test_a_message_is_accepted_once_it_is_routed() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    client.transfer(0)
    accepted(client, 0)
    assert broker.queue().backlogs.waiting == 1
    assert broker.stats.published == 1
    assert broker.stats.published_bytes == len(message())


def test_messages_that_came_together_are_accepted_together() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(*[Transfer(delivery_id=number, payload=message()) for number in range(5)])
    accepted(client, 0, 4)


def test_a_pre_settled_message_is_not_answered() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    client.transfer(0, settled=True)
    client.expect_nothing()
    assert broker.queue().backlogs.waiting == 1


def test_pre_settled_messages_part_ranges() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(
        *[
            Transfer(delivery_id=number, settled=number == 2, payload=message())
            for number in range(5)
        ]
    )
    first, second = client.bodies()
    assert isinstance(first, Disposition)
    assert isinstance(second, Disposition)
    assert [(each.first, each.last) for each in (first, second)] == [(0, 1), (3, 4)]


@pytest.mark.parametrize(
    ("mode", "settled"),
    [
        pytest.param(None, False, id="as the link says"),
        pytest.param(RCV_FIRST, True, id="the delivery is an exception"),
        pytest.param(RCV_SECOND, False, id="the delivery says the same"),
    ],
)
def test_a_sender_that_settles_first_is_left_to(mode: int | None, settled: bool) -> None:
    client = Broker().session()
    client.attach(attach_sender(rcv_settle_mode=RCV_SECOND))
    client.expect(Flow)
    client.transfer(0, rcv_settle_mode=mode)
    accepted(client, 0, settled=settled)
    client.send(Disposition(role=SENDER, first=0))
    client.expect_nothing()
    client.transfer(1, rcv_settle_mode=mode)
    accepted(client, 1, settled=settled)


def test_a_delivery_may_not_settle_later_than_its_link() -> None:
    client = Broker().session()
    client.attach_sender()
    client.transfer(0, rcv_settle_mode=RCV_SECOND)
    assert detached_with(client).condition == "amqp:invalid-field"


@pytest.mark.parametrize("last", [pytest.param(None, id="one"), pytest.param(9, id="in a range")])
def test_a_sender_may_settle_by_itself(last: int | None) -> None:
    broker = Broker()
    client = broker.session()
    client.attach(attach_sender(rcv_settle_mode=RCV_SECOND))
    client.expect(Flow)
    client.transfer(0)
    accepted(client, 0, settled=False)
    client.send(Disposition(role=SENDER, first=0, last=last, state=None))
    client.expect_nothing()
    assert broker.queue().backlogs.waiting == 1


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize("durable", [False, True], ids=["not durable", "durable"])
def test_without_io_durability_makes_no_difference_to_a_sender(durable: bool) -> None:
    """tests/scenario/test_durable_messages.py shows the effect of a commit that takes time."""
    client = Broker().session()
    client.attach_sender()
    client.send(
        *[Transfer(delivery_id=number, payload=message(durable=durable)) for number in range(5)]
    )
    accepted(client, 0, 4)


# -- refused


def detached_with(client: Client) -> Error:
    """Check that the last frame is a closing detach; return its error."""
    detach = client.expect_last(Detach)
    assert detach.closed
    assert detach.error is not None
    return detach.error


BAD = b"\x00\x53\x99\x45"
LATE = message(annotations={"x-opt-delivery-time": "soon"})


@pytest.mark.requirement("PRD-02")
@pytest.mark.parametrize(
    ("address", "payload", "condition"),
    [
        pytest.param(None, message(), NOT_FOUND, id="to the relay without an address"),
        pytest.param(None, message(to=""), NOT_FOUND, id="to the relay with an empty address"),
        pytest.param(None, message(to="nowhere"), NOT_FOUND, id="to a node that is not there"),
        pytest.param(None, message(to="$tmp/gone"), NOT_FOUND, id="to a temporary node gone"),
        pytest.param("full", message(), RESOURCE_LIMIT_EXCEEDED, id="to a queue that is full"),
        pytest.param("open", BAD, "amqp:decode-error", id="no message at all"),
        pytest.param("open", LATE, INVALID_FIELD, id="delayed until nobody knows when"),
    ],
)
def test_a_message_that_cannot_be_routed(
    address: str | None, payload: bytes, condition: str
) -> None:
    """An unsettled one is rejected with its tag; a settled one detaches, or is dropped if asked."""
    patterns = [("full", AddressPolicy(max_messages=1, full=REJECT)), ("open", AddressPolicy())]
    broker = Broker(policy=CLOSED_ADDRESSES, patterns=patterns)
    broker.fill("full")
    client = broker.session()
    client.attach_sender(address)
    client.transfer(0, tag=b"\x01\xff", payload=payload)
    error = rejected(client, 0)
    assert error.condition == condition
    assert error.info["delivery-tag"] == b"\x01\xff"
    client.transfer(1, tag=b"\x02", payload=payload, settled=True)
    error = detached_with(client)
    assert error.condition == condition
    assert error.info["delivery-tag"] == b"\x02"
    assert broker.stats.unroutable == 2
    assert broker.watcher.errors == []


@pytest.mark.requirement("PRD-02")
def test_a_sender_may_have_unroutable_messages_dropped() -> None:
    broker = Broker(policy=CLOSED_ADDRESSES)
    client = broker.session()
    client.attach_sender(target=DISCARDING)
    client.transfer(0, payload=message(to="nowhere"), settled=True)
    client.expect_nothing()
    client.transfer(1, payload=message(to="nowhere"))
    assert rejected(client, 1).condition == NOT_FOUND
    assert broker.stats.unroutable == 2


@pytest.mark.requirement("PRD-02")
def test_a_sender_whose_source_knows_no_rejection_is_detached() -> None:
    client = Broker(policy=CLOSED_ADDRESSES).session()
    client.attach_sender(None, source=Source(outcomes=["amqp:accepted:list"]))
    client.transfer(0, tag=b"\x02", payload=message(to="nowhere"))
    assert detached_with(client).info["delivery-tag"] == b"\x02"


@pytest.mark.requirement("PRD-02")
def test_the_tag_is_told_of_a_message_in_pieces_too() -> None:
    client = Broker(policy=CLOSED_ADDRESSES).session()
    client.attach_sender(None)
    client.send(Transfer(tag=b"first", more=True, payload=message(to="nowhere")))
    client.send(Transfer(delivery_id=None, tag=None, message_format=None))
    assert rejected(client, 0).info["delivery-tag"] == b"first"


def test_neighbours_of_a_rejected_message_keep_their_outcome() -> None:
    client = Broker(
        policy=AddressPolicy(auto_create=False), patterns=[("q", AddressPolicy())]
    ).session()
    client.attach_sender(None)
    addresses = ["q", "nowhere", "q", "q"]
    client.send(
        *[
            Transfer(delivery_id=number, payload=message(to=address))
            for number, address in enumerate(addresses)
        ]
    )
    answers = [body for body in client.bodies() if isinstance(body, Disposition)]
    assert [(each.first, each.last, type(each.state)) for each in answers] == [
        (0, 0, Accepted),
        (1, 1, Rejected),
        (2, 3, Accepted),
    ]


# -- the relay


@pytest.mark.requirement("PRD-01", "DST-03")
@pytest.mark.parametrize(
    ("annotations", "kind"),
    [
        pytest.param({}, "queue", id="nothing: the default kind"),
        pytest.param({"x-opt-jms-dest": UByte(0)}, "queue", id="a queue"),
        pytest.param({"x-opt-jms-dest": UByte(1)}, "topic", id="a topic"),
        pytest.param({"x-opt-jms-dest": UByte(2)}, "queue", id="a temporary queue"),
        pytest.param({"x-opt-jms-dest": UByte(3)}, "topic", id="a temporary topic"),
        pytest.param({"x-opt-jms-dest": Int(1)}, "topic", id="an int"),
        pytest.param({"x-opt-jms-dest": 1}, "topic", id="a long"),
        pytest.param({"x-opt-jms-dest": UByte(4)}, "queue", id="a number that means nothing"),
        pytest.param({"x-opt-jms-dest": -1}, "queue", id="a negative number"),
        pytest.param({"x-opt-jms-dest": "topic"}, "queue", id="not a number"),
        pytest.param({"x-opt-to-type": "topic"}, "topic", id="the word topic"),
        pytest.param({"x-opt-to-type": "temporary , topic"}, "topic", id="words"),
        pytest.param({"x-opt-to-type": "queue,temporary"}, "queue", id="the word queue"),
        pytest.param({"x-opt-to-type": "temporary"}, "queue", id="no kind among the words"),
        pytest.param({"x-opt-to-type": 1}, "queue", id="not a text"),
        pytest.param(
            {"x-opt-jms-dest": UByte(1), "x-opt-to-type": "queue"}, "topic", id="number over words"
        ),
    ],
)
def test_a_message_to_the_relay_says_where_it_goes(
    annotations: dict[str, object], kind: str
) -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender(None)
    client.transfer(0, payload=message(to="x", annotations=annotations))
    accepted(client, 0)
    node = broker.router.find_named("x", "")
    assert node is not None
    assert node.kind == kind


@pytest.mark.requirement("PRD-01")
def test_the_relay_serves_many_addresses_and_keeps_what_it_was_given() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender(None)
    payload = message(b"body", to="a", annotations={"x-opt-jms-dest": UByte(0)})
    client.transfer(0, payload=payload)
    client.transfer(1, payload=message(to="b"))
    reader = broker.session("reader")
    reader.attach_receiver("a", credit=5)
    (sent,) = reader.expect_deliveries(b"body")
    assert sent.payload.endswith(payload)
    assert broker.queue("b").backlogs.waiting == 1


def test_a_link_with_an_address_does_not_look_at_to() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender("q")
    client.transfer(0, payload=message(to="elsewhere"))
    assert broker.queue().backlogs.waiting == 1
    assert broker.router.find_named("elsewhere", "") is None


@pytest.mark.requirement("PRD-02")
def test_a_to_that_is_no_text_is_rejected() -> None:
    client = Broker().session()
    client.attach_sender(None)
    properties = b"\x00\x53\x73\xc0\x04\x03\x40\x40\x41"
    client.transfer(0, payload=properties + message())
    assert rejected(client, 0).condition == "amqp:decode-error"


# -- credit


def grant(client: Client) -> tuple[int, int]:
    """Return delivery-count and credit of the one flow among the dispositions."""
    (flow,) = [body for body in client.bodies() if not isinstance(body, Disposition)]
    assert isinstance(flow, Flow)
    assert flow.handle == 0
    return int(flow.delivery_count), int(flow.link_credit)


def test_a_sender_gets_its_credit_with_the_attach() -> None:
    client = Broker(credit=7).session()
    client.attach(attach_sender())
    assert grant(client) == (0, 7)


def test_credit_is_renewed_once_half_of_it_is_used() -> None:
    client = Broker(credit=10).session()
    client.attach_sender()
    for number in range(4):
        client.transfer(number, settled=True)
    client.expect_nothing()
    client.transfer(4, settled=True)
    assert grant(client) == (5, 10)
    for number in range(5, 9):
        client.transfer(number, settled=True)
    client.expect_nothing()


def test_messages_in_pieces_use_credit_too() -> None:
    client = Broker(credit=2).session()
    client.attach_sender()
    client.send(Transfer(more=True, payload=message()), Transfer(delivery_id=None, tag=None))
    assert grant(client) == (1, 2)


# A mark of 0: any backlog is too long, as long as there is a consumer that could take it.


def paced(*, credit: int = 2) -> tuple[Broker, Client, Client]:
    """Return a broker, a sender, and a receiver that has no credit yet."""
    broker = Broker(credit=credit, pacing_mark=0)
    reader = broker.session("reader")
    reader.attach_receiver()
    client = broker.session()
    client.attach_sender()
    return broker, client, reader


def test_a_sender_waits_for_slow_consumers_ten_milliseconds() -> None:
    broker, client, _ = paced()
    client.transfer(0, settled=True)
    broker.advance(9)
    client.expect_nothing()
    broker.advance(1)
    assert grant(client) == (1, 2)
    for number in (1, 2):
        client.transfer(number, settled=True)
        client.expect_nothing()
        broker.advance(10)
        assert grant(client) == (number + 1, 2)
    client.transfer(3, settled=True)
    assert grant(client) == (4, 2), "that did not help: consumers are slow in earnest"


def test_a_sender_goes_on_as_soon_as_the_backlog_is_gone() -> None:
    _, client, reader = paced()
    client.transfer(0, settled=True)
    client.expect_nothing()
    reader.flow(handle=0, credit=1, delivery_count=0)
    assert grant(client) == (1, 2)


def test_a_sender_goes_on_as_soon_as_nobody_consumes() -> None:
    _, client, reader = paced()
    client.transfer(0, settled=True)
    client.expect_nothing()
    reader.hang_up()
    assert grant(client) == (1, 2)


def test_without_consumers_a_sender_is_not_held_back() -> None:
    client = Broker(credit=2, pacing_mark=0).session()
    client.attach_sender()
    for number in range(5):
        client.transfer(number, settled=True)
        assert grant(client) == (number + 1, 2)


def test_the_relay_is_never_held_back() -> None:
    broker, client, _ = paced()
    client.attach_sender(None, name="relay", handle=1)
    for number in range(5):
        client.transfer(number, handle=1, payload=message(to="q"), settled=True)
        assert client.expect_last(Flow).handle == 1
    assert broker.queue().backlogs.waiting == 5


def test_a_sender_that_goes_while_it_waits_is_forgotten() -> None:
    broker, client, _ = paced()
    client.transfer(0, settled=True)
    client.send(Detach(handle=0))
    client.expect_last(Detach)
    broker.advance(10)
    client.expect_nothing()
    assert broker.queue().producers == []


def test_more_messages_than_credit_detach() -> None:
    broker, client, _ = paced()
    for number in range(3):
        client.transfer(number, settled=True)
    assert detached_with(client).condition == "amqp:link:transfer-limit-exceeded"
    assert broker.queue().backlogs.waiting == 2


def test_a_sender_may_give_its_credit_up() -> None:
    """A drain advances the sender's delivery-count by its unused credit (core 2.6.7)."""
    client = Broker(credit=10).session()
    client.attach_sender()
    client.flow(handle=0, delivery_count=4)
    assert grant(client) == (4, 10)
    client.flow(handle=0, delivery_count=14)
    assert grant(client) == (14, 10)


@pytest.mark.parametrize(
    "count", [pytest.param(11, id="ahead"), pytest.param(-2 % 2**32, id="back")]
)
def test_a_delivery_count_that_cannot_be_detaches(count: int) -> None:
    client = Broker(credit=10).session()
    client.attach_sender()
    client.flow(handle=0, delivery_count=count)
    assert detached_with(client).condition == "amqp:invalid-field"


# -- temporary nodes, and the end of links


@pytest.mark.requirement("TMP-01", "TMP-03")
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda client: client.send(Detach(handle=0)), id="detached"),
        pytest.param(lambda client: client.hang_up(), id="connection lost"),
    ],
)
def test_a_temporary_node_ends_with_the_link_that_made_it(end: Callable[[Client], None]) -> None:
    broker = Broker()
    owner = broker.session("owner")
    target = Target(dynamic=True, expiry_policy=LINK_DETACH, capabilities=["temporary-topic"])
    answer = owner.attach_sender(target=target)
    assert isinstance(answer.target, Target)
    address = answer.target.address
    assert address is not None
    assert answer.target.dynamic
    other = broker.session("other")
    other.attach_sender(address)
    end(owner)
    assert broker.router.find_named(address, "") is None
    assert detached_with(other).condition == "amqp:resource-deleted"


@pytest.mark.requirement("TMP-01")
def test_a_temporary_node_is_a_queue_unless_said_otherwise() -> None:
    broker = Broker()
    answer = broker.session().attach_sender(target=Target(dynamic=True))
    assert isinstance(answer.target, Target)
    assert answer.target.address in broker.router.queues


@pytest.mark.requirement("SUB-37")
def test_a_link_that_is_attached_again_is_stolen() -> None:
    broker = Broker()
    first = broker.session()
    first.attach_sender()
    second = broker.session()
    second.attach_sender()
    assert detached_with(first).condition == "amqp:link:stolen"
    second.transfer(0)
    accepted(second, 0)
    assert broker.container.link_count() == 1


def test_transfers_behind_our_detach_are_counted_and_dropped() -> None:
    broker, client, _ = paced(credit=1)
    client.attach_sender("other", name="other", handle=1)
    sender = Transfer(settled=True, payload=message())
    client.send(sender, *[replace(sender, delivery_id=number) for number in (1, 2)])
    detached_with(client)
    client.transfer(3, handle=1, settled=True)
    assert broker.queue("other").backlogs.waiting == 1
    assert broker.queue().backlogs.waiting == 1
