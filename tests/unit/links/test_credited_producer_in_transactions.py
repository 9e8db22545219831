"""The credit of links that send within transactions, which counts messages of open transactions."""

import pytest

from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED
from broker.amqp.outcomes import ACCEPTED, Accepted, TransactionalState
from broker.amqp.performatives import RECEIVER, Attach, Flow
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker
from tests.support.frames import Disposition, Transfer, attach_sender, message
from tests.support.transactions import Controller, condition_of

pytestmark = pytest.mark.requirement("RCV-06")


def transacted(*, limit: int) -> tuple[Broker, Controller, bytes]:
    """Return a client's open transaction and its link to `q`, which takes `limit` messages."""
    broker = Broker(policy=AddressPolicy(max_messages=limit))
    controller = Controller(broker)
    controller.client.attach_sender()
    return broker, controller, controller.declare()


def credit_in(controller: Controller) -> int:
    """Return the credit that the link to `q` was last granted since the last call, 0 if none."""
    flows = [body for body in controller.client.bodies() if isinstance(body, Flow)]
    return int(flows[-1].link_credit or 0) if flows else 0


def post(controller: Controller, txn_id: bytes | None) -> int:
    """Send one message, which must be accepted; return the credit granted after it, 0 if none."""
    state = None if txn_id is None else TransactionalState(txn_id=txn_id)
    controller.transfer(message(b"x"), state=state)
    bodies = controller.client.bodies()
    (told,) = [body.state for body in bodies if isinstance(body, Disposition)]
    outcome = told.outcome if isinstance(told, TransactionalState) else told
    assert isinstance(outcome, Accepted)
    flows = [body for body in bodies if isinstance(body, Flow)]
    return int(flows[-1].link_credit or 0) if flows else 0


def test_what_a_transaction_sent_is_room_taken_from_others() -> None:
    broker, controller, txn_id = transacted(limit=2)
    for _ in range(2):
        post(controller, txn_id)
    other = broker.session("other")
    other.send(attach_sender())
    other.expect(Attach)
    other.expect_nothing()
    broker.advance(50)
    broker.advance(50)
    other.expect_nothing()
    controller.commit(txn_id)
    other.expect_nothing()
    assert broker.queue().backlogs.waiting == 2


@pytest.mark.parametrize("end", ["roll back", "lose the connection", "time out"])
def test_the_end_of_a_transaction_gives_its_room_back(end: str) -> None:
    broker, controller, txn_id = transacted(limit=2)
    for _ in range(2):
        post(controller, txn_id)
    other = broker.session("other")
    other.send(attach_sender())
    other.expect(Attach)
    other.expect_nothing()
    if end == "roll back":
        controller.roll_back(txn_id)
    elif end == "lose the connection":
        controller.client.hang_up()
    else:
        broker.advance(int(broker.container.limits.transaction_timeout_ms))
    broker.advance(50)
    broker.advance(50)
    assert (other.expect(Flow).link_credit or 0) > 0
    assert broker.queue().posted == 0


def test_commits_are_not_refused_though_many_send_at_once() -> None:
    broker = Broker(policy=AddressPolicy(max_messages=7))
    controllers = [Controller(broker, f"client {number}") for number in range(3)]
    credit = [0, 0, 0]
    for number, controller in enumerate(controllers):
        controller.client.send(attach_sender())
        credit[number] = credit_in(controller)
    committed = 0
    for _ in range(40):
        for number, controller in enumerate(controllers):
            credit[number] = credit_in(controller) or credit[number]
            if credit[number] > 0:
                txn_id = controller.declare()
                credit[number] = post(controller, txn_id) or credit[number] - 1
                controller.commit(txn_id)
                committed += 1
        assert broker.queue().backlogs.waiting <= 7
        drain_one(broker)
        broker.advance(50)
    assert committed > 20


def drain_one(broker: Broker) -> None:
    """Consume one message with a client of its own."""
    receiver = broker.session("receiver")
    receiver.attach_receiver(credit=1)
    for body in receiver.bodies():
        if isinstance(body, Transfer):
            receiver.send(Disposition(role=RECEIVER, first=0, settled=True, state=ACCEPTED))
    receiver.hang_up()


def test_a_transaction_that_is_larger_than_the_queue_is_told_and_does_not_wait() -> None:
    broker, controller, txn_id = transacted(limit=2)
    assert [post(controller, txn_id) for _ in range(2)] == [1, 1]
    controller.transfer(message(b"3"), state=TransactionalState(txn_id=txn_id))
    refused = controller.client.expect(Disposition).state
    assert isinstance(refused, TransactionalState)
    assert condition_of(refused.outcome) == RESOURCE_LIMIT_EXCEEDED
    controller.client.frames()
    assert broker.queue().posted == 0
    assert controller.fail_to_commit(txn_id) == RESOURCE_LIMIT_EXCEEDED


def test_a_transaction_that_just_fits_leaves_a_credit_that_is_honoured() -> None:
    """The credit was granted for a message that was never sent; the next one is not rejected."""
    broker, controller, txn_id = transacted(limit=2)
    assert [post(controller, txn_id) for _ in range(2)] == [1, 1]
    controller.commit(txn_id)
    assert post(controller, None) == 0
    assert broker.queue().backlogs.waiting == 3
    drain_one(broker)
    drain_one(broker)
    assert credit_in(controller) == 1


def taking_all(controller: Controller, txn_id: bytes, count: int) -> None:
    """Receive `count` messages of `q`, and accept them within the transaction."""
    client = controller.client
    client.attach_receiver(name="receiver", handle=1, credit=count)
    client.expect_deliveries(*[b"x"] * count)
    state = TransactionalState(txn_id=txn_id, outcome=ACCEPTED)
    client.send(Disposition(role=RECEIVER, first=0, last=count - 1, state=state))


def test_a_transaction_may_send_as_much_to_a_full_queue_as_it_takes_from_it() -> None:
    """Its client may have to send before it commits, and no other consumer can make room."""
    broker, controller, txn_id = transacted(limit=3)
    for _ in range(3):
        post(controller, None)
    taking_all(controller, txn_id, 3)
    controller.client.frames()
    broker.advance(50)
    assert credit_in(controller) == 1
    assert [post(controller, txn_id) for _ in range(3)] == [1, 1, 1]
    controller.commit(txn_id)
    assert broker.queue().backlogs.waiting == 3


def test_what_another_client_takes_makes_no_room_before_its_commit() -> None:
    broker, controller, txn_id = transacted(limit=1)
    post(controller, None)
    taking_all(controller, txn_id, 1)
    other = broker.session("other")
    other.send(attach_sender())
    other.expect(Attach)
    broker.advance(50)
    broker.advance(50)
    other.expect_nothing()


def test_messages_that_take_no_room_are_accepted_beyond_it() -> None:
    broker = Broker(policy=AddressPolicy(max_messages=3, duplicate_window=10))
    controller = Controller(broker)
    controller.client.attach_sender()
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id)
    known = message(b"x", message_id="0")
    controller.transfer(known)
    drain_one(broker)
    for number in (1, 2, 3):
        controller.transfer(message(b"x", message_id=f"{number}"), state=state)
    for _ in range(3):
        assert credit_in(controller) == 1
        controller.transfer(known, state=state)
    controller.client.frames()
    controller.commit(txn_id)
    assert broker.queue().backlogs.waiting == 3
