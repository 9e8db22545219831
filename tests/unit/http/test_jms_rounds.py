"""The audit of what requests of JMS over HTTP change."""

from __future__ import annotations

import pytest

from broker.http import jms_waiting
from broker.management.message_audit import AuditedQueues
from broker.routing.addresses.policy import AddressPolicy
from tests.support.audit import RecordingAudit
from tests.support.broker import Broker, Doorman
from tests.support.http import basic, served
from tests.support.jms_http import call, post


@pytest.mark.requirement("MAP-09")
async def test_a_created_queue_is_recorded_with_the_user_of_the_request() -> None:
    broker = Broker()
    audit = RecordingAudit()
    broker.container.audit = audit
    broker.router.changes.are_recorded = True
    async with served(broker.store, broker=broker, jms=True) as url:
        await post(f"{url}/jms/queue/a", [], b"x")
        await post(f"{url}/jms/receive/queue/b")
    created = [event for event in audit.events if event.action == "node.created"]
    assert [(event.resource, event.actor.via) for event in created] == [
        ("queue:a", "http"),
        ("queue:b", "http"),
    ]


@pytest.mark.requirement("MAP-09", "OPS-08")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param("/jms/queue/a", 503, id="a message that the new queue has no room for"),
        pytest.param("/jms/receive/queue/a", 429, id="more requests that wait than a user may"),
    ],
)
async def test_a_queue_that_a_refused_request_created_is_recorded_with_its_user(
    monkeypatch: pytest.MonkeyPatch, path: str, status: int
) -> None:
    monkeypatch.setattr(jms_waiting, "JMS_WAITING_PER_USER_MAX", 0)
    doorman = Doorman({"ada": "x", "bob": "x"}, administrators=["ada", "bob"])
    policy = AddressPolicy(max_bytes=1, full="reject")
    broker = Broker(authenticator=doorman, policy=policy)
    audit = RecordingAudit()
    broker.container.audit = audit
    broker.router.changes.are_recorded = True
    ada, bob = (list(basic(name, "x").items()) for name in ("ada", "bob"))
    async with served(broker.store, broker=broker, jms=True) as url:
        assert (await post(url + path, ada, b"xx")).status == status
        await post(f"{url}/jms/queue/b", bob, b"")
    created = [event for event in audit.events if event.action == "node.created"]
    assert [(event.resource, event.actor.user) for event in created] == [
        ("queue:a", "ada"),
        ("queue:b", "bob"),
    ]


@pytest.mark.requirement("MAP-09", "SEC-08")
async def test_messages_of_an_audited_queue_are_recorded_with_their_users() -> None:
    doorman = Doorman({"ada": "x", "bob": "x"}, administrators=["ada", "bob"])
    broker = Broker(authenticator=doorman)
    audit = RecordingAudit()
    broker.container.audit = audit
    broker.router.context.observer_choice = AuditedQueues(["queue:hr.#"], broker.container)
    ada, bob = (list(basic(name, "x").items()) for name in ("ada", "bob"))
    async with served(broker.store, broker=broker, jms=True) as url:
        await post(f"{url}/jms/queue/hr.pay", ada, b"x")
        answer = await post(f"{url}/jms/receive/queue/hr.pay", bob)
        await call("DELETE", f"{url}/jms/receipts/{answer.header('JMS-Receipt')}", bob)
    found = [each for each in audit.events if each.action.startswith("message.")]
    assert [(each.actor.user, each.actor.via, each.action) for each in found] == [
        ("ada", "http", "message.enqueued"),
        ("bob", "http", "message.delivered"),
        ("bob", "http", "message.accepted"),
    ]
