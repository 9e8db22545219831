"""The problems by which refusals are reported."""

from __future__ import annotations

import json

import pytest

from broker.amqp.errors import LinkFault
from broker.http.jms_problems import EXPECTED, REFUSALS, JmsProblem, problem_of
from broker.jms.errors import MappingError
from broker.links.posting import NoCredit
from broker.management.request import Refused
from broker.routing.errors import LimitReached, NoSuchNode, NotAsSent, NotPermitted, QueueFull
from storage.api import StoreError


@pytest.mark.requirement("OPS-08")
@pytest.mark.parametrize(
    ("error", "status", "slug", "condition", "headers"),
    [
        (NotPermitted("no"), 403, "not-permitted", "amqp:unauthorized-access", {}),
        (NoSuchNode("no"), 404, "not-found", "amqp:not-found", {}),
        (QueueFull("no"), 503, "queue-full", "amqp:resource-limit-exceeded", {"retry-after": "1"}),
        (
            LimitReached("no"),
            429,
            "limit-reached",
            "amqp:resource-limit-exceeded",
            {"retry-after": "1"},
        ),
        (NotAsSent("no"), 400, "bad-request", "amqp:precondition-failed", {}),
        (NoCredit("no", is_by_user=True), 429, "limit-reached", "", {"retry-after": "1"}),
        (NoCredit("no", is_by_user=False), 503, "busy", "", {"retry-after": "1"}),
        (LinkFault("amqp:decode-error", "no"), 400, "invalid-message", "amqp:decode-error", {}),
        (MappingError("no"), 400, "invalid-message", "", {}),
        (StoreError("no"), 503, "store-failed", "", {}),
        (Refused(401, "no"), 401, "login-needed", "", None),
        (Refused(400, "no"), 400, "bad-request", "", {}),
        (JmsProblem(410, "gone", "no"), 410, "gone", "", {}),
    ],
)
def test_each_refusal(
    error: Exception, status: int, slug: str, condition: str, headers: dict[str, str] | None
) -> None:
    assert isinstance(error, EXPECTED)
    found = problem_of(error)
    assert (found.status, found.slug, found.condition, str(found)) == (
        status,
        slug,
        condition,
        "no",
    )
    if headers is None:
        assert "www-authenticate" in found.headers
    else:
        assert found.headers == headers


def test_a_problem_as_a_response() -> None:
    response = JmsProblem(410, "queue-deleted", "why", condition="c", headers={"x": "y"}).response()
    assert response.status_code == 410
    assert response.media_type == "application/problem+json"
    assert response.headers["x"] == "y"
    told = json.loads(bytes(response.body))
    assert told.pop("instance").startswith("urn:uuid:")
    assert told == {
        "type": "urn:jms-broker:problem:queue-deleted",
        "title": "Queue deleted",
        "status": 410,
        "detail": "why",
        "condition": "c",
    }


def test_full_queues_and_limits_may_be_tried_again() -> None:
    for error, (status, _) in REFUSALS.items():
        if status in (429, 503):
            assert problem_of(error("x")).headers == {"retry-after": "1"}
