"""The picture of the topology, from links as the API lists them."""

from __future__ import annotations

import pytest

from broker.http.console.topology import BOXES_MAX, GROUPS_MAX, OTHERS, picture_of

pytestmark = pytest.mark.requirement("OPS-06")


def link(role: str, client: str, address: str) -> dict[str, object]:
    return {"role": role, "container_id": client, "address": address}


def test_links_are_lines_between_clients_and_addresses() -> None:
    picture = picture_of(
        [
            link("sender", "shop", "orders"),
            link("sender", "shop", "orders"),
            link("sender", "shop", ""),
            link("receiver", "stock", "orders"),
        ]
    )
    assert [box.name for box in picture.producers] == ["shop"]
    assert [box.name for box in picture.addresses] == ["(relay)", "orders"]
    assert [box.name for box in picture.consumers] == ["stock"]
    assert [line.text for line in picture.lines] == [
        "shop to (relay): 1 links",
        "shop to orders: 2 links",
        "orders to stock: 1 links",
    ]
    assert not picture.is_grouped
    for line in picture.lines:
        assert line.x1 < line.x2
        assert max(line.y1, line.y2) < picture.height


def test_a_client_that_does_both_is_on_both_sides() -> None:
    picture = picture_of([link("sender", "a", "q"), link("receiver", "a", "q")])
    assert [len(each) for each in (picture.producers, picture.addresses, picture.consumers)] == [
        *(1, 1, 1)
    ]


def test_many_are_grouped_by_their_first_words() -> None:
    links = [link("sender", f"shop-{number}", f"orders.{number}") for number in range(BOXES_MAX)]
    picture = picture_of([*links, link("receiver", "stock", "orders.1")])
    assert picture.is_grouped
    assert [box.name for box in picture.producers] == ["shop\N{HORIZONTAL ELLIPSIS}"]
    assert [box.name for box in picture.addresses] == ["orders\N{HORIZONTAL ELLIPSIS}"]
    assert [box.name for box in picture.consumers] == ["stock"]
    assert picture.lines[0].links == BOXES_MAX


def test_a_column_has_a_limit() -> None:
    picture = picture_of([link("sender", f"client{number}", "q") for number in range(500)])
    assert len(picture.producers) == GROUPS_MAX
    assert OTHERS in {box.name for box in picture.producers}


def test_nothing_is_a_picture_too() -> None:
    assert picture_of([]).lines == []
