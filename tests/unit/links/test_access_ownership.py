"""Durable subscriptions belong to a user: others do not take them over (Z11, SUB-37)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.amqp.errors import UNAUTHORIZED_ACCESS
from broker.amqp.performatives import Attach
from broker.amqp.terminus import NEVER, Source
from broker.security.access import AccessRules
from broker.security.rules import rule_of
from storage.api import Store
from storage.memory import MemoryStore
from tests.support.broker import Broker, Client, Doorman, log_in
from tests.support.frames import attach_receiver
from tests.support.subscriptions import leave, looking_up, subscribe, subscribing, unsubscribe

pytestmark = [pytest.mark.requirement("SEC-04"), pytest.mark.attack("Z11")]

CLIENT = "shop"
DURABLE = "durable"


def broker(*, access: AccessRules | None = None, store: Store | None = None) -> Broker:
    return Broker(authenticator=Doorman(administrators=["root"]), access=access, store=store)


def client_of(running: Broker, user: str) -> Client:
    client = running.session(CLIENT)
    log_in(client, user)
    return client


def subscribed(running: Broker, user: str, words: str = DURABLE) -> None:
    """Make `user` subscribe to `t`, and leave the subscription behind."""
    client = client_of(running, user)
    subscribe(client, words)
    leave(client)
    client.hang_up()


def owners(running: Broker) -> list[str]:
    return [each.owner for each in running.router.subscriptions.named.values()]


ATTACHES = [
    pytest.param(lambda: subscribing(DURABLE), id="by resuming it"),
    pytest.param(lambda: subscribing(DURABLE, address="other"), id="by asking for another topic"),
    pytest.param(looking_up, id="by looking it up"),
]


@pytest.mark.parametrize("attach", ATTACHES)
def test_another_user_does_not_get_a_subscription(attach: Callable[[], Attach]) -> None:
    running = broker()
    subscribed(running, "ada")
    bob = client_of(running, "bob")
    bob.send(attach())
    bob.expect_refusal(UNAUTHORIZED_ACCESS)
    assert "not allowed to use client-id:shop (no rule allows it)" in running.watcher.events[-1]
    assert owners(running) == ["ada"]
    bob.hang_up()
    ada = client_of(running, "ada")
    subscribe(ada, DURABLE)
    leave(ada)
    assert unsubscribe(ada) is None


def private(**fields: object) -> Attach:
    """Return the attach of a subscription without a name that outlives its connection."""
    return subscribing(**{"expiry_policy": NEVER, **fields})  # type: ignore[arg-type]


DURABLE_TOPIC = "/topic/durable/t"

LOST = [
    pytest.param("t", lambda: private(), id="by expiry-policy"),
    pytest.param(
        DURABLE_TOPIC, lambda: subscribing(address=DURABLE_TOPIC), id="by the class of its topic"
    ),
]

RETURNS = [
    pytest.param(lambda lost: lost, id="by resuming it"),
    pytest.param(lambda _: private(address="other"), id="by ending it"),
    pytest.param(lambda _: subscribing(DURABLE), id="by a name for the link's"),
    pytest.param(
        lambda _: attach_receiver(
            name="n", source=Source(dynamic=True, capabilities=["topic"], expiry_policy=NEVER)
        ),
        id="by a dynamic topic",
    ),
]


@pytest.mark.parametrize(("topic", "attach"), LOST)
@pytest.mark.parametrize("again", RETURNS)
def test_another_user_does_not_get_a_subscription_that_waits_for_its_subscriber(
    topic: str, attach: Callable[[], Attach], again: Callable[[Attach], Attach]
) -> None:
    running = broker()
    ada = client_of(running, "ada")
    ada.attach(attach())
    ada.hang_up()
    running.fill(topic, kind="topic")
    bob = client_of(running, "bob")
    bob.send(again(attach()))
    bob.expect_refusal(UNAUTHORIZED_ACCESS)
    bob.hang_up()
    ada = client_of(running, "ada")
    ada.attach(attach())
    ada.flow(handle=0, credit=9, delivery_count=0)
    ada.expect_deliveries(b"0")


def test_an_attach_that_is_refused_leaves_no_dynamic_topic() -> None:
    running = broker()
    ada = client_of(running, "ada")
    ada.attach(private())
    ada.hang_up()
    bob = client_of(running, "bob")
    topics = set(running.router.topics)
    dynamic = Source(dynamic=True, capabilities=["topic"], expiry_policy=NEVER)
    bob.send(attach_receiver(name="n", source=dynamic))
    bob.expect_refusal(UNAUTHORIZED_ACCESS)
    assert set(running.router.topics) == topics


@pytest.mark.parametrize("adopts", [True, False])
def test_a_waiting_subscription_of_a_client_without_a_login(*, adopts: bool) -> None:
    """It becomes that of the first user, unless the setting `ownership` is strict."""
    running = broker()
    running.container.adopts_subscriptions = adopts
    for user, source_expected in (("", True), ("ada", adopts), ("bob", False)):
        client = client_of(running, user)
        answer = client.attach(private())
        assert (answer.source is not None) is source_expected, user
        client.hang_up()


def test_an_administrator_may_use_every_client_id() -> None:
    running = broker()
    subscribed(running, "ada")
    assert unsubscribe(client_of(running, "root")) is None


def test_a_rule_lets_another_user_use_a_client_id() -> None:
    # the clients of this test log in after their open
    who = ["user:ada", "user:bob", "anonymous"]
    rule = {"id": "deputies", "who": who, "can": ["use"], "on": ["client-id:shop"]}
    running = broker(access=AccessRules([rule_of(rule, "rule")]))
    subscribed(running, "ada")
    subscribe(client_of(running, "bob"), DURABLE)
    assert owners(running) == ["ada"], "its owner stays"


def test_a_subscription_without_an_owner_belongs_to_the_first_user() -> None:
    running = broker()
    subscribed(running, "")
    assert owners(running) == [""]
    subscribed(running, "ada")
    assert owners(running) == ["ada"]
    bob = client_of(running, "bob")
    bob.send(subscribing(DURABLE))
    bob.expect_refusal(UNAUTHORIZED_ACCESS)


def test_a_global_subscription_belongs_to_all_users_that_have_its_rights() -> None:
    running = broker()
    subscribed(running, "ada", "shared global durable")
    subscribe(client_of(running, "bob"), "shared global durable")


async def test_the_owner_is_stored() -> None:
    store = MemoryStore()
    running = broker(store=store)
    subscribed(running, "ada")
    running.container.run_round()
    (stored,) = await store.subscriptions()
    assert (stored.container_id, stored.owner) == (CLIENT, "ada")


@pytest.mark.parametrize("attach", [ATTACHES[0], ATTACHES[2]])
async def test_the_owner_of_an_adopted_subscription_is_stored(
    attach: Callable[[], Attach],
) -> None:
    store = MemoryStore()
    running = broker(store=store)
    subscribed(running, "")
    ada = client_of(running, "ada")
    ada.attach(attach())
    running.container.run_round()
    (stored,) = await store.subscriptions()
    assert stored.owner == "ada"
    assert running.watcher.events[-1].endswith(", which had no owner, belongs to ada now")


@pytest.mark.parametrize("attach", ATTACHES)
async def test_a_strict_broker_gives_no_subscription_away(attach: Callable[[], Attach]) -> None:
    store = MemoryStore()
    running = broker(store=store)
    running.container.adopts_subscriptions = False
    subscribed(running, "")
    ada = client_of(running, "ada")
    ada.send(attach())
    ada.expect_refusal(UNAUTHORIZED_ACCESS)
    assert owners(running) == [""]
    (stored,) = await store.subscriptions()
    assert stored.owner == ""


def test_a_strict_broker_obeys_the_rules_on_client_ids() -> None:
    who = ["user:ada", "anonymous"]
    rule = {"id": "heirs", "who": who, "can": ["use"], "on": ["client-id:shop"]}
    running = broker(access=AccessRules([rule_of(rule, "rule")]))
    running.container.adopts_subscriptions = False
    subscribed(running, "")
    subscribe(client_of(running, "ada"), DURABLE)
    assert owners(running) == [""], "the right to use it makes no owner"
