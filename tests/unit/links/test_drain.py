"""A drain on simulated time: what clients may still do, and when the broker ends."""

from __future__ import annotations

from typing import Final

import pytest

from broker.amqp.errors import CONNECTION_FORCED
from broker.amqp.outcomes import ACCEPTED, TransactionalState
from broker.amqp.performatives import Close, Flow, Open
from broker.amqp.terminus import COPY, Source, Target
from broker.links.drain import STRETCH, DrainOwner
from broker.links.drain_course import STILL_MS, DrainPhase
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import CREDIT, Broker, Client
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    message,
    opening,
)
from tests.support.management import REPLY_TO, request
from tests.support.transactions import Controller

pytestmark = pytest.mark.requirement("OPS-14")

ANNOUNCE_MS: Final = 5000
FINISH_MS: Final = 20_000
LOOK_MS: Final = 50
STILL: Final = int(STILL_MS) + LOOK_MS


class Owner(DrainOwner):
    """Records the calls of a drain."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def announce_ms(self) -> int:
        return ANNOUNCE_MS

    def finish_ms(self) -> int:
        return FINISH_MS

    def announced(self) -> None:
        self.told.append("announced")

    def finishing(self) -> None:
        self.told.append("finishing")

    def over(self, unfinished: int) -> None:
        self.told.append(f"over, {unfinished} unfinished")


class Drained:
    """A broker that can be drained."""

    def __init__(self, *, policy: AddressPolicy | None = None) -> None:
        self.broker: Final = Broker(policy=policy)
        self.owner: Final = Owner()
        self.drain: Final = self.broker.container.drain
        self.drain.owner = self.owner

    def announce(self, *, only: bool = False) -> None:
        self.drain.begin(self.owner, announce_only=only)
        self.broker.container.tick()

    def finish(self) -> None:
        """Let the broker take no new work from now on."""
        self.announce()
        self.broker.advance(ANNOUNCE_MS)
        for _ in range(3):
            self.broker.container.tick()
        assert self.drain.phase() is DrainPhase.FINISHING


@pytest.fixture
def drained() -> Drained:
    return Drained()


def credit_of(client: Client, handle: int = 0) -> list[int]:
    """Return the credits that the broker has granted to a link since the last call."""
    return [
        int(body.link_credit)
        for body in client.bodies()
        if isinstance(body, Flow) and body.handle == handle
    ]


def taken(broker: Broker, address: str = "q") -> int:
    return int(broker.queue(address).backlogs.waiting)


def test_an_announcement_ends_nothing_but_new_connections(drained: Drained) -> None:
    client = drained.broker.session()
    client.attach_sender()
    drained.announce(only=True)
    assert (drained.broker.container.drain.keeps_clients_out(), drained.owner.told) == (
        True,
        ["announced"],
    )
    client.transfer(0)
    client.expect_last(Disposition)
    client.attach_receiver(handle=1, credit=1)
    client.expect(Transfer)
    newcomer = drained.broker.dial()
    newcomer.send_bytes(opening("newcomer"))
    refusal = [body for body in newcomer.bodies() if isinstance(body, Open | Close)][-1]
    assert isinstance(refusal, Close)
    assert refusal.error is not None
    assert refusal.error.condition == CONNECTION_FORCED
    drained.broker.advance(10 * ANNOUNCE_MS)
    assert drained.owner.told == ["announced"]


def test_an_idle_broker_ends_soon_after_the_announcement(drained: Drained) -> None:
    drained.broker.session().attach_sender()
    drained.finish()
    drained.broker.advance(STILL)
    drained.broker.advance(STILL)
    assert drained.owner.told == ["announced", "finishing", "over, 0 unfinished"]


def test_a_producer_loses_its_credit_and_what_it_has_sent_is_taken(drained: Drained) -> None:
    client = drained.broker.session()
    client.attach_sender()
    drained.finish()
    assert credit_of(client) == [0]
    for number in range(CREDIT):  # under way when the broker took the credit back
        client.transfer(number)
    outcomes = [body for body in client.bodies() if isinstance(body, Disposition)]
    assert sum((each.last or each.first) - each.first + 1 for each in outcomes) == CREDIT
    assert taken(drained.broker) == CREDIT
    drained.broker.advance(LOOK_MS)
    assert credit_of(client) == []


def test_a_producer_of_a_limited_queue_is_asked_for_its_credit() -> None:
    drained = Drained(policy=AddressPolicy(max_messages=1000))
    client = drained.broker.session()
    client.attach_sender()
    drained.finish()
    (asked,) = [body for body in client.bodies() if isinstance(body, Flow)]
    assert asked.drain
    client.flow(handle=0, delivery_count=int(asked.link_credit), credit=0)
    drained.broker.advance(LOOK_MS)
    assert credit_of(client) == []


def test_nothing_more_is_delivered_and_drains_are_answered(drained: Drained) -> None:
    drained.broker.fill(count=2)
    client = drained.broker.session()
    client.attach_receiver()
    client.attach_receiver(handle=1, name="b", source=Source(address="q", distribution_mode=COPY))
    drained.finish()
    for handle in (0, 1):
        client.flow(handle=handle, credit=5, delivery_count=0)
        client.expect_nothing()
        client.flow(handle=handle, credit=5, delivery_count=0, drain=True)
        answer = client.expect_last(Flow)
        assert (answer.handle, answer.link_credit, answer.delivery_count) == (handle, 0, 5)
    assert taken(drained.broker) == 2


@pytest.mark.parametrize(
    "attach",
    [
        pytest.param(attach_sender(), id="a sender"),
        pytest.param(attach_receiver(), id="a receiver"),
        pytest.param(attach_sender("$management"), id="requests"),
    ],
)
def test_attaches_are_refused(drained: Drained, attach: object) -> None:
    client = drained.broker.session()
    drained.finish()
    client.send(attach)  # type: ignore[arg-type]
    client.expect_refusal(CONNECTION_FORCED)


def test_an_unsettled_delivery_is_waited_for(drained: Drained) -> None:
    drained.broker.fill(count=1)
    client = drained.broker.session()
    client.attach_receiver(credit=1)
    delivery = client.expect(Transfer)
    drained.finish()
    drained.broker.advance(FINISH_MS // 2)
    assert drained.owner.told == ["announced", "finishing"]
    client.send(Disposition(first=delivery.delivery_id or 0, state=ACCEPTED))
    drained.broker.advance(STILL)
    drained.broker.advance(STILL)
    assert drained.owner.told[-1] == "over, 0 unfinished"


def test_a_message_that_arrives_in_parts_is_waited_for(drained: Drained) -> None:
    client = drained.broker.session()
    client.attach_sender()
    payload = message(b"in two parts")
    client.send(Transfer(delivery_id=0, tag=b"0", payload=payload[:9], more=True))
    drained.finish()
    drained.broker.advance(FINISH_MS // 2)
    assert drained.owner.told == ["announced", "finishing"]
    client.send(Transfer(delivery_id=None, tag=None, message_format=None, payload=payload[9:]))
    drained.broker.advance(STILL)
    drained.broker.advance(STILL)
    assert (taken(drained.broker), drained.owner.told[-1]) == (1, "over, 0 unfinished")


def test_a_response_that_is_not_settled_is_not_waited_for(drained: Drained) -> None:
    client = drained.broker.session()
    reply_to = Target(address=REPLY_TO)
    client.attach_receiver("$management", handle=1, credit=5, target=reply_to)
    client.attach(attach_sender("$management"))
    client.frames()
    drained.finish()
    client.transfer(0, payload=request("GET-TYPES", "org.amqp.management", "self"))
    assert [type(body) for body in client.bodies()] == [Disposition, Transfer]
    drained.broker.advance(STILL)
    drained.broker.advance(STILL)
    assert drained.owner.told[-1] == "over, 0 unfinished"


def test_a_client_that_does_not_settle_is_waited_for_until_the_time_is_over(
    drained: Drained,
) -> None:
    drained.broker.fill(count=1)
    client = drained.broker.session()
    client.attach_receiver(credit=1)
    client.expect(Transfer)
    drained.finish()
    drained.broker.advance(FINISH_MS)
    assert drained.owner.told[-1] == "over, 1 unfinished"


def test_a_consumer_may_send_its_reply_before_it_settles(drained: Drained) -> None:
    drained.broker.fill(count=1)
    client = drained.broker.session()
    client.attach_receiver(credit=1)
    delivery = client.expect(Transfer)
    client.attach(attach_sender("replies", handle=1))
    client.frames()
    drained.finish()
    assert credit_of(client, handle=1) == [0, 1]
    client.transfer(0, handle=1)
    assert credit_of(client, handle=1) == [1]
    client.send(Disposition(first=delivery.delivery_id or 0, state=ACCEPTED))
    drained.broker.advance(STILL)
    drained.broker.advance(STILL)
    assert (taken(drained.broker, "replies"), drained.owner.told[-1]) == (1, "over, 0 unfinished")


def test_a_transaction_goes_on_and_is_committed(drained: Drained) -> None:
    controller = Controller(drained.broker)
    controller.client.attach_sender()
    txn = controller.declare()
    controller.post(txn, b"one")
    controller.client.frames()
    drained.finish()
    assert credit_of(controller.client) == [0, 1]
    controller.transfer(message(b"two"), state=TransactionalState(txn_id=txn))
    told = controller.client.bodies()
    assert [type(body) for body in told] == [Flow, Disposition], "credit for one more, an outcome"
    drained.broker.advance(FINISH_MS // 2)
    assert drained.owner.told == ["announced", "finishing"]
    controller.commit(txn)
    controller.declare()  # as JMS clients do: it has no operations, and is not waited for
    drained.broker.advance(STILL)
    drained.broker.advance(STILL)
    assert (taken(drained.broker), drained.owner.told[-1]) == (2, "over, 0 unfinished")


def test_the_credit_of_many_links_is_taken_back_in_stretches(drained: Drained) -> None:
    client = drained.broker.session()
    for number in range(STRETCH + 1):
        client.send(attach_sender(name=f"s{number}", handle=number))
    client.frames()
    drained.announce()
    drained.broker.advance(ANNOUNCE_MS)
    steps = []
    for _ in range(4):
        drained.broker.container.tick()
        steps.append(sum(isinstance(body, Flow) for body in client.bodies()))
    assert steps == [STRETCH, 1, 0, 0]


def test_a_broker_without_an_owner_is_not_drained() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    broker.advance(10 * ANNOUNCE_MS)
    assert broker.container.drain.phase() is DrainPhase.SERVING
    assert not broker.container.drain.keeps_clients_out()
    client.transfer(0, payload=message(b"x"))
    client.expect_last(Disposition)
