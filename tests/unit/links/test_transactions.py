"""The transactions of a connection: their number and size, and one timer for all of them."""

import pytest

from broker.amqp.limits import Limits
from broker.amqp.outcomes import Accepted, Rejected
from broker.amqp.performatives import Detach
from tests.support.broker import Broker
from tests.support.transactions import COORDINATOR_HANDLE, Controller, condition_of, declare

pytestmark = [pytest.mark.requirement("RCV-06"), pytest.mark.attack("R5")]


def sending(**limits: int) -> Controller:
    """Return a controller with a link to `q` at handle 0, on a broker with these limits."""
    chosen = Limits(idle_time_out_ms=0, **limits)
    controller = Controller(Broker(limits=chosen))
    controller.client.attach_sender()
    return controller


def test_a_connection_has_only_so_many_transactions() -> None:
    controller = sending(transactions_max=2)
    first = controller.declare()
    controller.declare()
    assert condition_of(controller.command(declare())) == "amqp:resource-limit-exceeded"
    controller.roll_back(first)
    controller.declare()
    other = Controller(controller.client.broker, "other")
    other.declare()


def test_a_transaction_has_only_so_many_operations() -> None:
    controller = sending(transaction_operations_max=2)
    txn_id = controller.declare()
    controller.post(txn_id)
    controller.post(txn_id)
    for _ in range(2):
        refused = controller.try_to_post(txn_id)
        assert isinstance(refused, Rejected)
        assert condition_of(refused) == "amqp:resource-limit-exceeded"
    assert controller.fail_to_commit(txn_id) == "amqp:resource-limit-exceeded"
    assert controller.client.broker.queue().backlogs.waiting == 0
    txn_id = controller.declare()
    controller.post(txn_id)
    controller.commit(txn_id)


def test_a_transaction_holds_only_so_many_bytes() -> None:
    controller = sending(transaction_bytes_max=1000)
    txn_id = controller.declare()
    controller.post(txn_id, b"x" * 500)
    assert isinstance(controller.try_to_post(txn_id, b"x" * 500), Rejected)
    assert controller.fail_to_commit(txn_id) == "amqp:resource-limit-exceeded"


def test_no_limit_is_none() -> None:
    controller = sending(
        transactions_max=0,
        transaction_operations_max=0,
        transaction_bytes_max=0,
        transaction_timeout_ms=0,
    )
    txn_id = controller.declare()
    controller.post(txn_id, b"x" * 10_000)
    controller.client.broker.advance(10_000_000)
    assert isinstance(controller.try_to_post(txn_id), Accepted)
    controller.commit(txn_id)


def test_deadlines_take_one_place_in_the_timer_queue() -> None:
    controller = sending(transaction_timeout_ms=1000)
    broker = controller.client.broker
    for _ in range(20):
        txn_id = controller.declare()
        controller.post(txn_id)
        controller.commit(txn_id)
        broker.advance(40)
    slow = controller.declare()
    controller.post(slow)
    deadlines = 0
    while (
        left := int(broker.router.timer_queue.next_deadline_ms()) - broker.clock.now_ms()
    ) < 5000:
        deadlines += 1
        broker.advance(left)
        if deadlines == 1:
            controller.client.expect_nothing()
    assert deadlines == 2, "that of the first, which is over, and that of the last"
    controller.client.expect_detach("amqp:transaction:rollback", handle=COORDINATOR_HANDLE)


def test_one_that_is_late_takes_the_others_of_its_coordinator_along() -> None:
    controller = sending(transaction_timeout_ms=1000)
    broker = controller.client.broker
    late, early = controller.declare(), controller.declare()
    controller.post(late)
    broker.advance(500)
    controller.post(early)
    broker.advance(500)
    controller.client.expect_detach("amqp:transaction:rollback", handle=COORDINATOR_HANDLE)
    controller.client.send(Detach(handle=COORDINATOR_HANDLE, closed=True))
    broker.advance(500)
    controller.client.expect_nothing()
    assert broker.stats.rolled_back == 2


def test_a_connection_that_has_gone_is_not_called_back() -> None:
    controller = sending(transaction_timeout_ms=1000)
    broker = controller.client.broker
    controller.post(controller.declare())
    controller.client.hang_up()
    broker.advance(1000)
    assert broker.watcher.errors == []
    assert broker.stats.rolled_back == 1
