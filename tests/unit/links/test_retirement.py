"""Outcomes within a transaction: settled at once, as JMS clients do, or only at its end."""

import pytest

from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Accepted,
    DeliveryState,
    Error,
    Modified,
    Outcome,
    Rejected,
)
from broker.amqp.performatives import SENDER, Detach, Flow
from broker.amqp.terminus import COPY, Coordinator, Source
from tests.support.broker import Broker
from tests.support.frames import Disposition, attach_receiver, attach_sender, header_of
from tests.support.transactions import COORDINATOR_HANDLE, Controller, declare, discharge

pytestmark = pytest.mark.requirement("RCV-06")

FAILED = Modified(delivery_failed=True)
HERE = Modified(undeliverable_here=True)
FAILED_HERE = Modified(delivery_failed=True, undeliverable_here=True)


def receiving(count: int = 1, *, source: Source | None = None) -> Controller:
    """Return a controller that holds `count` messages of `q`, by a link at handle 0."""
    broker = Broker()
    broker.fill(count=count)
    controller = Controller(broker)
    controller.client.attach_receiver(credit=count, source=source)
    controller.client.expect_deliveries(*[b"%d" % number for number in range(count)])
    return controller


def counts(controller: Controller) -> tuple[int, int]:
    queue = controller.client.broker.queue()
    return int(queue.backlogs.waiting), int(queue.state.acquired)


def delivery_count(controller: Controller) -> int:
    """Return the delivery-count of the one message in `q`, as a browser sees it."""
    browser = controller.client.broker.session("browser")
    source = Source(address="q", distribution_mode=COPY)
    browser.attach_receiver(source=source, credit=1)
    (transfer,) = browser.expect_deliveries(b"0")
    header = header_of(transfer.payload)
    browser.hang_up()
    return getattr(header[4], "value", 0) if len(header) > 4 else 0


# -- settled at once

COMMITTED = [
    pytest.param(ACCEPTED, (0, 0), None, id="accepted"),
    pytest.param(Rejected(), (0, 0), None, id="rejected"),
    pytest.param(RELEASED, (1, 0), 0, id="released"),
    pytest.param(FAILED, (1, 0), 1, id="failed"),
    pytest.param(HERE, (1, 0), 0, id="not here again"),
    pytest.param(FAILED_HERE, (1, 0), 1, id="failed, and not here again"),
    pytest.param(None, (1, 0), 0, id="no outcome, which is the default-outcome"),
]


@pytest.mark.parametrize(("outcome", "left", "count"), COMMITTED)
def test_an_outcome_counts_from_the_commit_on(
    outcome: Outcome | None, left: tuple[int, int], count: int | None
) -> None:
    controller = receiving()
    txn_id = controller.declare()
    controller.retire(txn_id, 0, outcome)
    controller.client.expect_nothing()
    assert counts(controller) == (0, 1)
    controller.commit(txn_id)
    assert counts(controller) == left
    if count is not None:
        assert delivery_count(controller) == count


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(
    ("outcome", "count"),
    [
        pytest.param(ACCEPTED, 1, id="accepted"),
        pytest.param(Rejected(), 1, id="rejected"),
        pytest.param(RELEASED, 0, id="released"),
        pytest.param(FAILED, 1, id="failed"),
        pytest.param(HERE, 0, id="not here again"),
        pytest.param(FAILED_HERE, 1, id="failed, and not here again"),
        pytest.param(None, 0, id="no outcome"),
    ],
)
def test_a_rollback_returns_the_message(outcome: Outcome | None, count: int) -> None:
    controller = receiving()
    txn_id = controller.declare()
    controller.retire(txn_id, 0, outcome)
    controller.roll_back(txn_id)
    assert counts(controller) == (1, 0)
    assert delivery_count(controller) == count


def test_the_default_outcome_is_that_of_the_source() -> None:
    controller = receiving(source=Source(address="q", default_outcome=ACCEPTED))
    txn_id = controller.declare()
    controller.retire(txn_id, 0, None)
    controller.commit(txn_id)
    assert counts(controller) == (0, 0)


def test_the_choreography_of_a_jms_rollback() -> None:
    """Two messages were received and two prefetched: all are redelivered in order (10.4, 13.21)."""
    controller = receiving(4)
    client = controller.client
    txn_id = controller.declare()
    controller.retire(txn_id, 0)
    controller.retire(txn_id, 1)
    client.flow(handle=0, delivery_count=4, credit=0, drain=True)
    client.expect(Flow)
    controller.roll_back(txn_id)
    client.send(Disposition(first=2, state=RELEASED), Disposition(first=3, state=RELEASED))
    client.flow(handle=0, delivery_count=4, credit=4)
    client.expect_deliveries(b"0", b"1", b"2", b"3")


