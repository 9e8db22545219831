"""The effect of the end of a delivery on its message: by an outcome, or by the end of the link."""

import asyncio

import pytest

from broker.amqp.errors import LinkFault
from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Declared,
    DeliveryState,
    Modified,
    Outcome,
    Received,
    Rejected,
    TransactionalState,
)
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, SENDER, Detach
from broker.amqp.terminus import Source
from broker.amqp.types import UInt
from broker.links.outcome import abandonment, disposal
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from tests.support.broker import Broker, Client
from tests.support.endings import ENDINGS, Ending
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    body_of,
    header_of,
    message,
)
from tests.support.stored import stored_messages

FAILED = Modified(delivery_failed=True)
NOT_HERE = Modified(undeliverable_here=True)
FAILED_HERE = Modified(delivery_failed=True, undeliverable_here=True)
ANNOTATED = Modified(message_annotations=b"\xc1\x0a\x02\xa3\x06x-opt1\x41")


# -- outcomes and what they ask for


@pytest.mark.requirement("RCV-02")
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(ACCEPTED, Disposal.REMOVE, id="accepted"),
        pytest.param(RELEASED, Disposal.RELEASE, id="released"),
        pytest.param(Rejected(), Disposal.DEAD_LETTER, id="rejected"),
        pytest.param(Modified(), Disposal.RELEASE, id="modified in no way"),
        pytest.param(ANNOTATED, Disposal.RELEASE, id="modified in its annotations"),
        pytest.param(FAILED, Disposal.FAIL, id="failed"),
        pytest.param(NOT_HERE, Disposal.ELSEWHERE, id="undeliverable here"),
        pytest.param(FAILED_HERE, Disposal.FAIL_ELSEWHERE, id="failed and undeliverable here"),
    ],
)
def test_an_outcome_disposes_of_a_message(state: Outcome, expected: Disposal) -> None:
    assert disposal(state) is expected


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(
    "state",
    [
        pytest.param(None, id="no state"),
        pytest.param(Received(section_number=0, section_offset=0), id="received"),
    ],
)
def test_settled_without_an_outcome_is_the_default_outcome(state: DeliveryState | None) -> None:
    broker = Broker()
    broker.fill()
    client = take_one(broker, source=Source(address="q", default_outcome=FAILED))
    client.send(Disposition(first=0, state=state))
    assert deliveries(client) == [1]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(Declared(b"t"), id="declared"),
        pytest.param(TransactionalState(txn_id=b"t", outcome=ACCEPTED), id="in a transaction"),
    ],
)
def test_what_belongs_to_a_transaction_is_refused(state: Declared | TransactionalState) -> None:
    with pytest.raises(LinkFault, match="no outcome"):
        disposal(state)


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(
    ("default", "expected"),
    [
        pytest.param(None, Disposal.RELEASE, id="none is named"),
        pytest.param(RELEASED, Disposal.RELEASE, id="released"),
        pytest.param(ACCEPTED, Disposal.REMOVE, id="accepted"),
        pytest.param(Rejected(), Disposal.DEAD_LETTER, id="rejected"),
        pytest.param(Modified(), Disposal.RELEASE, id="modified in no way"),
        pytest.param(FAILED, Disposal.COUNT, id="failed: counted, not held against it"),
        pytest.param(NOT_HERE, Disposal.RELEASE, id="undeliverable at a link that is gone"),
        pytest.param(FAILED_HERE, Disposal.COUNT, id="failed at a link that is gone"),
    ],
)
def test_without_an_outcome_the_default_one_counts(
    default: Outcome | None, expected: Disposal
) -> None:
    assert abandonment(default) is expected


# -- as clients see it


def take_one(
    broker: Broker, *, rcv_settle_mode: int = RCV_FIRST, source: Source | None = None
) -> Client:
    """Return a client that holds the message `0`, and has credit for more."""
    client = broker.session()
    client.attach_receiver(
        credit=10, rcv_settle_mode=rcv_settle_mode, source=source or Source(address="q")
    )
    client.expect_deliveries(b"0")
    return client


def deliveries(client: Client) -> list[int]:
    """Return the delivery-counts of all transfers received; check that nothing else came."""
    counts = []
    for body in client.bodies():
        assert isinstance(body, Transfer)
        counts.append(delivery_count(body))
    return counts


def delivery_count(transfer: Transfer) -> int:
    """Return the delivery-count in the header of a transfer, 0 if the header has none."""
    field = header_of(transfer.payload)[4]
    return int(field.value) if isinstance(field, UInt) else 0


NOWHERE = list[int]()


