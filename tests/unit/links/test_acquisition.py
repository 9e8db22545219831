"""Messages that a link acquires within transactions (core 4.4.3, 4.4.4.3)."""

from __future__ import annotations

import pytest

from broker.amqp.limits import Limits
from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Accepted,
    DeliveryState,
    Modified,
    Outcome,
    Rejected,
    Released,
    TransactionalState,
)
from broker.amqp.performatives import (
    RCV_SECOND,
    SENDER,
    SND_SETTLED,
    Detach,
    End,
    Flow,
)
from broker.amqp.terminus import COPY, Source
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    body_of,
    flow,
    header_of,
)
from tests.support.subscriptions import looking_up, subscribe
from tests.support.transactions import (
    COORDINATOR_HANDLE,
    Controller,
    condition_of,
    discharge,
)

pytestmark = pytest.mark.requirement("RCV-06")

ROLLBACK = "amqp:transaction:rollback"
UNKNOWN = "amqp:transaction:unknown-id"
FAILED = Modified(delivery_failed=True)
HERE = Modified(undeliverable_here=True)


def controller_of(broker: Broker | None = None, **fields: object) -> Controller:
    """Return a controller with a receiving link to `q` at handle 0, without credit."""
    controller = Controller(broker or Broker())
    controller.client.attach(attach_receiver("q", **fields))  # type: ignore[arg-type]
    return controller


def filled(count: int, **fields: object) -> Controller:
    """Return the same, with `count` messages in `q`."""
    broker = Broker()
    broker.fill(count=count)
    return controller_of(broker, **fields)


def put(broker: Broker, body: bytes) -> None:
    """Send one message to `q`."""
    sender = broker.session("filler")
    sender.attach_sender("q")
    sender.transfer(body=body, settled=True)
    sender.hang_up()


def grant(
    controller: Controller,
    txn_id: object,
    credit: int,
    *,
    handle: int = 0,
    count: int = 0,
    drain: bool = False,
) -> None:
    """Give credit by a flow that names a transaction; `count` deliveries were made before."""
    controller.client.flow(
        handle=handle,
        credit=credit,
        delivery_count=count,
        drain=drain,
        properties={"txn-id": txn_id},
    )


def acquired(controller: Controller, txn_id: bytes, *bodies: bytes) -> list[Transfer]:
    """Return the next deliveries, which have these bodies and belong to the transaction."""
    came = controller.client.expect_deliveries(*bodies)
    assert [state_of(each) for each in came] == [txn_id] * len(bodies)
    return came


def state_of(transfer: Transfer) -> bytes | None:
    """Return the transaction of a delivery, None for none."""
    state = transfer.state
    assert state is None or isinstance(state, TransactionalState)
    return None if state is None else state.txn_id


def counts(controller: Controller) -> tuple[int, int]:
    """Return how many messages of `q` wait, and how many are acquired."""
    queue = controller.client.broker.queue()
    return int(queue.backlogs.waiting), int(queue.state.acquired)


def waiting(controller: Controller) -> list[tuple[bytes, int]]:
    """Return body and delivery-count of each message that waits in `q`, in order."""
    browser = controller.client.broker.session("browser")
    source = Source(address="q", distribution_mode=COPY)
    browser.attach_receiver(source=source, credit=100)
    found: list[tuple[bytes, int]] = []
    for each in browser.bodies():
        if isinstance(each, Transfer):
            header = header_of(each.payload)
            failed = getattr(header[4], "value", 0) if len(header) > 4 else 0
            found.append((body_of(each.payload), failed))
    browser.hang_up()
    return found


def told(client: Client) -> list[tuple[int, bool, DeliveryState | None]]:
    """Return what the broker, as a sender, has told about deliveries: id, settled, state."""
    return [
        (int(each.first), each.settled, each.state)
        for each in client.bodies()
        if isinstance(each, Disposition) and each.role is SENDER
    ]


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


# -- outcomes

SETTLED = [
    pytest.param(ACCEPTED, [], [(b"0", 1), (b"1", 0)], id="accepted"),
    pytest.param(Rejected(), [], [(b"0", 1), (b"1", 0)], id="rejected"),
    pytest.param(RELEASED, [(b"0", 0)], [(b"0", 0), (b"1", 0)], id="released"),
    pytest.param(FAILED, [(b"0", 1)], [(b"0", 1), (b"1", 0)], id="failed"),
    pytest.param(HERE, [(b"0", 0)], [(b"0", 0), (b"1", 0)], id="not here again"),
    pytest.param(None, [(b"0", 0)], [(b"0", 0), (b"1", 0)], id="the default-outcome"),
]


# without an outcome there is nothing to apply before the receiver settles
NOT_SETTLED = [each for each in SETTLED if each.values[0] is not None]


