"""The picture of the topology, from links and subscriptions as the API lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.http.console.topology import (
    ADDRESSES,
    BOX_HEIGHT,
    BOXES_MAX,
    CONSUMERS,
    GROUPS_MAX,
    OTHERS,
    PRODUCERS,
    SUBSCRIPTIONS,
    TITLE_CHARACTERS,
    Picture,
    picture_of,
)
from tests.support.access import ADA, OWNER
from tests.support.api import api_of
from tests.support.console import Browser
from tests.support.subscriptions import leave, subscribe

pytestmark = pytest.mark.requirement("OPS-06")

ETC = "\N{HORIZONTAL ELLIPSIS}"


def link(role: str, client: str, address: str, subscription: str = "") -> dict[str, object]:
    return {
        "identity": f"{client}/{role}/{address}",
        "role": role,
        "container_id": client,
        "address": address,
        "subscription": subscription or None,
    }


def named(name: str, address: str, client: str = "", messages: int = 0) -> dict[str, object]:
    return {
        "identity": f"durable/{client}/{name}",
        "name": name,
        "address": address,
        "container_id": client or None,
        "messages": messages,
    }


def names(picture: Picture, column: int) -> list[str]:
    return [box.name for box in picture.columns[column].boxes]


def test_links_are_lines_between_clients_and_addresses() -> None:
    picture = picture_of(
        [
            link("sender", "shop", "orders"),
            link("sender", "shop", "orders"),
            link("sender", "shop", ""),
            link("receiver", "stock", "orders"),
        ]
    )
    assert names(picture, PRODUCERS) == ["shop"]
    assert names(picture, ADDRESSES) == ["(relay)", "orders"]
    assert names(picture, SUBSCRIPTIONS) == []
    assert names(picture, CONSUMERS) == ["stock"]
    assert sorted(line.text for line in picture.lines) == [
        "orders to stock: 1 links",
        "shop to (relay): 1 links",
        "shop to orders: 2 links",
    ]
    assert not picture.is_grouped
    for line in picture.lines:
        assert line.x1 < line.x2
        assert max(line.y1, line.y2) + BOX_HEIGHT // 2 < picture.height
    assert picture.count() == "1 producers, 2 addresses, 0 subscriptions, 1 consumers"


def test_a_subscription_is_between_its_topic_and_its_consumers() -> None:
    picture = picture_of(
        [
            link("sender", "shop", "prices"),
            link("receiver", "stock", "prices", "durable/stock/p"),
            link("receiver", "web", "prices", "volatile//unknown"),
        ],
        [named("p", "prices", "stock", 7), named("lonely", "prices", messages=3)],
    )
    assert names(picture, SUBSCRIPTIONS) == ["lonely", "p (stock)", "volatile//unknown"]
    assert [box.ready for box in picture.columns[SUBSCRIPTIONS].boxes] == [3, 7, None]
    assert {line.text: line.links for line in picture.lines} == {
        "shop to prices: 1 links": 1,
        "prices to p (stock): 1 links": 1,
        "p (stock) to stock: 1 links": 1,
        "prices to volatile//unknown: 1 links": 1,
        "volatile//unknown to web: 1 links": 1,
        "prices to lonely: 0 links": 0,
    }


def test_lines_have_the_sum_of_the_known_rates() -> None:
    links = [link("sender", "shop", "orders"), link("receiver", "stock", "orders")]
    rates = {"shop/sender/orders": 12.5, "gone": 3.0}
    picture = picture_of([*links, links[0]], rates=rates)
    assert {line.text: line.rate for line in picture.lines} == {
        "shop to orders: 2 links, 25.0 messages/s": 25.0,
        "orders to stock: 1 links": None,
    }


def test_queues_have_their_ready_messages() -> None:
    picture = picture_of([link("sender", "shop", "orders")], ready={"orders": 5, "other": 1})
    assert [box.ready for box in picture.columns[ADDRESSES].boxes] == [5]


def test_a_client_that_does_both_is_on_both_sides() -> None:
    picture = picture_of([link("sender", "a", "q"), link("receiver", "a", "q")])
    assert [len(each.boxes) for each in picture.columns] == [1, 1, 0, 1]


def test_many_are_grouped_by_their_first_words() -> None:
    links = [link("sender", f"shop-{number}", f"orders.{number}") for number in range(BOXES_MAX)]
    picture = picture_of(
        [*links, link("receiver", "stock", "orders.1")], ready={"orders.1": 2, "orders.2": 3}
    )
    assert picture.is_grouped
    assert names(picture, PRODUCERS) == [f"shop{ETC}"]
    assert names(picture, ADDRESSES) == [f"orders{ETC}"]
    assert picture.columns[ADDRESSES].boxes[0].ready == 5
    assert names(picture, CONSUMERS) == ["stock"]
    assert max(line.links for line in picture.lines) == BOXES_MAX


def test_a_column_has_a_limit() -> None:
    picture = picture_of([link("sender", f"client{number}", "q") for number in range(500)])
    assert len(names(picture, PRODUCERS)) == GROUPS_MAX
    assert OTHERS in names(picture, PRODUCERS)


def test_a_long_name_is_cut_to_its_box() -> None:
    picture = picture_of([link("sender", "x" * 255, "q")])
    title = picture.columns[PRODUCERS].boxes[0].title
    assert (len(title), title[-1]) == (TITLE_CHARACTERS, ETC)


def test_nothing_is_a_picture_too() -> None:
    assert picture_of([]).lines == []


async def test_the_page_has_subscriptions_with_and_without_their_consumer(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        subscribe(api.broker.session("stock"), "durable", "live", address="prices")
        gone = api.broker.session("archive")
        subscribe(gone, "durable", "kept", address="prices")
        leave(gone)
        browser = Browser(api)
        await browser.log_in(OWNER)
        page = await browser.page("/topology")
    assert "<title>live (stock) to stock: 1 links</title>" in page
    assert '<path class="link none"' in page
    assert "<td>durable/archive/kept</td>" in page
    assert "2 subscriptions" in page


async def test_the_page_needs_no_right_on_subscriptions(tmp_path: Path) -> None:
    async with api_of(tmp_path, "view management:connections") as api:
        subscribe(api.broker.session("stock"), "durable", "live", address="prices")
        browser = Browser(api)
        await browser.log_in(ADA)
        page = await browser.page("/topology")
    assert "view management:subscriptions" in page
    assert "stock" in page
