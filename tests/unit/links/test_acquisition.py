"""Messages that a link acquires within transactions (core 4.4.3): flows, frames, limits."""

from __future__ import annotations

import pytest

from broker.amqp.limits import Limits
from broker.amqp.outcomes import (
    ACCEPTED,
    Accepted,
    Released,
)
from broker.amqp.performatives import (
    SENDER,
    SND_SETTLED,
    Detach,
    Flow,
)
from broker.amqp.terminus import COPY, Source
from broker.routing.addresses.policy import AddressPolicy
from tests.support.acquisitions import (
    ROLLBACK,
    UNKNOWN,
    acquired,
    controller_of,
    counts,
    filled,
    grant,
    put,
    state_of,
    told,
    waiting,
)
from tests.support.broker import Broker
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    body_of,
    flow,
)
from tests.support.subscriptions import looking_up, subscribe
from tests.support.transactions import (
    COORDINATOR_HANDLE,
    Controller,
    condition_of,
    discharge,
)

pytestmark = pytest.mark.requirement("RCV-06")


# -- the flow that names a transaction


def test_deliveries_name_the_transaction_that_acquired_them() -> None:
    controller = filled(3)
    txn_id = controller.declare()
    grant(controller, txn_id, 2)
    acquired(controller, txn_id, b"0", b"1")
    assert counts(controller) == (1, 2)


@pytest.mark.parametrize(
    ("txn_id", "condition"),
    [
        pytest.param(b"\xff no such one", UNKNOWN, id="unknown"),
        pytest.param("text", "amqp:invalid-field", id="a string"),
        pytest.param(7, "amqp:invalid-field", id="a number"),
    ],
)
def test_a_flow_names_an_open_transaction(txn_id: object, condition: str) -> None:
    controller = filled(1)
    grant(controller, txn_id, 1)
    controller.client.expect_detach(condition)
    assert counts(controller) == (1, 0)


def test_links_that_acquire_nothing_refuse_transactions() -> None:
    broker = Broker()
    subscriber = broker.session("client")
    subscribe(subscriber, "durable")
    subscriber.hang_up()
    controller = Controller(broker)
    controller.client.attach(looking_up(handle=0))
    grant(controller, controller.declare(), 1)
    controller.client.expect_detach("amqp:not-implemented")


def test_a_browser_acquires_nothing() -> None:
    controller = filled(1, source=Source(address="q", distribution_mode=COPY))
    txn_id = controller.declare()
    grant(controller, txn_id, 1)
    (copy,) = controller.client.expect_deliveries(b"0")
    assert copy.state is None
    assert counts(controller) == (1, 0)


def test_a_flow_without_the_entry_changes_nothing() -> None:
    controller = filled(3)
    txn_id = controller.declare()
    grant(controller, txn_id, 1)
    acquired(controller, txn_id, b"0")
    controller.client.flow(handle=0, credit=1, delivery_count=1)
    acquired(controller, txn_id, b"1")
    grant(controller, None, 1, count=2)
    (plain,) = controller.client.expect_deliveries(b"2")
    assert plain.state is None


def test_flows_of_the_broker_name_the_transaction() -> None:
    controller = filled(1)
    txn_id = controller.declare()
    grant(controller, txn_id, 5, drain=True)
    client = controller.client
    (delivery,) = [client.expect(Transfer)]
    assert state_of(delivery) == txn_id
    drained = client.expect_last(Flow)
    assert (drained.delivery_count, drained.link_credit, drained.drain) == (5, 0, True)
    assert drained.properties == {"txn-id": txn_id}
    controller.transfer(discharge(txn_id, fail=True), COORDINATOR_HANDLE)
    client.bodies()
    client.flow(handle=0, credit=0, delivery_count=5, echo=True)
    assert client.expect_last(Flow).properties == {}


def test_the_discharge_clears_the_transaction_and_leaves_the_credit() -> None:
    controller = filled(1)
    txn_id = controller.declare()
    grant(controller, txn_id, 9)
    acquired(controller, txn_id, b"0")
    controller.commit(txn_id)
    put(controller.client.broker, b"later")
    (plain,) = controller.client.expect_deliveries(b"later")
    assert plain.state is None


def test_the_time_of_a_transaction_begins_with_its_first_message() -> None:
    broker = Broker(limits=Limits(transaction_timeout_ms=1000, idle_time_out_ms=0))
    controller = controller_of(broker)
    txn_id = controller.declare()
    grant(controller, txn_id, 2)
    broker.advance(5000)
    put(broker, b"x")
    acquired(controller, txn_id, b"x")
    broker.advance(999)
    controller.client.expect_nothing()
    broker.advance(1)
    controller.client.expect_detach(ROLLBACK, handle=COORDINATOR_HANDLE)
    settled = controller.client.expect(Disposition)
    assert (settled.role, settled.settled) == (SENDER, True)
    assert isinstance(settled.state, Released)
    (again,) = controller.client.expect_deliveries(b"x")
    assert again.state is None