@pytest.mark.requirement("RCV-01", "RCV-02")
@pytest.mark.parametrize(
    ("state", "here", "elsewhere", "dead"),
    [
        pytest.param(ACCEPTED, NOWHERE, NOWHERE, NOWHERE, id="accepted"),
        pytest.param(RELEASED, [0], NOWHERE, NOWHERE, id="released"),
        pytest.param(Rejected(), NOWHERE, NOWHERE, [0], id="rejected"),
        pytest.param(Modified(), [0], NOWHERE, NOWHERE, id="modified in no way"),
        pytest.param(ANNOTATED, [0], NOWHERE, NOWHERE, id="modified in its annotations"),
        pytest.param(FAILED, [1], NOWHERE, NOWHERE, id="failed"),
        pytest.param(NOT_HERE, NOWHERE, [0], NOWHERE, id="undeliverable here"),
        pytest.param(FAILED_HERE, NOWHERE, [1], NOWHERE, id="failed, undeliverable here"),
        pytest.param(
            Received(section_number=0, section_offset=0), [0], NOWHERE, NOWHERE, id="received"
        ),
        pytest.param(None, [0], NOWHERE, NOWHERE, id="settled without a state"),
    ],
)
def test_where_a_message_goes_next_and_what_its_header_says(
    state: DeliveryState | None, here: list[int], elsewhere: list[int], dead: list[int]
) -> None:
    broker = Broker()
    broker.fill()
    client = take_one(broker)
    client.send(Disposition(first=0, state=state))
    assert deliveries(client) == here
    other = broker.session("other")
    other.attach_receiver(credit=10)
    assert deliveries(other) == elsewhere
    undertaker = broker.session("undertaker")
    undertaker.attach_receiver("DLQ", credit=10)
    assert deliveries(undertaker) == dead


@pytest.mark.requirement("RCV-02")
def test_released_messages_return_to_their_places() -> None:
    broker = Broker()
    broker.fill(count=5)
    client = broker.session()
    client.attach_receiver(credit=3)
    client.expect_deliveries(b"0", b"1", b"2")
    client.send(Disposition(first=2, state=RELEASED), Disposition(first=0, state=RELEASED))
    client.flow(handle=0, credit=4, delivery_count=3)
    client.expect_deliveries(b"0", b"2", b"3", b"4")


def test_one_disposition_may_speak_of_many_deliveries() -> None:
    broker = Broker()
    broker.fill(count=5)
    client = broker.session()
    client.attach_receiver(credit=5)
    client.expect_deliveries(b"0", b"1", b"2", b"3", b"4")
    client.send(Disposition(first=1, last=3, state=RELEASED))
    assert (broker.queue().backlogs.waiting, broker.queue().state.acquired) == (3, 2)
    client.flow(handle=0, credit=3, delivery_count=5)
    client.expect_deliveries(b"1", b"2", b"3")


@pytest.mark.parametrize(
    "dispositions",
    [
        pytest.param([Disposition(first=0), Disposition(first=0)], id="settled twice"),
        pytest.param([Disposition(first=0), Disposition(first=0, state=RELEASED)], id="otherwise"),
        pytest.param([Disposition(first=0), Disposition(first=0, last=5)], id="in a range"),
        pytest.param([Disposition(first=0), Disposition(first=7)], id="never sent"),
    ],
)
def test_what_is_settled_already_is_not_settled_again(dispositions: list[Disposition]) -> None:
    broker = Broker()
    broker.fill()
    client = take_one(broker)
    client.send(*dispositions)
    client.expect_nothing()
    assert broker.stats.acknowledged == 1
    assert (broker.queue().backlogs.waiting, broker.queue().state.acquired) == (0, 0)


def test_a_receiver_that_settles_second_hears_that_we_have_settled() -> None:
    broker = Broker()
    broker.fill()
    client = take_one(broker, rcv_settle_mode=RCV_SECOND)
    client.send(Disposition(first=0, state=Rejected(), settled=False))
    answer = client.expect_last(Disposition)
    assert (answer.role, answer.first, answer.last, answer.settled) == (SENDER, 0, 0, True)
    assert isinstance(answer.state, Rejected)
    assert broker.queue("DLQ").backlogs.waiting == 1


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(None, id="nothing"),
        pytest.param(Received(section_number=0, section_offset=0), id="received"),
    ],
)
def test_an_unsettled_state_that_is_no_outcome_changes_nothing(state: DeliveryState) -> None:
    broker = Broker()
    broker.fill()
    client = take_one(broker)
    client.send(Disposition(first=0, state=state, settled=False))
    client.expect_nothing()
    assert broker.queue().state.acquired == 1
    client.send(Disposition(first=0))
    assert broker.queue().state.acquired == 0


