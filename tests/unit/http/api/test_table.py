"""Each endpoint demands its right, and no other one: by a call of every one of them."""

import re
from pathlib import Path

import pytest

from broker.http.api.endpoint import Endpoint
from broker.http.api.table import endpoints
from broker.security.resources import MANAGEMENT, NAMES
from tests.support.access import ADA, access_of
from tests.support.api import ApiClient, api_of, problem

pytestmark = pytest.mark.requirement("OPS-01")

ENDPOINTS = endpoints()

BODIES: dict[str, object] = {
    "/message-actions": {"action": "delete", "from": {"queue": "q"}, "all": True},
    "/backups": {"file": "/nowhere/there/backup.db"},
    "/access/explain": {"verb": "send", "resource": "queue:q"},
    "/explain/attach": {"address": "q"},
    "/explain/route": {"address": "q"},
    "/explain/credit": {"address": "q"},
    "/explain/flow": {"queue": "q"},
    "/config/reload": {},
    "/log-level": {"level": "warning"},
    "/definitions/{name:path}": {"version": 1, "definitions": []},
    "/management": {
        "operation": "QUERY",
        "type": "org.amqp.management",
        "name": "self",
        "properties": {"entityType": "queue"},
    },
    "/users/{name:path}": {"password": "a long password"},
    "/tokens": {},
    "/queues/{name:path}": {},
    "/topics/{name:path}": {},
}
"""A body for each endpoint that has one."""

QUERIES = {
    "/messages": "?queue=q",
    "/messages/{id:int}": "?queue=q",
    "/messages/{id:int}/body": "?queue=q",
    "/scheduled": "?queue=q",
    "/scheduled/{id:int}": "?queue=q",
    "/message-lives/{name:path}": "?address=q",
    "/events": "?limit=1",
}
"""Parameters without which a request is wrong."""

ANYTHING = ("view some part of management", "that of the operation")

ALL = tuple(f"view,edit {MANAGEMENT}:{part}" for part in NAMES[MANAGEMENT])


def id_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def path_of(endpoint: Endpoint) -> str:
    path = endpoint.path.replace("{name:path}", "q").replace("{id:int}", "4")
    return path + QUERIES.get(endpoint.path, "")


async def asked(api: ApiClient, endpoint: Endpoint, user: str = ADA) -> str:
    """Return the status, and the type of the problem, that a user gets."""
    body = None if endpoint.body is None else BODIES[endpoint.path]
    answer = await api.ask(endpoint.method, path_of(endpoint), body, user=user)
    return f"{answer.status} {problem(answer)['type'] if answer.status >= 400 else ''}"


def others(endpoint: Endpoint) -> list[str]:
    """Return rights on all parts of management but that of an endpoint."""
    if endpoint.right in ANYTHING:
        return []
    return [each for each in ALL if each.partition(":")[2] not in parts_of(endpoint)]


def parts_of(endpoint: Endpoint) -> list[str]:
    """Return the parts of management that an endpoint's right names."""
    return re.findall(r"\w+", endpoint.right.partition(":")[2].replace(" and ", " "))


def alone(endpoint: Endpoint) -> list[str]:
    """Return the right of an endpoint, and what it needs besides."""
    verb = "view" if endpoint.right in ANYTHING else endpoint.right.partition(" ")[0]
    parts = ["queues"] if endpoint.right in ANYTHING else parts_of(endpoint)
    rights = [f"{verb} management:{part}" for part in parts]
    # a changed user is shown, and the messages of an action are moved
    more = ["view management:users"] if endpoint.path.startswith("/users") else []
    return [*rights, *more, "move queue:q"]


async def test_without_its_right_an_endpoint_does_nothing(tmp_path: Path) -> None:
    found = {}
    async with api_of(tmp_path) as api:
        for endpoint in ENDPOINTS:
            api.broker.container.access = access_of(*others(endpoint))
            found[id_of(endpoint)] = await asked(api, endpoint)
            assert "access.denied" in [action for action, _, _ in api.audit.told()], endpoint
        assert (api.broker.router.names("queue"), api.broker.router.names("topic")) == ([], [])
    assert found == dict.fromkeys(map(id_of, ENDPOINTS), "403 urn:jms-broker:problem:forbidden")


async def test_its_right_alone_is_enough(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for endpoint in ENDPOINTS:
            api.broker.container.access = access_of(*alone(endpoint))
            assert not (await asked(api, endpoint)).startswith("403"), endpoint


async def test_everybody_needs_a_login(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        found = {id_of(each): await asked(api, each, user="nobody") for each in ENDPOINTS}
    assert found == dict.fromkeys(map(id_of, ENDPOINTS), "401 urn:jms-broker:problem:unauthorized")


def test_the_bodies_of_these_tests_are_those_of_the_table() -> None:
    assert set(BODIES) == {each.path for each in ENDPOINTS if each.body is not None}


def test_rights_are_views_and_edits_of_parts() -> None:
    for endpoint in ENDPOINTS:
        if endpoint.right not in ANYTHING:
            assert re.match(r"(view|edit) management:\w", endpoint.right)
            assert set(parts_of(endpoint)) <= set(NAMES[MANAGEMENT])
            assert endpoint.method != "GET" or endpoint.right.startswith("view ")


def test_a_name_is_the_last_segment_of_its_path() -> None:
    assert all(each.path.endswith("{name:path}") for each in ENDPOINTS if "{name" in each.path)


def test_an_endpoint_is_there_once() -> None:
    assert len({id_of(each) for each in ENDPOINTS}) == len(ENDPOINTS)
