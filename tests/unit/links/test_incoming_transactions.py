"""Messages sent within a transaction: their outcomes, and the causes that doom the transaction."""

import pytest

from broker.amqp.outcomes import ACCEPTED, Accepted, Released, TransactionalState
from broker.amqp.performatives import RECEIVER, Detach
from broker.amqp.terminus import Source, Target
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker
from tests.support.frames import Disposition, Transfer, message
from tests.support.transactions import Controller, condition_of, discharge
from tests.unit.links.test_service import Echo

pytestmark = pytest.mark.requirement("RCV-06")

CLOSED = AddressPolicy(auto_create=False)


def relaying(*capabilities: str, source: Source | None = None) -> Controller:
    """Return a controller with the anonymous relay at handle 0; only the address `q` exists."""
    broker = Broker(patterns=[("q", AddressPolicy())], policy=CLOSED)
    controller = Controller(broker)
    controller.client.attach_sender("q", name="first", handle=1)
    target = Target(capabilities=list(capabilities))
    controller.client.attach_sender(None, target=target, source=source)
    return controller


def waiting(controller: Controller) -> int:
    return int(controller.client.broker.queue().backlogs.waiting)


def test_a_message_is_accepted_for_the_end_of_its_transaction() -> None:
    controller = relaying()
    txn_id = controller.declare()
    number = controller.transfer(
        message(b"1", to="q"), state=TransactionalState(txn_id=txn_id), settled=False
    )
    told = controller.client.expect_last(Disposition)
    assert (told.first, told.settled) == (number, True)
    assert isinstance(told.state, TransactionalState)
    assert told.state.txn_id == txn_id
    assert isinstance(told.state.outcome, Accepted)
    assert waiting(controller) == 0


def test_neighbours_are_accepted_in_one_range_by_transaction() -> None:
    controller = relaying()
    one, other = controller.declare(), controller.declare()
    first = controller.sent
    ids = [one, one, one, other, other, None, None, one]
    controller.sent += len(ids)
    controller.client.send(
        *[
            Transfer(
                delivery_id=first + at,
                state=None if txn_id is None else TransactionalState(txn_id=txn_id),
                payload=message(b"x", to="q"),
            )
            for at, txn_id in enumerate(ids)
        ]
    )
    told = [controller.client.expect(Disposition) for _ in range(4)]
    ranges = [(each.first - first, (each.last or each.first) - first) for each in told]
    assert ranges == [(0, 2), (3, 4), (5, 6), (7, 7)]
    states = [each.state for each in told]
    assert [getattr(state, "txn_id", None) for state in states] == [one, other, None, one]


def test_a_settled_message_is_told_nothing() -> None:
    controller = relaying()
    txn_id = controller.declare()
    controller.transfer(
        message(b"1", to="q"), settled=True, state=TransactionalState(txn_id=txn_id)
    )
    controller.client.expect_nothing()
    assert waiting(controller) == 0
    controller.commit(txn_id)
    assert waiting(controller) == 1


def test_an_outcome_in_the_state_of_a_message_means_nothing() -> None:
    controller = relaying()
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id, outcome=Released())
    controller.answer(controller.transfer(message(b"1", to="q"), state=state))
    controller.commit(txn_id)
    assert waiting(controller) == 1


def test_a_message_may_come_in_pieces() -> None:
    controller = relaying()
    txn_id = controller.declare()
    payload = message(b"x" * 100, to="q")
    state = TransactionalState(txn_id=txn_id)
    number = controller.transfer(payload[:50], state=state, more=True)
    controller.client.send(Transfer(delivery_id=None, tag=None, state=state, payload=payload[50:]))
    controller.answer(number)
    controller.commit(txn_id)
    assert waiting(controller) == 1


@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "settled"])
def test_a_message_that_cannot_be_routed_dooms_its_transaction(settled: bool) -> None:
    controller = relaying()
    txn_id = controller.declare()
    controller.post(txn_id, to="q")
    state = TransactionalState(txn_id=txn_id)
    number = controller.transfer(message(b"1", to="nowhere"), settled=settled, state=state)
    if not settled:
        told = controller.answer(number)
        assert isinstance(told, TransactionalState)
        assert condition_of(told.outcome) == "amqp:not-found"
    controller.client.expect_nothing()
    assert condition_of(controller.try_to_post(txn_id, to="q")) == "amqp:not-found"
    assert controller.client.broker.stats.unroutable == 1
    again = controller.transfer(message(b"2", to="nowhere"), state=state)
    assert isinstance(controller.answer(again), TransactionalState)
    assert controller.client.broker.stats.unroutable == 2
    assert controller.fail_to_commit(txn_id) == "amqp:not-found"
    assert waiting(controller) == 0


def test_what_is_to_be_discarded_dooms_nothing() -> None:
    controller = relaying("DISCARD_UNROUTABLE")
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id)
    controller.transfer(message(b"1", to="nowhere"), settled=True, state=state)
    controller.post(txn_id, to="q")
    controller.commit(txn_id)
    assert waiting(controller) == 1


def test_a_sender_that_takes_no_rejection_is_detached() -> None:
    controller = relaying(source=Source(outcomes=["amqp:accepted:list"]))
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id)
    controller.transfer(message(b"1", to="nowhere"), state=state)
    controller.client.expect_detach("amqp:not-found")
    assert controller.client.broker.stats.unroutable == 1
    assert controller.fail_to_commit(txn_id) == "amqp:not-found"