def test_a_state_that_is_no_outcome_detaches_and_loses_nothing() -> None:
    broker = Broker()
    broker.fill()
    client = take_one(broker)
    client.send(Disposition(first=0, state=Declared(b"t")))
    client.expect_detach("amqp:not-allowed")
    assert (broker.queue().backlogs.waiting, broker.queue().state.acquired) == (1, 0)


@pytest.mark.requirement("RCV-02")
def test_annotations_in_modified_are_added_to_the_message() -> None:
    broker = Broker()
    broker.fill()
    client = take_one(broker)
    client.send(Disposition(first=0, state=ANNOTATED))
    again = client.expect_last(Transfer)
    assert b"x-opt1" in again.payload
    assert broker.queue().state.bytes == again_size(again)


def again_size(transfer: Transfer) -> int:
    """Return the size of the message as the queue counts it, in bytes without the header."""
    return len(transfer.payload) - transfer.payload.index(b"\x00\x53\x72")


def test_annotations_that_cannot_be_read_end_the_link_and_keep_the_message() -> None:
    broker = Broker()
    broker.fill()
    client = take_one(broker)
    twice = b"\xc1\x09\x04\xa3\x01a\x41\xa3\x01a\x41"
    client.send(Disposition(first=0, state=Modified(message_annotations=twice)))
    detach = client.expect_last(Detach)
    assert detach.error is not None
    assert detach.error.condition == "amqp:decode-error"
    assert (broker.queue().backlogs.waiting, broker.queue().state.acquired) == (1, 0)


def test_a_consumer_is_not_to_blame_for_the_annotations_of_a_producer() -> None:
    broker = Broker()
    sender = broker.session("sender")
    sender.attach_sender()
    sender.transfer(payload=bytes.fromhex("005372c10904a3016141a3016141 005375a00130"))
    client = take_one(broker)
    client.send(Disposition(first=0, state=ANNOTATED))
    assert b"x-opt1" not in client.expect_last(Transfer).payload


def test_annotations_of_a_durable_message_are_kept() -> None:
    broker = Broker()
    sender = broker.session("sender")
    sender.attach_sender()
    sender.transfer(payload=message(b"0", durable=True))
    client = take_one(broker)
    client.send(Disposition(first=0, state=ANNOTATED))
    (kept,) = asyncio.run(stored_messages(broker.store, "q"))
    assert b"x-opt1" in kept.encoded


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(RELEASED, id="released"),
        pytest.param(FAILED, id="failed"),
        pytest.param(NOT_HERE, id="undeliverable here"),
    ],
)
def test_a_message_that_another_link_has_had_has_no_first_acquirer(state: DeliveryState) -> None:
    """first-acquirer true: "has not been acquired by any other link" (core 3.2.1)."""
    broker = Broker()
    broker.fill()
    client = broker.session()
    client.attach_receiver(credit=1)
    (sent,) = client.expect_deliveries(b"0")
    assert header_of(sent.payload)[3] is True
    client.send(Disposition(first=0, state=state))
    other = broker.session("other")
    other.attach_receiver(credit=1)
    (sent,) = other.expect_deliveries(b"0")
    assert header_of(sent.payload)[3] in (None, False)


# -- too many failures


@pytest.mark.requirement("RCV-02")
@pytest.mark.parametrize(
    ("policy", "dead", "dropped"),
    [
        pytest.param(AddressPolicy(max_delivery_count=3), 1, 0, id="to the dead letters"),
        pytest.param(AddressPolicy(max_delivery_count=3, dead_letter=""), 0, 1, id="nowhere to go"),
    ],
)
def test_a_message_that_fails_too_often_is_taken_out(
    policy: AddressPolicy, dead: int, dropped: int
) -> None:
    broker = Broker(policy=policy)
    broker.fill()
    client = take_one(broker)
    for attempt in range(1, 3):
        client.send(Disposition(first=attempt - 1, state=FAILED))
        assert deliveries(client) == [attempt]
    client.send(Disposition(first=2, state=FAILED))
    client.expect_nothing()
    assert (broker.stats.dead_lettered, broker.stats.dropped) == (dead, dropped)
    assert broker.queue().backlogs.waiting == 0


@pytest.mark.requirement("RCV-02")
@pytest.mark.parametrize(
    "state", [pytest.param(FAILED, id="failed"), pytest.param(FAILED_HERE, id="failed here")]
)
def test_without_a_limit_a_message_may_fail_for_ever(state: Modified) -> None:
    broker = Broker(policy=AddressPolicy(max_delivery_count=0))
    broker.fill()
    for attempt in range(50):
        client = broker.session()
        client.attach_receiver(credit=1)
        assert deliveries(client) == [attempt]
        client.send(Disposition(first=0, state=state))
        client.hang_up()
    assert broker.stats.dead_lettered == 0


