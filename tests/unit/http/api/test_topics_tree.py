"""Topics by the words of their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.api import ApiClient, api_of

pytestmark = pytest.mark.requirement("OPS-01")

TOPICS = ("sales", "sales.eu", "sales.eu.de", "sales.us", "salesman", "stock.eu")


async def names(api: ApiClient, query: str) -> list[tuple[object, object, object]]:
    """Return name, number of topics, and whether there is a topic of that name."""
    items = await api.items(f"/topics-tree{query}")
    return [(each["name"], each["topics"], each["is_topic"]) for each in items]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            "",
            [("sales", 4, True), ("salesman", 1, True), ("stock", 1, False)],
            id="the first words",
        ),
        pytest.param(
            "?depth=2",
            [
                ("sales", 1, True),
                ("sales.eu", 2, True),
                ("sales.us", 1, True),
                ("salesman", 1, True),
                ("stock.eu", 1, True),
            ],
            id="two words",
        ),
        pytest.param(
            "?prefix=sales", [("sales.eu", 2, True), ("sales.us", 1, True)], id="behind a word"
        ),
        pytest.param("?prefix=sales.eu", [("sales.eu.de", 1, True)], id="behind two words"),
        pytest.param("?prefix=sales.eu.de", [], id="behind a leaf"),
        pytest.param("?prefix=none", [], id="behind an unknown word"),
    ],
)
async def test_branches(tmp_path: Path, query: str, expected: list[object]) -> None:
    async with api_of(tmp_path) as api:
        for name in TOPICS:
            await api.ask("PUT", f"/topics/{name}")
        assert await names(api, query) == expected


async def test_numbers_are_sums_and_pages_go_on(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for name in TOPICS:
            await api.ask("PUT", f"/topics/{name}")
        subscriber = api.broker.session("subscriber")
        subscriber.attach_receiver("sales.eu.de", kind="topic", credit=5)
        api.broker.fill("sales.eu.de", kind="topic")
        (sales, _) = await api.items("/topics-tree?limit=2")
        assert (sales["subscriptions"], sales["published"]) == (1, 1)
        assert (await api.get("/topics-tree?limit=2"))["next"] == "salesman"
        assert await names(api, "?limit=2&cursor=salesman") == [("stock", 1, False)]