def test_what_a_doomed_transaction_refuses_is_not_counted_as_unroutable() -> None:
    controller = relaying(source=Source(outcomes=["amqp:accepted:list"]))
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id)
    controller.transfer(message(b"1", to="nowhere"), settled=True, state=state)
    controller.transfer(message(b"2", to="q"), state=state)
    controller.client.expect_detach("amqp:not-found")
    assert controller.client.broker.stats.unroutable == 1


def test_a_malformed_message_dooms_its_transaction() -> None:
    controller = relaying()
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id)
    told = controller.answer(controller.transfer(b"\xff", state=state))
    assert isinstance(told, TransactionalState)
    assert controller.fail_to_commit(txn_id) == "amqp:decode-error"


@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "settled"])
def test_a_transaction_that_is_not_open_detaches(settled: bool) -> None:
    controller = relaying()
    txn_id = controller.declare()
    controller.commit(txn_id)
    state = TransactionalState(txn_id=txn_id)
    controller.transfer(message(b"1", to="q"), settled=settled, state=state)
    controller.client.expect_detach("amqp:transaction:unknown-id")
    assert waiting(controller) == 0


def test_a_connection_without_a_coordinator_has_no_transactions() -> None:
    client = Broker().session()
    client.attach_sender()
    client.transfer(state=TransactionalState(txn_id=b"x"))
    client.expect_detach("amqp:transaction:unknown-id")


# -- links that end within a transaction


def test_a_message_that_breaks_its_link_dooms_its_transaction() -> None:
    """The sender learns of the message by the detach alone; a commit must not leave it out."""
    controller = relaying()
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id)
    controller.transfer(message(b"1", to="q"), state=state, handle=1)
    controller.client.expect(Disposition)
    controller.sent += 1
    controller.client.send(Transfer(delivery_id=controller.sent - 1, tag=None, state=state))
    controller.client.expect_detach("amqp:invalid-field")
    assert controller.fail_to_commit(txn_id) == "amqp:invalid-field"
    assert waiting(controller) == 0


def test_a_message_behind_the_end_of_its_link_dooms_its_transaction() -> None:
    controller = relaying()
    broker = controller.client.broker
    txn_id = controller.declare()
    broker.router.delete(broker.queue(), broker.journal.batch)
    controller.transfer(message(b"1"), state=TransactionalState(txn_id=txn_id), handle=1)
    controller.client.expect_detach("amqp:resource-deleted", handle=1)
    assert controller.fail_to_commit(txn_id) == "amqp:link:detach-forced"


def test_half_a_message_dooms_its_transaction() -> None:
    controller = relaying()
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id)
    controller.transfer(message(b"1", to="q"), state=state, more=True)
    controller.client.send(Detach(handle=0, closed=True))
    controller.client.expect_detach()
    assert controller.fail_to_commit(txn_id) == "amqp:link:detach-forced"


def test_a_message_that_is_given_up_dooms_nothing() -> None:
    controller = relaying()
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id)
    controller.transfer(message(b"1", to="q"), state=state, more=True)
    controller.client.send(Transfer(delivery_id=None, tag=None, state=state, aborted=True))
    controller.post(txn_id, to="q")
    controller.commit(txn_id)
    assert waiting(controller) == 1


def test_the_link_of_a_message_may_end_before_its_transaction() -> None:
    controller = relaying()
    txn_id = controller.declare()
    controller.post(txn_id, to="q")
    controller.client.send(Detach(handle=0, closed=True))
    controller.client.expect_detach()
    controller.commit(txn_id)
    assert waiting(controller) == 1


@pytest.mark.parametrize(
    "name", ["temporary", "ordinary"], ids=["a temporary node", "an ordinary node"]
)
def test_a_node_that_goes_before_the_commit_fails_it(name: str) -> None:
    controller = relaying()
    broker = controller.client.broker
    other = broker.session("other")
    if name == "temporary":
        answer = other.attach_receiver(source=Source(dynamic=True))
        assert answer.source is not None
        address = str(answer.source.address)
    else:
        address = "q"
    txn_id = controller.declare()
    controller.post(txn_id, to=address)
    node = broker.router.find_named(address, "queue")
    assert node is not None
    broker.router.delete(node, broker.journal.batch)
    told = controller.transfer(discharge(txn_id), 9)
    for body in controller.client.bodies():
        if isinstance(body, Disposition):
            assert (body.first, body.role) == (told, RECEIVER)
            assert condition_of(body.state) == "amqp:not-found"
            return
    raise AssertionError("the commit was not answered")


def test_plain_messages_are_none_of_a_transactions_business() -> None:
    controller = relaying()
    txn_id = controller.declare()
    controller.post(txn_id, to="q")
    assert controller.answer(controller.transfer(message(b"plain", to="q"))) is ACCEPTED
    assert waiting(controller) == 1
    controller.roll_back(txn_id)
    assert waiting(controller) == 1


def test_requests_to_the_broker_are_part_of_no_transaction() -> None:
    """Requests are carried out at once; a rollback could not undo them."""
    broker = Broker()
    echo = Echo(broker)
    broker.container.service = echo
    controller = Controller(broker)
    controller.client.attach_sender("$management")
    txn_id = controller.declare()
    assert condition_of(controller.try_to_post(txn_id)) == "amqp:not-implemented"
    assert controller.fail_to_commit(txn_id) == "amqp:not-implemented"
    assert echo.asked == []