def test_annotations_come_with_the_commit() -> None:
    controller = receiving()
    annotations = bytes.fromhex("c1 0b 02 a3 03 782d61 a1 03 616263")
    txn_id = controller.declare()
    controller.retire(txn_id, 0, Modified(message_annotations=annotations))
    controller.commit(txn_id)
    other = controller.client.broker.session("other")
    other.attach_receiver(credit=1)
    (transfer,) = other.expect_deliveries(b"0")
    assert b"x-a" in transfer.payload


def test_annotations_that_cannot_be_added_doom_the_transaction() -> None:
    controller = receiving()
    txn_id = controller.declare()
    twice = bytes.fromhex("c1 09 04 a3 01 61 40 a3 01 61 40")
    controller.retire(txn_id, 0, Modified(message_annotations=twice))
    detach = controller.client.expect(Detach)
    assert detach.error is not None
    assert controller.fail_to_commit(txn_id) == detach.error.condition
    assert counts(controller) == (1, 0)


@pytest.mark.requirement("RCV-02")
def test_a_rejection_says_why_from_the_commit_on() -> None:
    controller = receiving()
    txn_id = controller.declare()
    error = Error(condition="app:bad", description="no such customer")
    controller.retire(txn_id, 0, Rejected(error))
    assert "DLQ" not in controller.client.broker.router.queues
    controller.commit(txn_id)
    reader = controller.client.broker.session("reader")
    reader.attach_receiver("DLQ", credit=1)
    (transfer,) = reader.expect_deliveries(b"0")
    assert b"no such customer" in transfer.payload


# -- transactions that are not open


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(
    ("settled", "count"),
    [pytest.param(True, 1, id="settled"), pytest.param(False, 0, id="unsettled")],
)
def test_an_outcome_within_no_transaction_detaches(settled: bool, count: int) -> None:
    """A settled delivery is treated as rolled back; an unsettled one ends with its link."""
    controller = receiving()
    txn_id = controller.declare()
    controller.commit(txn_id)
    controller.retire(txn_id, 0, settled=settled)
    controller.client.expect_detach("amqp:transaction:unknown-id")
    assert counts(controller) == (1, 0)
    assert delivery_count(controller) == count


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_a_range_within_no_transaction_detaches_once(settled: bool) -> None:
    controller = receiving(3)
    controller.retire(b"unknown", 0, last=2, settled=settled)
    controller.client.expect_detach("amqp:transaction:unknown-id")
    assert counts(controller) == (3, 0)
    assert controller.client.broker.watcher.errors == []


def test_an_outcome_that_comes_too_late_dooms_its_transaction() -> None:
    """The message is back in the queue: the late outcome must not acknowledge it."""
    controller = receiving()
    txn_id = controller.declare()
    controller.client.send(Detach(handle=0, closed=True))
    controller.client.expect_detach()
    controller.retire(txn_id, 0)
    assert controller.fail_to_commit(txn_id) == "amqp:illegal-state"
    assert counts(controller) == (1, 0)


# -- settled at the end


def settled_by_us(controller: Controller, first: int) -> DeliveryState | None:
    told = controller.client.expect(Disposition)
    assert (told.role, told.first, told.settled) == (SENDER, first, True)
    return told.state


def test_a_commit_settles_what_was_not() -> None:
    controller = receiving(2)
    txn_id = controller.declare()
    controller.retire(txn_id, 0, last=1, settled=False)
    controller.client.expect_nothing()
    number = controller.transfer(discharge(txn_id), COORDINATOR_HANDLE)
    for first in (0, 1):
        assert isinstance(settled_by_us(controller, first), Accepted)
    assert controller.answer(number) is ACCEPTED
    assert counts(controller) == (0, 0)
    controller.client.send(Disposition(first=0, last=1))
    controller.client.expect_nothing()


@pytest.mark.parametrize("outcome", [RELEASED, FAILED, Rejected()], ids=["r", "m", "x"])
def test_a_commit_settles_with_the_outcome(outcome: Outcome) -> None:
    controller = receiving()
    txn_id = controller.declare()
    controller.retire(txn_id, 0, outcome, settled=False)
    controller.transfer(discharge(txn_id), COORDINATOR_HANDLE)
    assert type(settled_by_us(controller, 0)) is type(outcome)


def test_a_rollback_leaves_what_was_not_settled_to_its_receiver() -> None:
    """The message stays acquired, and its receiver has to send another outcome (4.4.2)."""
    controller = receiving()
    txn_id = controller.declare()
    controller.retire(txn_id, 0, settled=False)
    controller.roll_back(txn_id)
    assert counts(controller) == (0, 1)
    txn_id = controller.declare()
    controller.retire(txn_id, 0)
    controller.commit(txn_id)
    assert counts(controller) == (0, 0)


