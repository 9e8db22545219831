"""Suspended deliveries belong to a user: others neither resume nor end them (Z11)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.amqp.errors import UNAUTHORIZED_ACCESS
from broker.amqp.performatives import RCV_SECOND, Attach
from broker.amqp.terminus import CONNECTION_CLOSE, Source, Target
from broker.security.access import AccessRules
from broker.security.rules import rule_of
from tests.conformance.resuming import unsettled_map
from tests.support.broker import Broker, Client, Doorman, log_in
from tests.support.frames import attach_receiver, attach_sender
from tests.support.resuming import tags_of
from tests.support.unsettled_maps import told

pytestmark = [pytest.mark.requirement("SEC-04"), pytest.mark.attack("Z11")]

LINK = "n"

SOURCE = Source(address="q", expiry_policy=CONNECTION_CLOSE, timeout=200)
TARGET = Target(address="q", expiry_policy=CONNECTION_CLOSE, timeout=200)


def broker(*, access: AccessRules | None = None) -> Broker:
    return Broker(authenticator=Doorman(administrators=["root"]), access=access)


def client_of(running: Broker, user: str) -> Client:
    client = running.session("shop")
    log_in(client, user)
    return client


def leave_messages(running: Broker, user: str) -> dict[bytes, None]:
    """Let `user` lose its connection while it holds two messages; return their states."""
    running.fill(count=2)
    client = client_of(running, user)
    client.attach_receiver(name=LINK, source=SOURCE, credit=2)
    client.expect_deliveries(b"0", b"1")
    client.hang_up()
    return dict.fromkeys(tags_of(2))


def leave_outcome(running: Broker, user: str) -> dict[bytes, None]:
    """Let `user` lose its connection before it settles what it sent; return the states."""
    client = client_of(running, user)
    client.attach_sender(name=LINK, target=TARGET, rcv_settle_mode=RCV_SECOND)
    client.transfer(0, tag=b"order")
    client.hang_up()
    return {b"order": None}


def come_back(client: Client, states: dict[bytes, None], *, incoming: bool) -> dict[bytes, object]:
    """Attach the link again; return what the broker has left of the deliveries."""
    mapped = unsettled_map(dict(states))
    if incoming:
        answer = client.attach_sender(
            name=LINK, target=TARGET, rcv_settle_mode=RCV_SECOND, unsettled=mapped
        )
    else:
        answer = client.attach_receiver(name=LINK, source=SOURCE, unsettled=mapped)
    return dict(told(answer) or {})


SIDES = [
    pytest.param(leave_messages, False, id="messages of a receiver"),
    pytest.param(leave_outcome, True, id="outcomes of a sender"),
]

ATTACHES = [
    pytest.param(leave_messages, attach_receiver(name=LINK), id="a receiver of the queue"),
    pytest.param(leave_messages, attach_receiver("other", name=LINK), id="of another queue"),
    pytest.param(
        leave_messages, attach_receiver(name=LINK, source=Source(dynamic=True)), id="of a dynamic"
    ),
    pytest.param(
        leave_messages,
        attach_receiver(name=LINK, source=Source(address="t", capabilities=["topic"])),
        id="a subscriber",
    ),
    pytest.param(leave_outcome, attach_sender(name=LINK), id="a sender to the queue"),
    pytest.param(leave_outcome, attach_sender("other", name=LINK), id="to another queue"),
    pytest.param(leave_outcome, attach_sender(None, name=LINK), id="to the anonymous relay"),
    pytest.param(
        leave_outcome, attach_sender(name=LINK, target=Target(dynamic=True)), id="to a dynamic"
    ),
]


@pytest.mark.parametrize(("lose", "attach"), ATTACHES)
def test_another_user_does_not_get_at_suspended_deliveries(
    lose: Callable[[Broker, str], dict[bytes, None]], attach: Attach
) -> None:
    running = broker()
    states = lose(running, "ada")
    nodes = set(running.router.queues) | set(running.router.topics)
    bob = client_of(running, "bob")
    bob.send(attach)
    bob.expect_refusal(UNAUTHORIZED_ACCESS)
    assert "not allowed to use client-id:shop (no rule allows it)" in running.watcher.events[-1]
    assert set(running.router.queues) | set(running.router.topics) == nodes
    assert running.container.link_count() == 0
    bob.hang_up()
    ada = client_of(running, "ada")
    incoming = lose is leave_outcome
    assert come_back(ada, states, incoming=incoming).keys() == states.keys()


@pytest.mark.parametrize(("lose", "incoming"), SIDES)
def test_a_link_of_the_other_role_or_another_name_is_free(
    lose: Callable[[Broker, str], dict[bytes, None]], *, incoming: bool
) -> None:
    running = broker()
    lose(running, "ada")
    bob = client_of(running, "bob")
    if incoming:
        bob.attach_receiver(name=LINK)
    else:
        bob.attach_sender(name=LINK)
    bob.attach_sender(name="another", handle=1)
    assert running.container.link_count() == 2
    assert running.router.termini.count() == 1


def deputies() -> AccessRules:
    # the clients of this test log in after their open
    who = ["user:ada", "user:bob", "anonymous"]
    rule = {"id": "deputies", "who": who, "can": ["use"], "on": ["client-id:shop"]}
    return AccessRules([rule_of(rule, "rule")])


ALLOWED = [
    pytest.param("root", None, id="an administrator"),
    pytest.param("bob", deputies(), id="a user that a rule allows"),
]


@pytest.mark.parametrize(("lose", "incoming"), SIDES)
@pytest.mark.parametrize(("user", "access"), ALLOWED)
def test_with_the_right_on_the_client_id_another_user_ends_the_terminus(
    lose: Callable[[Broker, str], dict[bytes, None]],
    user: str,
    access: AccessRules | None,
    *,
    incoming: bool,
) -> None:
    running = broker(access=access)
    states = lose(running, "ada")
    assert come_back(client_of(running, user), states, incoming=incoming) == {}
    assert running.router.termini.count() == 0


@pytest.mark.parametrize(("lose", "incoming"), SIDES)
def test_suspended_deliveries_of_a_client_without_a_login_are_those_of_the_first_user(
    lose: Callable[[Broker, str], dict[bytes, None]], *, incoming: bool
) -> None:
    running = broker()
    states = lose(running, "")
    ada = client_of(running, "ada")
    assert come_back(ada, states, incoming=incoming).keys() == states.keys()
    ada.hang_up()
    (terminus,) = running.router.termini.all()
    assert terminus.user == "ada"


@pytest.mark.parametrize(("lose", "incoming"), SIDES)
def test_a_strict_broker_gives_no_suspended_deliveries_away(
    lose: Callable[[Broker, str], dict[bytes, None]], *, incoming: bool
) -> None:
    running = broker()
    running.container.adopts_subscriptions = False
    lose(running, "")
    ada = client_of(running, "ada")
    ada.send(attach_sender(name=LINK) if incoming else attach_receiver(name=LINK))
    ada.expect_refusal(UNAUTHORIZED_ACCESS)
    assert running.router.termini.count() == 1