@pytest.mark.parametrize(
    ("outcome", "committed", "rolled_back", "is_settled"),
    [
        pytest.param(*each.values, is_settled, id=f"{each.id}{'' if is_settled else ', unsettled'}")
        for is_settled, table in ((True, SETTLED), (False, NOT_SETTLED))
        for each in table
    ],
)
def test_an_outcome_is_applied_or_undone_with_its_acquisition(
    outcome: Outcome | None,
    committed: list[tuple[bytes, int]],
    rolled_back: list[tuple[bytes, int]],
    is_settled: bool,
) -> None:
    for fail in (False, True):
        controller = filled(2)
        txn_id = controller.declare()
        grant(controller, txn_id, 2)
        acquired(controller, txn_id, b"0", b"1")
        controller.retire(txn_id, 0, outcome, settled=is_settled)
        controller.client.expect_nothing()
        assert counts(controller) == (0, 2)
        controller.transfer(discharge(txn_id, fail=fail), COORDINATOR_HANDLE)
        controller.client.bodies()
        assert waiting(controller) == (rolled_back if fail else committed)
        assert counts(controller)[1] == (0 if fail else 1), "the second stays its receiver's"


def test_without_an_outcome_a_commit_leaves_the_delivery_to_its_receiver() -> None:
    controller = filled(1)
    txn_id = controller.declare()
    grant(controller, txn_id, 1)
    acquired(controller, txn_id, b"0")
    controller.commit(txn_id)
    assert counts(controller) == (0, 1)
    controller.client.send(Disposition(first=0, settled=True, state=ACCEPTED))
    assert counts(controller) == (0, 0)


def test_a_later_transaction_may_retire_what_an_earlier_one_acquired() -> None:
    controller = filled(1)
    first, second = controller.declare(), controller.declare()
    grant(controller, first, 1)
    acquired(controller, first, b"0")
    controller.commit(first)
    controller.retire(second, 0, ACCEPTED)
    controller.roll_back(second)
    assert waiting(controller) == [(b"0", 1)]


def test_a_rollback_settles_the_deliveries_that_it_ends() -> None:
    controller = filled(3)
    txn_id = controller.declare()
    grant(controller, txn_id, 3)
    acquired(controller, txn_id, b"0", b"1", b"2")
    controller.retire(txn_id, 0, ACCEPTED)
    controller.retire(txn_id, 1, ACCEPTED, settled=False)
    controller.transfer(discharge(txn_id, fail=True), COORDINATOR_HANDLE)
    found = told(controller.client)
    assert [(first, settled) for first, settled, _ in found] == [(1, True), (2, True)]
    assert all(isinstance(state, Released) for *_, state in found)
    assert waiting(controller) == [(b"0", 1), (b"1", 1), (b"2", 0)]


def test_settling_without_a_state_keeps_the_outcome_within_the_transaction() -> None:
    controller = filled(2)
    txn_id = controller.declare()
    grant(controller, txn_id, 2)
    acquired(controller, txn_id, b"0", b"1")
    controller.retire(txn_id, 0, ACCEPTED, settled=False)
    controller.client.send(Disposition(first=0, last=1, settled=True, state=None))
    assert counts(controller) == (0, 2)
    controller.commit(txn_id)
    assert waiting(controller) == [(b"1", 0)], "its outcome is the default-outcome"


OUTSIDE = [
    pytest.param(ACCEPTED, True, id="accepted"),
    pytest.param(RELEASED, True, id="released"),
    pytest.param(FAILED, True, id="modified"),
    pytest.param(ACCEPTED, False, id="accepted, not settled"),
]


@pytest.mark.parametrize(("outcome", "is_settled"), OUTSIDE)
def test_an_outcome_outside_of_the_transaction_rolls_it_back(
    outcome: Outcome, is_settled: bool
) -> None:
    controller = filled(2, rcv_settle_mode=0 if is_settled else RCV_SECOND)
    txn_id = controller.declare()
    grant(controller, txn_id, 2)
    acquired(controller, txn_id, b"0", b"1")
    controller.client.send(Disposition(first=0, settled=is_settled, state=outcome))
    detaches = [each for each in controller.client.bodies() if isinstance(each, Detach)]
    assert [int(each.handle) for each in detaches] == [COORDINATOR_HANDLE]
    assert detaches[0].error is not None
    assert detaches[0].error.condition == ROLLBACK
    assert waiting(controller) == [(b"0", 0), (b"1", 0)]
    assert counts(controller) == (2, 0)


def test_a_range_of_outcomes_outside_of_the_transaction_is_applied_to_none() -> None:
    controller = filled(3)
    txn_id = controller.declare()
    grant(controller, txn_id, 3)
    acquired(controller, txn_id, b"0", b"1", b"2")
    controller.client.send(Disposition(first=0, last=2, settled=True, state=ACCEPTED))
    controller.client.bodies()
    assert waiting(controller) == [(b"0", 0), (b"1", 0), (b"2", 0)]
    assert counts(controller) == (3, 0)


