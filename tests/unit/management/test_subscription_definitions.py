"""Durable subscriptions as definitions: shared, of all clients, with selectors and no-local."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.amqp.terminus import NEVER
from tests.support.definitions import DefinitionSite

pytestmark = pytest.mark.requirement("OPS-12")

SUBSCRIPTIONS: list[dict[str, object]] = [
    {"name": "sole", "container_id": "shop", "address": "news"},
    {"name": "picky", "container_id": "shop", "address": "news", "selector": "price > 3"},
    {"name": "others", "container_id": "shop", "address": "news", "no_local": True},
    {"name": "team", "container_id": "shop", "address": "news/urgent", "shared": True},
    {"name": "all", "address": "orders.*", "shared": True, "timeout_s": 60, "owner": "svc"},
    {"name": "alone", "address": "news", "selector": "a = 'b'", "durability": 1},
]


@pytest.fixture
def site(tmp_path: Path) -> DefinitionSite:
    return DefinitionSite(tmp_path)


async def test_they_are_the_same_after_an_import(site: DefinitionSite, tmp_path: Path) -> None:
    results = {result for _, result in await site.bring("subscriptions", SUBSCRIPTIONS)}
    assert results == {"added"}
    exported = await site.export("subscriptions")
    for wanted, found in zip(SUBSCRIPTIONS, exported, strict=True):
        assert {key: found[key] for key in wanted} == wanted
        assert found["expiry_policy"] == NEVER
    (tmp_path / "other").mkdir()
    new = DefinitionSite(tmp_path / "other")
    await new.bring("subscriptions", exported)
    assert await new.export("subscriptions") == exported
    assert {result for _, result in await new.bring("subscriptions", exported)} == {"unchanged"}
    assert new.manager.query("subscription").rows[0]["durable"] is True


async def test_an_imported_one_gets_messages(site: DefinitionSite) -> None:
    await site.bring("subscriptions", SUBSCRIPTIONS[:2])
    site.broker.fill("news", kind="topic")
    held = {each["name"]: each["messages"] for each in site.manager.query("subscription").rows}
    assert held == {"sole": 1, "picky": 0}


async def test_a_dry_run_changes_nothing(site: DefinitionSite) -> None:
    told = await site.bring("subscriptions", SUBSCRIPTIONS, dry_run=True)
    assert {result for _, result in told} == {"added"}
    assert site.broker.router.subscriptions.named == {}
    assert site.broker.router.topics == {}


async def test_an_empty_one_is_changed_and_one_with_messages_is_not(site: DefinitionSite) -> None:
    await site.bring("subscriptions", SUBSCRIPTIONS[:1])
    other = [{**SUBSCRIPTIONS[0], "selector": "x = 1"}]
    assert await site.bring("subscriptions", other) == [("shop/sole", "changed")]
    assert await site.bring("subscriptions", SUBSCRIPTIONS[:1]) == [("shop/sole", "changed")]
    site.broker.fill("news", kind="topic")
    ((_, told),) = await site.bring("subscriptions", other)
    assert told.startswith("refused: there is one with another address")
    assert site.manager.query("subscription").rows[0]["messages"] == 1


BAD = [
    pytest.param({"address": ""}, "address", id="no address"),
    pytest.param({"selector": "price >"}, "", id="a wrong selector"),
    pytest.param({"durability": 0}, "durability must be 1 or 2", id="not durable"),
    pytest.param({"expiry_policy": "soon"}, "expiry_policy must be one of", id="a policy"),
    pytest.param({"timeout_s": -1}, "timeout_s must be from 0", id="a timeout"),
    pytest.param({"name": "a|b", "shared": True}, "it has no |", id="a shared name"),
    pytest.param({"filters": [{"key": "k", "encoded": "?"}]}, "in base64", id="no base64"),
    pytest.param({"filters": [{"key": "k", "encoded": "wQ=="}]}, "AMQP value", id="half a value"),
    pytest.param({"filters": ["x"]}, "list of objects", id="no filters"),
    pytest.param({"filters": [], "selector": "a = 1"}, "differ from filters", id="contradiction"),
]


@pytest.mark.parametrize(("changes", "note"), BAD)
async def test_a_wrong_one_is_refused(
    site: DefinitionSite, changes: dict[str, object], note: str
) -> None:
    ((_, told),) = await site.bring("subscriptions", [{**SUBSCRIPTIONS[0], **changes}])
    assert told.startswith("refused: ")
    assert note in told
    assert site.broker.router.subscriptions.named == {}
