"""Rights to receive from the dynamic node of another connection (TMP-04, SEC-03)."""

from __future__ import annotations

from typing import Final

import pytest

from broker.amqp.errors import RESOURCE_LOCKED, UNAUTHORIZED_ACCESS
from broker.amqp.performatives import Detach
from broker.amqp.terminus import COPY, MOVE, Source, Target
from broker.security.access import AccessRules
from tests.support.access import ADA, CONNECTING, OWNER, RuledUsers, access_of, session_as
from tests.support.broker import Broker, Client
from tests.support.frames import attach_receiver, attach_sender, message

pytestmark = [pytest.mark.requirement("TMP-04", "SEC-03"), pytest.mark.attack("Z2")]

APPLICATION: Final = {ADA: ("application",), "bob": ("application",)}
RIGHT: Final = "receive temporary:dynamic"
MAKING: Final = (*CONNECTING, "create temporary:topic", "send temporary:*", "subscribe topic:#")


def running(access: AccessRules | None = None) -> Broker:
    """Return a broker with these rules; without any, its users have the role application."""
    return Broker(
        authenticator=RuledUsers(APPLICATION if access is None else None),
        access=access or AccessRules(),
        credit=1000,
    )


def made(client: Client, *capabilities: str, incoming: bool = True) -> str:
    """Create a dynamic node; return its address. `incoming`: by a link on which `client` sends."""
    wanted = list(capabilities)
    answer = client.attach(
        attach_sender(target=Target(dynamic=True, capabilities=wanted))
        if incoming
        else attach_receiver(source=Source(dynamic=True, capabilities=wanted))
    )
    terminus = answer.target if incoming else answer.source
    assert isinstance(terminus, Source | Target)
    assert terminus.address is not None
    return terminus.address


def refusal(client: Client, address: str, *, mode: str = MOVE) -> str | None:
    """Attach to receive from `address`; return the condition of the refusal, None if granted."""
    client.send(attach_receiver(source=Source(address=address, distribution_mode=mode)))
    detaches = [body for body in client.bodies() if isinstance(body, Detach)]
    return detaches[0].error.condition if detaches and detaches[0].error is not None else None


KINDS = [
    pytest.param((), None, id="none"),
    pytest.param(("queue",), None, id="queue"),
    pytest.param(("topic",), None, id="topic"),
    pytest.param(("temporary-queue",), RESOURCE_LOCKED, id="temporary-queue"),
    pytest.param(("temporary-topic",), RESOURCE_LOCKED, id="temporary-topic"),
    pytest.param(("queue", "temporary-queue"), RESOURCE_LOCKED, id="both"),
]


@pytest.mark.parametrize("incoming", [True, False], ids=["made to send", "made to receive"])
@pytest.mark.parametrize("mode", [MOVE, COPY], ids=["receive", "browse"])
@pytest.mark.parametrize(("capabilities", "told"), KINDS)
def test_the_capability_says_whether_others_may_receive(
    capabilities: tuple[str, ...], told: str | None, mode: str, incoming: bool
) -> None:
    broker = running()
    address = made(session_as(broker, ADA), *capabilities, incoming=incoming)
    assert refusal(session_as(broker, ADA, "another"), address, mode=mode) == told


def test_a_message_reaches_the_receiver_of_another_connection() -> None:
    broker = running()
    sender = session_as(broker, ADA)
    address = made(sender)
    other = session_as(broker, ADA, "another")
    assert refusal(other, address) is None
    other.flow(handle=0, credit=1, delivery_count=0)
    sender.transfer(payload=message(b"for the other"), settled=True)
    other.expect_deliveries(b"for the other")


USERS = [
    pytest.param(None, ADA, None, id="without rules, the same user"),
    pytest.param(None, "bob", UNAUTHORIZED_ACCESS, id="without rules, another user"),
    pytest.param(None, OWNER, None, id="without rules, an administrator"),
    pytest.param((), ADA, UNAUTHORIZED_ACCESS, id="the same user without the right"),
    pytest.param((RIGHT,), ADA, None, id="the same user with the right"),
    pytest.param(("receive temporary:*",), ADA, None, id="by a wildcard"),
    pytest.param(("receive queue:#",), ADA, UNAUTHORIZED_ACCESS, id="a right on queues"),
    pytest.param((RIGHT,), "bob", UNAUTHORIZED_ACCESS, id="the right of another user"),
]


@pytest.mark.parametrize("kind", ["queue", "topic"])
@pytest.mark.parametrize(("rights", "user", "told"), USERS)
def test_rules_decide_which_users_may(
    rights: tuple[str, ...] | None, user: str, told: str | None, kind: str
) -> None:
    access = None if rights is None else access_of(*rights, connecting=MAKING)
    broker = running(access)
    address = made(session_as(broker, ADA), kind)
    assert refusal(session_as(broker, user, "another"), address) == told


def test_the_connection_that_made_a_node_needs_no_right_on_it() -> None:
    broker = running(access_of(connecting=MAKING))
    client = session_as(broker, ADA)
    address = made(client)
    client.send(attach_receiver(source=Source(address=address), handle=1))
    assert not any(isinstance(body, Detach) for body in client.bodies())


def test_a_right_that_ends_detaches_the_link() -> None:
    broker = running(access_of(RIGHT))
    address = made(session_as(broker, OWNER))
    other = session_as(broker, ADA, "another")
    assert refusal(other, address) is None
    broker.container.adopt_access(access_of())
    broker.container.tick()
    other.expect_detach(UNAUTHORIZED_ACCESS)


def test_the_first_rules_end_what_the_same_user_had_without() -> None:
    broker = running()
    address = made(session_as(broker, ADA))
    other = session_as(broker, ADA, "another")
    assert refusal(other, address) is None
    broker.container.adopt_access(access_of())
    broker.container.tick()
    other.expect_detach(UNAUTHORIZED_ACCESS)
