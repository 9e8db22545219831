"""The audit of what requests of JMS over HTTP change."""

from __future__ import annotations

import pytest

from tests.support.audit import RecordingAudit
from tests.support.broker import Broker
from tests.support.http import served
from tests.support.jms_http import post


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
