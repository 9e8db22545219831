"""The way a message would go: by key, filter and publisher, without sending one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.definitions import DefinitionSite
from tests.support.management import Reply, request

pytestmark = pytest.mark.requirement("OPS-15")

SUBSCRIPTIONS: list[dict[str, object]] = [
    {"name": "all", "container_id": "a", "address": "news"},
    {"name": "dear", "container_id": "a", "address": "news", "selector": "price > 3"},
    {"name": "eu", "container_id": "a", "address": "news/eu.*"},
    {"name": "others", "container_id": "a", "address": "news", "no_local": True},
]


@pytest.fixture
async def site(tmp_path: Path) -> DefinitionSite:
    site = DefinitionSite(tmp_path)
    await site.bring("subscriptions", SUBSCRIPTIONS)
    return site


def explain(site: DefinitionSite, **arguments: object) -> Reply:
    return site.manager.ask_raw(request("EXPLAIN", "route", body=arguments))


ROUTES = [
    pytest.param({}, ["all", "others"], id="no properties"),
    pytest.param({"properties": {"price": 4}}, ["all", "dear", "others"], id="a selector"),
    pytest.param({"address": "news/eu.fr"}, ["all", "eu", "others"], id="a key"),
    pytest.param({"publisher": "a"}, ["all"], id="its own publisher"),
]


@pytest.mark.parametrize(("arguments", "expected"), ROUTES)
async def test_a_topic(
    site: DefinitionSite, arguments: dict[str, object], expected: list[str]
) -> None:
    told = explain(site, **{"address": "news", "kind": "topic", **arguments}).map
    found = told["subscriptions"]
    assert isinstance(found, list)
    known = {
        str(each["identity"]): str(each["name"]) for each in site.manager.query("subscription").rows
    }
    assert sorted(known[each] for each in found) == expected
    assert (told["kind"], told["node"], told["is_there"]) == ("topic", "news", True)
    assert all(each["messages"] == 0 for each in site.manager.query("subscription").rows)


async def test_a_queue_that_is_not_there(site: DefinitionSite) -> None:
    told = explain(site, address="orders").map
    assert (told["kind"], told["node"], told["is_there"]) == ("queue", "orders", False)
    assert site.broker.router.queues == {}


BAD = [
    pytest.param({}, "address must be", id="no address"),
    pytest.param({"address": "news", "kind": "box"}, "kind must be one of", id="a kind"),
    pytest.param({"address": "news", "properties": 1}, "must be a map", id="properties"),
    pytest.param(
        {"address": "news", "properties": {"a": [1]}}, "a simple value", id="a list in them"
    ),
]


@pytest.mark.parametrize(("arguments", "text"), BAD)
async def test_a_wrong_request(
    site: DefinitionSite, arguments: dict[str, object], text: str
) -> None:
    told = explain(site, **arguments)
    assert told.status == 400
    assert text in told.description


async def test_it_takes_the_right_to_view_all_that_it_names(tmp_path: Path) -> None:
    site = DefinitionSite(tmp_path, user="viewer")
    assert explain(site, address="news").status == 403
