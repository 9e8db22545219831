"""The description of the API is OpenAPI, and is true: responses are as it says."""

import json
import re
from pathlib import Path

import pytest

from broker.http.api.description import description
from broker.http.api.table import endpoints
from tests.support.api import api_of

pytestmark = pytest.mark.requirement("OPS-01")

ENDPOINTS = endpoints()
DESCRIBED = json.loads(description(ENDPOINTS))
SCHEMAS = DESCRIBED["components"]["schemas"]


def references(value: object) -> set[str]:
    """Return all references in a description."""
    if isinstance(value, list):
        return {each for part in value for each in references(part)}
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"]} if "$ref" in value else set()
    return own | {each for part in value.values() for each in references(part)}


def test_every_endpoint_is_described() -> None:
    described = {
        (method.upper(), path) for path, methods in DESCRIBED["paths"].items() for method in methods
    }
    assert described == {
        (each.method, "/api/v1" + re.sub(r":\w+}", "}", each.path)) for each in ENDPOINTS
    }


def test_references_lead_somewhere() -> None:
    assert references(DESCRIBED) <= {f"#/components/schemas/{name}" for name in SCHEMAS}
    assert "Problem" in SCHEMAS


def test_operations_have_ids_of_their_own() -> None:
    ids = [
        each["operationId"] for methods in DESCRIBED["paths"].values() for each in methods.values()
    ]
    assert len(set(ids)) == len(ids) == len(ENDPOINTS)


def test_every_parameter_of_a_path_is_described() -> None:
    for path, methods in DESCRIBED["paths"].items():
        for operation in methods.values():
            named = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))


def required(name: str) -> set[str]:
    return set(SCHEMAS[name]["required"])


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/queues", "NodeRecord"),
        ("/connections", "ConnectionRecord"),
        ("/roles", "RoleRecord"),
        ("/rules", "RuleRecord"),
        ("/stores", "StoreRecord"),
        ("/messages?queue=q", "MessageRecord"),
    ],
)
async def test_items_have_the_attributes_described(path: str, schema: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.session("client")
        api.broker.fill("q")
        items = (await api.get(path))["items"]
    assert isinstance(items, list)
    assert items
    assert set(items[0]) == required(schema) == set(SCHEMAS[schema]["properties"])


def test_every_success_is_described() -> None:
    for endpoint in ENDPOINTS:
        path = "/api/v1" + re.sub(r":\w+}", "}", endpoint.path)
        responses = DESCRIBED["paths"][path][endpoint.method.lower()]["responses"]
        expected = {endpoint.status, endpoint.other_status} - {0}
        assert set(responses) == {"default", *map(str, expected)}


def test_conditions_are_described_where_they_are_obeyed() -> None:
    conditional = {
        (method, path)
        for path, methods in DESCRIBED["paths"].items()
        for method, operation in methods.items()
        if any(each["name"] == "If-Match" for each in operation["parameters"])
    }
    entities = ("queues", "topics", "users")
    assert conditional == {
        (method, f"/api/v1/{each}/{{name}}") for each in entities for method in ("put", "delete")
    }


async def test_items_may_lack_attributes_if_fields_are_named(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q")
        items = (await api.get("/queues?fields=name,messages"))["items"]
    listing = DESCRIBED["paths"]["/api/v1/queues"]["get"]
    content = listing["responses"]["200"]["content"]["application/json"]["schema"]
    assert content["properties"]["items"]["items"] == {
        "$ref": "#/components/schemas/SelectedNodeRecord"
    }
    assert items == [{"name": "q", "messages": 1}]
    assert "required" not in SCHEMAS["SelectedNodeRecord"]