@pytest.mark.parametrize("before", [None, ACCEPTED], ids=["without one", "with one"])
@pytest.mark.parametrize("is_settled", [True, False], ids=["settled", "not settled"])
def test_an_outcome_of_another_transaction_rolls_both_back(
    is_settled: bool, before: Outcome | None
) -> None:
    controller = filled(1)
    first, second = controller.declare(), controller.declare()
    grant(controller, first, 1)
    acquired(controller, first, b"0")
    if before is not None:
        controller.retire(first, 0, before, settled=False)
    controller.retire(second, 0, ACCEPTED, settled=is_settled)
    detaches = [each for each in controller.client.bodies() if isinstance(each, Detach)]
    assert [int(each.handle) for each in detaches] == [COORDINATOR_HANDLE]
    assert counts(controller) == (1, 0)
    assert controller.client.broker.router.stats.rolled_back == 2
    grant(controller, None, 1, count=1)
    controller.client.expect_deliveries(b"0")
    controller.client.send(Disposition(first=1, settled=True, state=ACCEPTED))
    assert counts(controller) == (0, 0)


def test_an_outcome_of_no_transaction_detaches_the_link() -> None:
    controller = filled(1)
    txn_id = controller.declare()
    grant(controller, txn_id, 1)
    acquired(controller, txn_id, b"0")
    controller.retire(b"\xff none", 0, ACCEPTED)
    found = {
        int(each.handle): each.error.condition
        for each in controller.client.bodies()
        if isinstance(each, Detach) and each.error is not None
    }
    assert found == {COORDINATOR_HANDLE: ROLLBACK, 0: UNKNOWN}
    assert counts(controller) == (1, 0)


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


# -- several transactions, links and ends


def test_links_and_transactions_are_apart() -> None:
    controller = filled(4)
    controller.client.attach(attach_receiver("q", name="other", handle=1))
    first, second = controller.declare(), controller.declare()
    grant(controller, first, 1)
    acquired(controller, first, b"0")
    grant(controller, second, 1, handle=1)
    acquired(controller, second, b"1")
    grant(controller, second, 1, count=1)
    acquired(controller, second, b"2")
    controller.retire(first, 0, ACCEPTED)
    controller.retire(second, 1, ACCEPTED, last=2)
    controller.commit(first)
    assert counts(controller) == (1, 2)
    controller.roll_back(second)
    assert waiting(controller) == [(b"1", 1), (b"2", 1), (b"3", 0)]


def test_messages_return_in_their_order_however_they_were_acquired() -> None:
    controller = filled(5)
    txn_id = controller.declare()
    grant(controller, txn_id, 4)
    acquired(controller, txn_id, b"0", b"1", b"2", b"3")
    controller.retire(txn_id, 3, RELEASED)
    controller.retire(txn_id, 1, RELEASED, settled=False)
    controller.transfer(discharge(txn_id, fail=True), COORDINATOR_HANDLE)
    controller.client.bodies()
    assert [body for body, _ in waiting(controller)] == [b"0", b"1", b"2", b"3", b"4"]


LINK_ENDS = [
    pytest.param(Detach(handle=0, closed=True), id="closed"),
    pytest.param(Detach(handle=0, closed=False), id="detached"),
]


@pytest.mark.parametrize("fail", [False, True], ids=["committed", "rolled back"])
@pytest.mark.parametrize("end", LINK_ENDS)
def test_the_end_of_the_link_leaves_the_acquisition_to_the_transaction(
    end: Detach, fail: bool
) -> None:
    controller = filled(3)
    txn_id = controller.declare()
    grant(controller, txn_id, 3)
    acquired(controller, txn_id, b"0", b"1", b"2")
    controller.retire(txn_id, 0, ACCEPTED)
    controller.retire(txn_id, 1, ACCEPTED, settled=False)
    controller.client.send(end)
    controller.client.bodies()
    assert counts(controller) == (0, 3)
    controller.transfer(discharge(txn_id, fail=fail), COORDINATOR_HANDLE)
    controller.client.bodies()
    returned = [(b"0", 1), (b"1", 1), (b"2", 0)] if fail else [(b"2", 0)]
    assert waiting(controller) == returned
    assert counts(controller)[1] == 0


@pytest.mark.parametrize("end", ["coordinator", "session", "connection"])
def test_what_was_acquired_returns_when_the_transaction_ends_with_something(end: str) -> None:
    controller = filled(2)
    txn_id = controller.declare()
    grant(controller, txn_id, 2)
    acquired(controller, txn_id, b"0", b"1")
    controller.retire(txn_id, 0, ACCEPTED)
    client = controller.client
    broker = client.broker
    if end == "coordinator":
        client.send(Detach(handle=COORDINATOR_HANDLE, closed=True))
    elif end == "session":
        client.send(End())
    else:
        client.hang_up()
    broker.container.tick()
    assert broker.queue().state.acquired == 0
    assert [body for body, _ in waiting(controller)] == [b"0", b"1"]


def test_a_deleted_queue_drops_what_was_acquired_of_it() -> None:
    for fail in (False, True):
        controller = filled(1)
        txn_id = controller.declare()
        grant(controller, txn_id, 1)
        acquired(controller, txn_id, b"0")
        broker = controller.client.broker
        broker.router.delete(broker.queue(), broker.journal.batch)
        controller.transfer(discharge(txn_id, fail=fail), COORDINATOR_HANDLE)
        controller.client.bodies()
        assert broker.router.memory.held == 0
        assert broker.router.memory.volatile == 0


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