# -- links that send settled


def test_what_is_sent_settled_is_removed_by_the_commit_and_returns_by_a_rollback() -> None:
    for fail in (False, True):
        controller = filled(2, snd_settle_mode=SND_SETTLED)
        txn_id = controller.declare()
        grant(controller, txn_id, 2)
        came = acquired(controller, txn_id, b"0", b"1")
        assert [each.settled for each in came] == [True, True]
        assert counts(controller) == (0, 2)
        controller.transfer(discharge(txn_id, fail=fail), COORDINATOR_HANDLE)
        assert told(controller.client) == []
        assert waiting(controller) == ([(b"0", 1), (b"1", 1)] if fail else [])
        assert counts(controller)[1] == 0


# -- messages that take several frames


def long_controller(window: int) -> tuple[Controller, bytes]:
    """Return a controller whose link gets a message of three frames, with that window."""
    broker = Broker(policy=AddressPolicy())
    put(broker, b"x" * 1200)
    client = broker.session(max_frame_size=512)
    controller = Controller(broker, client=client)
    client.attach(attach_receiver("q"))
    txn_id = controller.declare()
    client.flow(
        handle=0,
        credit=1,
        delivery_count=0,
        incoming_window=window,
        properties={"txn-id": txn_id},
    )
    return controller, txn_id


def test_a_long_message_is_acquired_with_its_first_frame() -> None:
    controller, txn_id = long_controller(100)
    came = [each for each in controller.client.bodies() if isinstance(each, Transfer)]
    assert len(came) == 3
    assert [each.more for each in came] == [True, True, False]
    assert state_of(came[0]) == txn_id
    assert body_of(b"".join(each.payload for each in came)) == b"x" * 1200
    controller.transfer(discharge(txn_id, fail=True), COORDINATOR_HANDLE)
    assert counts(controller) == (1, 0)


def test_a_rollback_aborts_a_message_of_which_a_part_was_sent() -> None:
    controller, txn_id = long_controller(1)
    client = controller.client
    client.expect(Transfer)
    number = controller.transfer(discharge(txn_id, fail=True), COORDINATOR_HANDLE)
    client.expect_nothing()
    assert counts(controller) == (1, 0)
    client.send(flow(next_incoming_id=1, incoming_window=10, next_outgoing_id=2))
    assert client.expect(Transfer).aborted
    assert isinstance(controller.answer(number), Accepted)
    grant(controller, None, 1, count=1)
    came = [each for each in client.bodies() if isinstance(each, Transfer)]
    assert body_of(b"".join(each.payload for each in came)) == b"x" * 1200


def test_a_rollback_is_answered_when_the_link_of_an_unfinished_message_ends() -> None:
    controller, txn_id = long_controller(1)
    controller.client.expect(Transfer)
    number = controller.transfer(discharge(txn_id, fail=True), COORDINATOR_HANDLE)
    controller.client.expect_nothing()
    controller.client.send(Detach(handle=0, closed=True))
    assert isinstance(controller.answer(number), Accepted)
    controller.client.expect(Detach)


def test_a_commit_lets_the_rest_of_a_message_go_on() -> None:
    controller, txn_id = long_controller(1)
    client = controller.client
    first = client.expect(Transfer)
    controller.commit(txn_id)
    client.send(flow(next_incoming_id=1, incoming_window=10, next_outgoing_id=2))
    rest = [each for each in client.bodies() if isinstance(each, Transfer)]
    assert [each.aborted for each in rest] == [False, False]
    assert body_of(first.payload + b"".join(each.payload for each in rest)) == b"x" * 1200
    client.send(Disposition(first=0, settled=True, state=ACCEPTED))
    assert counts(controller) == (0, 0)


# -- limits


def test_acquisitions_count_towards_the_limit_of_a_transaction() -> None:
    broker = Broker(limits=Limits(transaction_operations_max=2, idle_time_out_ms=0))
    broker.fill(count=3)
    controller = controller_of(broker)
    txn_id = controller.declare()
    grant(controller, txn_id, 2)
    acquired(controller, txn_id, b"0", b"1")
    controller.retire(txn_id, 0, ACCEPTED, last=1)
    grant(controller, txn_id, 1, count=2)
    acquired(controller, txn_id, b"2")
    number = controller.transfer(discharge(txn_id), COORDINATOR_HANDLE)
    dispositions = [each for each in controller.client.bodies() if isinstance(each, Disposition)]
    (answer,) = [each for each in dispositions if each.role is not SENDER]
    assert int(answer.first) == number
    assert condition_of(answer.state) == "amqp:resource-limit-exceeded"
    assert [body for body, _ in waiting(controller)] == [b"0", b"1", b"2"]