@pytest.mark.requirement("RCV-02")
def test_a_dead_letter_keeps_its_bytes_and_begins_anew() -> None:
    broker = Broker(policy=AddressPolicy(max_delivery_count=1))
    broker.fill()
    client = take_one(broker)
    client.send(Disposition(first=0, state=FAILED))
    client.expect_nothing()
    undertaker = broker.session("undertaker")
    undertaker.attach_receiver("DLQ", credit=1)
    (found,) = undertaker.expect_deliveries(b"0")
    assert delivery_count(found) == 0


@pytest.mark.requirement("RCV-02")
def test_what_is_rejected_at_the_dead_letters_is_gone() -> None:
    broker = Broker()
    broker.fill("DLQ")
    client = broker.session()
    client.attach_receiver("DLQ", credit=2)
    client.expect_deliveries(b"0")
    client.send(Disposition(first=0, state=Rejected()))
    client.expect_nothing()
    assert (broker.stats.dead_lettered, broker.stats.dropped) == (0, 1)


@pytest.mark.requirement("RCV-02")
def test_what_is_rejected_at_a_temporary_queue_is_gone() -> None:
    broker = Broker()
    client = broker.session()
    source = Source(dynamic=True, capabilities=["temporary-queue"])
    answer = client.attach_receiver(None, credit=2, source=source)
    assert answer.source is not None
    client.attach_sender(answer.source.address, handle=1)
    client.transfer(0, b"0", settled=True, handle=1)
    client.expect_deliveries(b"0")
    client.send(Disposition(first=0, state=Rejected()))
    client.expect_nothing()
    assert (broker.stats.dead_lettered, broker.stats.dropped) == (0, 1)


# -- release loops


@pytest.mark.requirement("RCV-08")
def test_a_link_that_releases_a_message_ten_times_has_to_wait_for_it() -> None:
    broker = Broker()
    broker.fill()
    client = broker.session()
    client.attach_receiver(credit=100)
    for number in range(10):
        client.expect_deliveries(b"0")
        client.send(Disposition(first=number, state=RELEASED))
    for pause_ms in (100, 200, 400):
        client.expect_nothing()
        broker.advance(pause_ms - 1)
        client.expect_nothing()
        broker.advance(1)
        client.expect_deliveries(b"0")
        number += 1
        client.send(Disposition(first=number, state=RELEASED))
    other = broker.session("other")
    other.attach_receiver(credit=1)
    other.expect_deliveries(b"0")


# -- no outcome at all


@pytest.mark.requirement("RCV-01", "RCV-08")
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
@pytest.mark.parametrize(
    ("default", "count", "dead"),
    [
        pytest.param(None, 0, 0, id="no default"),
        pytest.param(FAILED, 1, 0, id="default failed"),
        pytest.param(ACCEPTED, -1, 0, id="default accepted"),
        pytest.param(Rejected(), -1, 2, id="default rejected"),
    ],
)
def test_an_end_gives_every_unsettled_delivery_the_default_outcome(
    default: Outcome | None, count: int, dead: int, ending: Ending
) -> None:
    """Messages return in order with the new delivery-count; the limit on it does not apply."""
    broker = Broker(policy=AddressPolicy(max_delivery_count=1))
    broker.fill(count=3)
    client = broker.session()
    client.attach_receiver(credit=3, source=Source(address="q", default_outcome=default))
    client.expect_deliveries(b"0", b"1", b"2")
    client.send(Disposition(first=1))
    ending(client)
    other = broker.session("other")
    other.attach_receiver(credit=9)
    found = [body for body in other.bodies() if isinstance(body, Transfer)]
    assert [(body_of(each.payload), delivery_count(each)) for each in found] == (
        [] if count < 0 else [(b"0", count), (b"2", count)]
    )
    assert broker.stats.dead_lettered == dead


@pytest.mark.requirement("RCV-08")
def test_the_answer_repeats_the_default_outcome() -> None:
    client = Broker().session()
    answer = client.attach(attach_receiver(source=Source(address="q", default_outcome=FAILED)))
    assert answer.source is not None
    kept = answer.source.default_outcome
    assert isinstance(kept, Modified)
    assert kept.delivery_failed
    assert answer.source.outcomes == [
        "amqp:accepted:list",
        "amqp:rejected:list",
        "amqp:released:list",
        "amqp:modified:list",
    ]


def test_a_settled_default_outcome_needs_no_answer() -> None:
    """Settling without a state applies the default outcome (core 2.6.12, 3.5.3)."""
    broker = Broker(policy=AddressPolicy(max_delivery_count=1))
    broker.fill()
    client = broker.session()
    client.attach_receiver(credit=2, source=Source(address="q", default_outcome=FAILED))
    client.expect_deliveries(b"0")
    client.send(Disposition(first=0, state=None))
    assert deliveries(client) == [1]
