"""Dead letters and expired messages: the broker moves them, and no client gains a right by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.amqp.errors import UNAUTHORIZED_ACCESS
from broker.amqp.outcomes import Accepted, Error, Modified, Outcome, Rejected
from broker.amqp.performatives import Attach
from broker.amqp.terminus import COPY, Source
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.queues.queue_inspection import peek
from tests.support.access import (
    ADA,
    CONNECTING,
    OWNER,
    RuledUsers,
    access_of,
    recorded,
    refusal,
    refusal_of_attach,
    session_as,
)
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, attach_receiver, attach_sender, message
from tests.support.management import Manager

pytestmark = pytest.mark.requirement("SEC-03")

FAILING = AddressPolicy(dead_letter="dead", expiry="late", max_delivery_count=2)

USING = ("send,receive,create queue:in",)
"""The rights of `ada`, who may use neither the dead-letter queue nor any other."""

FORGED: dict[str, object] = {
    "x-opt-ORIG-ADDRESS": "private",
    "x-opt-ORIG-QUEUE": "private",
    "x-opt-dead-letter-subscription": "durable/owner/n",
    "x-opt-dead-letter-held": True,
}
"""Annotations with which a message claims to be a dead letter of another queue."""


def broker_with(*rights: str, patterns: tuple[str, ...] = ("in",)) -> Broker:
    """Return a broker in which messages fail or expire in `in`, with the queue `private`."""
    broker = Broker(
        authenticator=RuledUsers(),
        access=access_of(*rights, connecting=CONNECTING),
        patterns=[(each, FAILING) for each in patterns],
        credit=1000,
    )
    broker.router.create(broker.router.parse("private", "queue"), broker.journal.batch)
    return broker


def send(client: Client, **fields: object) -> None:
    """Send a message to `in` that names `private` wherever a message can name an address."""
    client.attach_sender("in", name="to", handle=1)
    payload = message(to="private", annotations=FORGED, **fields)  # type: ignore[arg-type]
    client.transfer(handle=1, payload=payload, settled=True)


def contents(broker: Broker) -> dict[str, int]:
    return {name: int(queue.contents()) for name, queue in broker.router.queues.items()}


def origin(broker: Broker, name: str) -> list[object]:
    """Return what the only message of a queue tells of its origin."""
    (entry,) = peek(broker.queue(name).backlogs, -1, 9)
    told = {str(key): value for key, value in entry.message.annotations().pairs}
    return [told.get(key) for key in FORGED]


def settling(outcome: Outcome, times: int = 1) -> Callable[[Broker, Client], None]:
    """Return an act: receive the message, and settle it `times` times with `outcome`."""

    def act(_: Broker, client: Client) -> None:
        client.attach_receiver("in", credit=times)
        for number in range(times):
            client.send(Disposition(first=number, state=outcome))

    return act


def expire(broker: Broker, _: Client) -> None:
    broker.advance(5000)


REJECTED = Rejected(error=Error(condition="private", description="private"))
FAILED = Modified(delivery_failed=True)

MOVES = [
    pytest.param(settling(REJECTED), "dead", id="rejected"),
    pytest.param(settling(FAILED, 2), "dead", id="failed too often"),
    pytest.param(expire, "late", id="expired"),
]


@pytest.mark.parametrize(("act", "target"), MOVES)
def test_a_moved_message_is_only_where_the_settings_say(
    act: Callable[[Broker, Client], None], target: str
) -> None:
    """Its sender needs no right there, and cannot choose another place."""
    running = broker_with(*USING)
    client = session_as(running)
    send(client, ttl=1000)
    act(running, client)
    assert contents(running) == {"private": 0, "in": 0, target: 1}
    assert origin(running, target) == ["in", "in", None, None], "the broker's own annotations count"


@pytest.mark.parametrize(("act", "target"), MOVES)
def test_no_rule_is_asked_for_a_move(act: Callable[[Broker, Client], None], target: str) -> None:
    """Another client that is there does not lend its rights, and none of its user is missing."""
    running = broker_with(*USING)
    client = session_as(running)
    send(client, ttl=1000)
    rules, access = recorded(running.container.access)
    running.container.access = access
    act(running, client)
    asked = [right for _, right, _ in rules.decided if "queue:in" not in right]
    assert asked == []
    assert running.stats.access_denied == 0
    assert contents(running)[target] == 1


def reading(name: str, **source: object) -> Attach:
    return attach_receiver(source=Source(address=name, **source))  # type: ignore[arg-type]


READS = [
    pytest.param(reading("dead"), "receive queue:dead", id="receiving"),
    pytest.param(reading("/queue/durable/dead"), "receive queue:dead", id="in its long form"),
    pytest.param(reading("queue://dead"), "receive queue:dead", id="with a prefix"),
    pytest.param(reading("dead", distribution_mode=COPY), "browse queue:dead", id="browsing"),
    pytest.param(attach_sender("dead"), "send queue:dead", id="sending"),
]


@pytest.mark.parametrize(("attach", "right"), READS)
@pytest.mark.parametrize("exists", [True, False], ids=["with a message", "not there yet"])
def test_a_dead_letter_queue_needs_rights_of_its_own(
    attach: Attach, right: str, *, exists: bool
) -> None:
    running = broker_with(*USING)
    client = session_as(running)
    if exists:
        send(client)
        settling(REJECTED)(running, client)
    other = session_as(running, ADA, "another")
    assert refusal_of_attach(other, attach) == refusal(right)
    assert contents(running).get("dead", 0) == exists


def test_a_user_with_the_rights_reads_the_dead_letters() -> None:
    running = broker_with(*USING, "receive queue:dead")
    client = session_as(running)
    send(client)
    settling(REJECTED)(running, client)
    reader = session_as(running, ADA, "another")
    reader.attach_receiver("dead", credit=1)
    reader.send(Disposition(first=0, state=Accepted()))
    assert contents(running) == {"private": 0, "in": 0, "dead": 0}


def test_a_message_that_names_a_dead_letter_queue_is_refused_by_the_relay() -> None:
    running = broker_with(*USING)
    client = session_as(running)
    client.attach_sender(None)
    client.transfer(payload=message(to="dead"))
    state = client.expect_last(Disposition).state
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == UNAUTHORIZED_ACCESS
    assert "dead" not in running.router.queues


def test_an_administrator_who_retries_dead_letters_brings_them_back_to_their_queue() -> None:
    """And not to that which their sender has named."""
    running = broker_with(*USING)
    client = session_as(running)
    send(client)
    settling(REJECTED)(running, client)
    client.hang_up()
    root = Manager(running, client=session_as(running, OWNER))
    reply = root.ask("RETRY", "message", queue="dead", all=True)
    assert reply.map["moved"] == 1, reply
    assert contents(running) == {"private": 0, "in": 1, "dead": 0}


def test_a_dead_letter_that_is_rejected_again_goes_no_further() -> None:
    running = broker_with(*USING, "receive queue:dead", patterns=("in", "dead"))
    client = session_as(running)
    send(client)
    settling(REJECTED)(running, client)
    reader = session_as(running, ADA, "another")
    reader.attach_receiver("dead", credit=1)
    reader.send(Disposition(first=0, state=REJECTED))
    assert contents(running) == {"private": 0, "in": 0, "dead": 0}
    assert running.stats.dropped == 1
