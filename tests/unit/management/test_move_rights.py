"""The rights to move messages, and to retry dead letters: on their queue, and where they go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from broker.amqp.outcomes import Rejected
from broker.amqp.terminus import Source
from broker.security.access import AccessRules
from broker.security.identity import APPLICATION, MONITOR, PIPELINE
from tests.support.access import (
    ADA,
    OWNER,
    RuledUsers,
    access_of,
    guarded,
    recorded,
    refusal,
    rule,
    session_as,
)
from tests.support.broker import Broker
from tests.support.frames import Disposition
from tests.support.management import Manager, Reply, request
from tests.support.subscriptions import subscribe, subscribing

pytestmark = pytest.mark.requirement("SEC-03")

EDIT = "edit management:messages"
DLQ = "move queue:DLQ"
IDENTITY = "durable/ada/n"

MOVING = {"queue": "q", "all": True, "to": "r"}
MOVING_ON = {"subscription": IDENTITY, "all": True, "to": "r"}
RETRYING = {"queue": "DLQ", "all": True}

Preparation = Callable[[Broker], None]


def prepared(broker: Broker) -> Broker:
    """Make the queues `q`, with a message, and `r`."""
    maker = Manager(broker, client=session_as(broker, OWNER))
    maker.ask("CREATE", "queue", "r")
    fill(broker, "q")
    return broker


def fill(broker: Broker, address: str, *, kind: str = "queue", count: int = 1) -> None:
    sender = session_as(broker, OWNER, "filler")
    sender.attach_sender(address, kind=kind)
    for number in range(count):
        sender.transfer(number, settled=True)
    sender.hang_up()


def fail(broker: Broker, *addresses: str) -> None:
    """Make queues, each with a message that was rejected, so that it is a dead letter."""
    for address in addresses:
        fill(broker, address)
        consumer = session_as(broker, OWNER, "consumer")
        consumer.attach_receiver(address, credit=1)
        consumer.send(Disposition(first=0, last=0, state=Rejected()))
        consumer.hang_up()


def fail_subscription(broker: Broker, address: str = "t") -> None:
    """Make a durable subscription, a message of which was rejected."""
    consumer = session_as(broker, OWNER, ADA)
    subscribe(consumer, "durable", address=address, credit=1)
    fill(broker, "t", kind="topic")
    consumer.send(Disposition(first=0, last=0, state=Rejected()))
    consumer.hang_up()


def keep(broker: Broker) -> None:
    """Make a durable subscription with a message, and the queue `r`."""
    consumer = session_as(broker, OWNER, ADA)
    consumer.attach(subscribing("durable"))
    consumer.hang_up()
    fill(broker, "t", kind="topic")
    Manager(broker, client=session_as(broker, OWNER)).ask("CREATE", "queue", "r")


def ask(broker: Broker, operation: str, arguments: dict[str, object]) -> Reply:
    payload = request(operation, "message", body=arguments)
    return Manager(broker, client=session_as(broker)).ask_raw(payload)


def counts(broker: Broker) -> list[int]:
    return [int(queue.backlogs.waiting) for queue in broker.queues()]


NEEDED = [
    ("MOVE", MOVING, (EDIT, "move queue:q", "send queue:r"), prepared),
    ("MOVE", MOVING_ON, (EDIT, f"purge subscription:{ADA}/n", "send queue:r"), keep),
    ("COPY", MOVING, (EDIT, "browse queue:q", "send queue:r"), prepared),
    ("COPY", MOVING_ON, (EDIT, f"browse subscription:{ADA}/n", "send queue:r"), keep),
    ("RETRY", RETRYING, (EDIT, DLQ, "send queue:q"), lambda broker: fail(broker, "q")),
    ("RETRY", RETRYING, (EDIT, DLQ, "send topic:t"), fail_subscription),
    ("RETRY", RETRYING, (EDIT, DLQ, "send topic:#"), partial(fail_subscription, address="#")),
]

MISSING = [
    pytest.param(
        *(operation, arguments, needs, missing, before),
        id=f"{operation.lower()}: {needs[-1]}: without {missing or 'nothing'}",
    )
    for operation, arguments, needs, before in NEEDED
    for missing in ("", *needs)
]


@pytest.mark.parametrize(("operation", "arguments", "needs", "missing", "before"), MISSING)
def test_each_right_is_needed(
    operation: str,
    arguments: dict[str, object],
    needs: tuple[str, ...],
    missing: str,
    before: Preparation,
) -> None:
    broker = guarded(*(each for each in needs if each != missing))
    before(broker)
    there = counts(broker)
    reply = ask(broker, operation, arguments)
    if missing:
        assert (reply.status, reply.description) == (403, refusal(missing))
        assert broker.stats.access_denied == sum(broker.stats.by.access_denied.values()) == 1
        assert counts(broker) == there
    else:
        assert reply.status == 200, reply.description
        assert reply.map["copied" if operation == "COPY" else "moved"] == 1
        assert counts(broker) != there


@pytest.mark.parametrize("before", [prepared, lambda _: None], ids=["queues", "no queues"])
@pytest.mark.parametrize(
    ("operation", "arguments", "rights", "missing"),
    [
        pytest.param("MOVE", MOVING, (EDIT, "send queue:r"), "move queue:q", id="the source"),
        pytest.param("MOVE", MOVING, (EDIT, "move queue:q"), "send queue:r", id="the target"),
        pytest.param("RETRY", {**RETRYING, "queue": "q"}, (EDIT,), "move queue:q", id="to retry"),
        pytest.param(
            "MOVE", MOVING_ON, (EDIT,), f"purge subscription:{ADA}/n", id="a subscription"
        ),
    ],
)
def test_a_refusal_does_not_tell_what_exists(
    operation: str,
    arguments: dict[str, object],
    rights: tuple[str, ...],
    missing: str,
    before: Preparation,
) -> None:
    broker = guarded(*rights)
    before(broker)
    reply = ask(broker, operation, arguments)
    assert (reply.status, reply.description) == (403, refusal(missing))


@pytest.mark.parametrize(
    ("to", "rights", "status"),
    [
        pytest.param("r", ("send queue:r",), 404, id="no node"),
        pytest.param("r", ("send topic:r",), 403, id="no node, and the right on a topic"),
        pytest.param("q", ("send queue:q",), 400, id="the same queue"),
        pytest.param("topic://q", ("send queue:q",), 403, id="a topic by a prefix"),
        pytest.param("$management", (), 404, id="no node of clients"),
    ],
)
def test_targets_that_messages_cannot_be_moved_to(
    to: str, rights: tuple[str, ...], status: int
) -> None:
    broker = guarded(EDIT, "move queue:q", *rights)
    fill(broker, "q")
    reply = ask(broker, "MOVE", {**MOVING, "to": to})
    assert reply.status == status, reply.description
    assert counts(broker) == [1]


def test_a_topic_is_told_from_a_queue_only_to_clients_with_a_right() -> None:
    for right, told in (("send topic:t", None), ("move queue:q", "send queue:t")):
        broker = guarded(EDIT, "move queue:q", right)
        fill(broker, "q")
        fill(broker, "t", kind="topic")
        reply = ask(broker, "MOVE", {**MOVING, "to": "t"})
        assert reply.description == (refusal(told) if told else "OK")


def test_dead_letters_that_may_not_be_sent_stay() -> None:
    broker = guarded(EDIT, DLQ, "send queue:a")
    fail(broker, "b", "a", "b")
    reply = ask(broker, "RETRY", RETRYING)
    assert (reply.map["moved"], reply.map["skipped"]) == (1, 2)
    assert reply.map["reason"] == refusal("send queue:b")
    left = {name: int(queue.backlogs.waiting) for name, queue in broker.router.queues.items()}
    assert left == {"a": 1, "b": 0, "DLQ": 2}


def test_many_dead_letters_of_one_queue_take_one_decision() -> None:
    rules, access = recorded(access_of(EDIT, DLQ, "send queue:a"))
    broker = Broker(authenticator=RuledUsers(), access=access)
    fail(broker, *["a"] * 5)
    rules.taken()
    assert ask(broker, "RETRY", RETRYING).map["moved"] == 5
    asked = [right for right, _ in rules.taken() if right.split()[0] in ("move", "send")]
    assert asked == ["move queue:DLQ", "send queue:a"]


def test_a_temporary_queue_is_for_clients_that_may_edit_queues() -> None:
    for rights, status in ((("* temporary:*",), 403), (("edit management:queues",), 200)):
        broker = guarded(EDIT, "send queue:r", *rights)
        prepared(broker)
        owner = session_as(broker, OWNER, "another")
        owner.attach_receiver(None, source=Source(dynamic=True))
        (name,) = [each for each in broker.router.queues if each.startswith("$tmp/")]
        assert ask(broker, "MOVE", {**MOVING, "queue": name}).status == status


@pytest.mark.parametrize("role", [APPLICATION, MONITOR, PIPELINE])
@pytest.mark.parametrize(("operation", "arguments"), [("MOVE", MOVING), ("RETRY", RETRYING)])
def test_of_the_built_in_roles_administrators_alone_move_messages(
    role: str, operation: str, arguments: dict[str, object]
) -> None:
    broker = Broker(authenticator=RuledUsers({ADA: [role]}))
    fail(broker, "q")
    prepared(broker)
    assert ask(broker, operation, arguments).status == 403
    admin = Manager(broker, client=session_as(broker, OWNER))
    assert admin.ask_raw(request(operation, "message", body=arguments)).map["moved"] == 1


def test_a_deny_rule_on_one_queue_keeps_an_administrator_from_moving_its_messages() -> None:
    denied = rule("kept", "move queue:q", who="role:admin", effect="deny")
    broker = Broker(authenticator=RuledUsers({ADA: ["admin"]}), access=AccessRules([denied]))
    prepared(broker)
    reply = ask(broker, "MOVE", MOVING)
    assert (reply.status, reply.description) == (403, "not allowed to move queue:q (rule kept)")
