"""Lists of the console name attributes, parameters and endpoints that the API has."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest
from pydantic import BaseModel

from broker.audit.record import FIELDS
from broker.http.api.endpoint import DELETE, GET
from broker.http.api.table import endpoints
from broker.http.console.listings import LISTINGS, ConsoleList
from broker.http.console.rendering import NAVIGATION

pytestmark = pytest.mark.requirement("OPS-06")

ENDPOINTS = {(each.method, each.path): each for each in endpoints()}


def attributes(listing: ConsoleList) -> set[str]:
    """Return the attributes of the items of a list."""
    if listing.key == "audit":
        return set(FIELDS)
    record = ENDPOINTS[GET, listing.path].result
    assert record is not None
    if is_dataclass(record):
        return {each.name for each in fields(record)}
    assert issubclass(record, BaseModel)
    return set(record.model_fields)


@pytest.mark.parametrize("key", LISTINGS)
def test_a_list_is_one_of_the_api(key: str) -> None:
    listing = LISTINGS[key]
    assert ENDPOINTS[GET, listing.path].is_list
    assert {each.attribute for each in listing.columns} <= attributes(listing)
    assert all(LISTINGS[each.page].entity for each in listing.columns if each.page)


@pytest.mark.parametrize("key", [key for key, each in LISTINGS.items() if each.entity])
def test_the_page_of_an_entity_is_one_of_the_api(key: str) -> None:
    listing = LISTINGS[key]
    assert (GET, listing.entity) in ENDPOINTS
    assert listing.by in attributes(listing)
    for path, parameter in listing.related:
        assert parameter in {each.name for each in ENDPOINTS[GET, path].parameters}
    assert bool(listing.removal) is ((DELETE, listing.entity) in ENDPOINTS)
    assert bool(listing.removal) is bool(listing.removal_effect)


def test_every_list_of_the_navigation_is_there() -> None:
    paths = {path for _, links in NAVIGATION for path, _ in links}
    assert {each.path for each in LISTINGS.values()} <= paths