def test_no_outcome_is_nothing_final_while_unsettled() -> None:
    controller = receiving()
    txn_id = controller.declare()
    controller.retire(txn_id, 0, None, settled=False)
    controller.commit(txn_id)
    assert counts(controller) == (0, 1)


@pytest.mark.parametrize(
    ("state", "left"),
    [
        pytest.param(None, (0, 1), id="nothing new"),
        pytest.param(ACCEPTED, (0, 0), id="accepted"),
        pytest.param(RELEASED, (1, 0), id="released"),
    ],
)
def test_a_receiver_may_settle_before_the_end(
    state: DeliveryState | None, left: tuple[int, int]
) -> None:
    controller = receiving()
    txn_id = controller.declare()
    controller.retire(txn_id, 0, settled=False)
    controller.client.send(Disposition(first=0, state=state))
    controller.client.expect_nothing()
    assert counts(controller) == left
    controller.commit(txn_id)
    assert counts(controller) == ((1, 0) if state is RELEASED else (0, 0))


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_a_receiver_may_change_its_mind_within_the_transaction(settled: bool) -> None:
    controller = receiving()
    txn_id = controller.declare()
    controller.retire(txn_id, 0, ACCEPTED, settled=False)
    controller.retire(txn_id, 0, RELEASED, settled=settled)
    number = controller.transfer(discharge(txn_id), COORDINATOR_HANDLE)
    if not settled:
        settled_by_us(controller, 0)
    assert controller.answer(number) is ACCEPTED
    assert counts(controller) == (1, 0)


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_one_delivery_is_part_of_one_transaction(settled: bool) -> None:
    """The coordinator of the second transaction is detached (4.4.2)."""
    controller = receiving()
    client = controller.client
    client.attach(attach_sender(name="second", handle=8, target=Coordinator()))
    client.expect(Flow)
    one = controller.declare()
    number = controller.transfer(declare(), 8)
    declared = controller.answer(number)
    controller.retire(one, 0, settled=False)
    controller.retire(getattr(declared, "txn_id", b""), 0, settled=settled)
    client.expect_detach("amqp:transaction:rollback", handle=8)
    number = controller.transfer(discharge(one), COORDINATOR_HANDLE)
    if not settled:
        settled_by_us(controller, 0)
    assert controller.answer(number) is ACCEPTED
    assert counts(controller) == (0, 0)


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "rolled back"])
def test_an_outcome_outlives_its_link(committed: bool) -> None:
    controller = receiving(3)
    txn_id = controller.declare()
    controller.retire(txn_id, 0, settled=False)
    controller.retire(txn_id, 1, settled=True)
    controller.client.send(Detach(handle=0, closed=True))
    controller.client.expect_detach()
    assert counts(controller) == (1, 2)
    if committed:
        controller.commit(txn_id)
        assert counts(controller) == (1, 0)
    else:
        controller.roll_back(txn_id)
        assert counts(controller) == (3, 0)


def test_the_connection_may_go_with_everything_open() -> None:
    controller = receiving(3)
    txn_id = controller.declare()
    controller.retire(txn_id, 0, settled=False)
    controller.retire(txn_id, 1, settled=True)
    controller.client.hang_up()
    assert counts(controller) == (3, 0)
    assert controller.client.broker.watcher.errors == []


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "rolled back"])
def test_the_queue_may_go_with_everything_open(committed: bool) -> None:
    controller = receiving(2)
    broker = controller.client.broker
    txn_id = controller.declare()
    controller.retire(txn_id, 0, settled=False)
    controller.retire(txn_id, 1, settled=True)
    broker.router.delete(broker.queue(), broker.journal.batch)
    broker.container.run_round()
    controller.client.expect_detach("amqp:resource-deleted")
    if committed:
        controller.commit(txn_id)
    else:
        controller.roll_back(txn_id)
    assert broker.watcher.errors == []
    assert "q" not in broker.router.queues


# -- browsers


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_copies_are_part_of_no_transaction(settled: bool) -> None:
    broker = Broker()
    broker.fill()
    controller = Controller(broker)
    source = Source(address="q", distribution_mode=COPY)
    controller.client.attach(attach_receiver(source=source))
    controller.client.flow(handle=0, delivery_count=0, credit=1)
    controller.client.expect_deliveries(b"0")
    txn_id = controller.declare()
    controller.retire(txn_id, 0, settled=settled)
    if not settled:
        settled_by_us(controller, 0)
    controller.client.expect_nothing()
    controller.commit(txn_id)
    assert counts(controller) == (1, 0)
