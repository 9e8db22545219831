"""Leases of durable subscriptions that also have consumers."""

import pytest

from broker.amqp.terminus import NEVER, Source
from broker.security.identity import Identity
from tests.support.access import ADA, access_of, refusal
from tests.support.frames import attach_receiver
from tests.unit.management.test_leases import driver, told


@pytest.mark.requirement("PIP-01")
def test_a_subscription_is_leased_by_its_identity() -> None:
    broker, lead = driver()
    subscriber = broker.session("c")
    source = Source(address="t", capabilities=["topic"], durable=2, expiry_policy=NEVER)
    subscriber.attach(attach_receiver(name="s", source=source))
    subscriber.hang_up()
    broker.fill("t", 3, kind="topic")
    lead.open(subscription="durable/c/s")
    assert lead.acquire().map["messages"] == 3
    assert lead.ask("READ", "lease", "l").map["subscription"] == "durable/c/s"
    assert lead.settle(1).status == 200
    assert lead.ask("DELETE", "subscription", "durable/c/s", force=True).status == 204
    assert lead.settle(1).status == 410
    reply = lead.ask("OPEN", "lease", "l", subscription="durable/c/s")
    assert told(reply) == (404, "no subscription durable/c/s")


@pytest.mark.parametrize("exists", [True, False], ids=["one that exists", "none"])
def test_a_refusal_does_not_tell_whether_there_is_a_subscription(exists: bool) -> None:
    broker, lead = driver()
    if exists:
        source = Source(address="t", capabilities=["topic"], durable=2, expiry_policy=NEVER)
        broker.session("c").attach(attach_receiver(name="s", source=source))
    broker.container.access = access_of("edit management:leases")
    lead.client.peer.identity = Identity(ADA, roles=frozenset())
    reply = lead.ask("OPEN", "lease", "l", subscription="durable/c/s")
    assert told(reply) == (403, refusal("lease subscription:c/s"))


@pytest.mark.requirement("PIP-01")
def test_a_lease_that_may_not_join_a_consumer_does_not_begin() -> None:
    broker, lead = driver()
    source = Source(address="t", capabilities=["topic"], durable=2, expiry_policy=NEVER)
    broker.session("c").attach(attach_receiver(name="s", source=source))
    reply = lead.ask("OPEN", "lease", "l", subscription="durable/c/s")
    assert told(reply) == (409, "s is not shared, and has its consumer")
    assert lead.query("lease").rows == []


@pytest.mark.requirement("PIP-03")
@pytest.mark.parametrize("operation", ["OPEN", "RENEW", "ACQUIRE"])
def test_a_lease_that_rested_does_not_join_the_consumer_who_has_come(operation: str) -> None:
    broker, lead = driver()
    source = Source(address="t", capabilities=["topic"], durable=2, expiry_policy=NEVER)
    subscriber = broker.session("c")
    subscriber.attach(attach_receiver(name="s", source=source))
    subscriber.hang_up()
    fencing_token = lead.open(subscription="durable/c/s", ttl_ms=1000)
    broker.advance(1000)
    subscriber = broker.session("c")
    subscriber.attach(attach_receiver(name="s", source=source))
    asked: dict[str, dict[str, object]] = {
        "OPEN": {"subscription": "durable/c/s"},
        "RENEW": {"fencing_token": fencing_token},
        "ACQUIRE": {"fencing_token": fencing_token, "batch": 1},
    }
    reply = lead.tell(operation, asked[operation])
    assert told(reply) == (409, "s is not shared, and has its consumer")
    assert lead.settle(0, fencing_token=fencing_token).status == 200
    subscriber.hang_up()
    assert lead.tell("RENEW", {"fencing_token": fencing_token}).status == 200
