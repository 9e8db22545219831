"""Problems as RFC 9457 has them: one slug for each status, and the AMQP condition."""

import json

import pytest

from broker.http.api.problems import SLUGS, Failure, FieldProblem, failure_of, problem_of
from broker.management import request
from broker.management.request import Refused
from broker.management.response import Response

pytestmark = pytest.mark.requirement("OPS-01")


@pytest.mark.parametrize("status", SLUGS)
def test_a_status_has_a_problem(status: int) -> None:
    found = problem_of(Refused(status, "why"), "r1")
    body = json.loads(bytes(found.body))
    assert (found.status_code, found.media_type) == (status, "application/problem+json")
    assert body["type"] == f"urn:jms-broker:problem:{SLUGS[status]}"
    assert (body["status"], body["detail"]) == (status, "why")
    assert body["instance"] == "urn:jms-broker:request:r1"
    assert ("retry-after" in found.headers) == (status in (429, 503))
    assert ("www-authenticate" in found.headers) == (status == 401)


def test_every_status_of_management_has_one() -> None:
    statuses = {value for value in vars(request).values() if isinstance(value, int)}
    assert {each for each in statuses if 400 <= each < 600} <= set(SLUGS)


def test_an_unknown_status_is_an_internal_error() -> None:
    assert problem_of(Refused(418, "tea"), "r").status_code == 500


def test_a_failure_has_its_own_condition_and_fields() -> None:
    errors = [FieldProblem(pointer="/a", detail="b")]
    body = json.loads(
        bytes(problem_of(Failure(422, "x", condition="amqp:x", errors=errors), "r").body)
    )
    assert (body["condition"], body["errors"]) == ("amqp:x", [{"pointer": "/a", "detail": "b"}])


def test_a_failed_response_becomes_a_failure() -> None:
    found = failure_of(Response(status=409, description="so", condition="amqp:resource-locked"))
    assert (found.status, str(found), found.condition) == (409, "so", "amqp:resource-locked")
