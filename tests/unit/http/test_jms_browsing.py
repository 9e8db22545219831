"""Browsing over HTTP: messages stay where they are."""

from __future__ import annotations

import json

import pytest

from broker.http.limits import JMS_BROWSED_MAX
from broker.security.identity import ADMIN
from tests.support.access import ADA, RuledUsers
from tests.support.broker import Broker
from tests.support.frames import message
from tests.support.http import served
from tests.support.jms_http import call
from tests.support.linkless import send

pytestmark = pytest.mark.requirement("MAP-09")


@pytest.mark.parametrize(
    ("query", "bodies"),
    [
        pytest.param("", [f"{number}" for number in range(10)], id="the first ten"),
        pytest.param("?limit=2", ["0", "1"], id="fewer"),
        pytest.param("?limit=100", [f"{number}" for number in range(12)] + ["x"], id="all"),
        pytest.param("?selector=n%3D1", ["x"], id="selected"),
        pytest.param("?selector=n%3D2", [], id="none"),
    ],
)
async def test_messages_are_shown_in_their_order(query: str, bodies: list[str]) -> None:
    broker = Broker()
    broker.fill(count=12)
    send(broker, user="", encoded=message(b"x", properties={"n": 1}))
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await call("GET", f"{url}/jms/browse/queue/q{query}")
    found = json.loads(answer.body)["messages"]
    assert [each["messageType"] for each in found] == ["BytesMessage"] * len(bodies)
    assert len(found) == len(bodies)
    assert (broker.queue().contents(), broker.queue().state.acquired) == (13, 0)
    assert broker.stats.acknowledged == 0


@pytest.mark.parametrize(
    ("path", "status", "slug"),
    [
        ("nowhere", 404, "not-found"),
        ("q?limit=0", 400, "bad-request"),
        (f"q?limit={JMS_BROWSED_MAX + 1}", 400, "bad-request"),
        ("q?selector=a+%3D", 400, "invalid-selector"),
        ("q?JMSType=a", 400, "bad-request"),
    ],
)
async def test_what_is_refused(path: str, status: int, slug: str) -> None:
    broker = Broker()
    broker.fill()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await call("GET", f"{url}/jms/browse/queue/{path}")
    assert answer.problem()[:2] == (status, slug)
    assert list(broker.router.queues) == ["q"]


@pytest.mark.attack("Z7")
@pytest.mark.requirement("OPS-08")
async def test_a_client_whose_login_has_ended_meanwhile_sees_nothing() -> None:
    users = RuledUsers({"": {ADMIN}, ADA: {ADMIN}})
    broker = Broker(authenticator=users)
    send(broker)
    users.ended.add("")  # the request is admitted: only what follows asks whether its login is over
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await call("GET", f"{url}/jms/browse/queue/q")
    assert answer.problem() == (403, "not-permitted", "the login is no longer valid")
