"""Outcomes and ends of what a transaction has acquired (core 4.4.2, 4.4.4.3)."""

from __future__ import annotations

import pytest

from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Modified,
    Outcome,
    Rejected,
    Released,
)
from broker.amqp.performatives import (
    RCV_SECOND,
    Detach,
    End,
)
from tests.support.acquisitions import (
    ROLLBACK,
    UNKNOWN,
    acquired,
    counts,
    filled,
    grant,
    told,
    waiting,
)
from tests.support.frames import (
    Disposition,
    attach_receiver,
)
from tests.support.transactions import (
    COORDINATOR_HANDLE,
    discharge,
)

pytestmark = pytest.mark.requirement("RCV-06")

FAILED = Modified(delivery_failed=True)
HERE = Modified(undeliverable_here=True)


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


@pytest.mark.parametrize("handle", [0, COORDINATOR_HANDLE + 1], ids=["before it", "behind it"])
@pytest.mark.parametrize("end", ["coordinator", "session", "connection"])
def test_what_was_acquired_returns_when_the_transaction_ends_with_something(
    end: str, handle: int
) -> None:
    """The links of a session end in the order of their handles: either end may come first."""
    controller = filled(2)
    controller.client.attach(attach_receiver("q", name="last", handle=COORDINATOR_HANDLE + 1))
    txn_id = controller.declare()
    grant(controller, txn_id, 2, handle=handle)
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
