"""Sorted lists, page by page: every entity once, whatever comes and goes meanwhile."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from json import dumps

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.management.entity import EntityRecord, attributes_of
from broker.management.listing import LIMIT_MAX, Listing, list_of
from broker.management.request import Refused, Request

pytestmark = pytest.mark.requirement("OPS-01")


@dataclass(frozen=True, kw_only=True)
class Thing(EntityRecord):
    """An entity with attributes of several types."""

    size: int | None
    colour: str
    tags: tuple[str, ...] = ()


ATTRIBUTES = attributes_of(Thing)


def thing(name: str, size: int | None = 0, colour: str = "red", identity: str = "") -> Thing:
    return Thing(name=name, identity=identity or name, type="thing", size=size, colour=colour)


def listing(things: dict[str, Thing]) -> Listing[str]:
    names = {key: (each.name, each.identity) for key, each in things.items()}
    return Listing(
        items=list(things),
        names_of=names.__getitem__,
        record_of=things.get,
        value_of=lambda key, attribute: (
            things[key].size if attribute == "size" and key in things else None
        ),
        filters={"colour": "colour"},
        tests={"big": lambda record: isinstance(record, Thing) and (record.size or 0) > 5},
    )


async def page(things: dict[str, Thing], **arguments: object) -> dict[str, object]:
    """Return the body of the response."""
    request = Request(operation="LIST", type="thing", arguments=arguments)
    body = (await list_of(request, ATTRIBUTES, listing(things)).answer()).body
    assert isinstance(body, dict)
    return body


def keyed(*things: Thing) -> dict[str, Thing]:
    return {each.identity: each for each in things}


def names(body: dict[str, object]) -> list[str]:
    items = body["items"]
    assert isinstance(items, list)
    return [each["name"] for each in items]


THINGS = keyed(
    thing("b", 3), thing("a", 9, "blue"), thing("c", None), thing("ab", 3, "blue"), thing("B", 7)
)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({}, ["B", "a", "ab", "b", "c"], id="by name"),
        pytest.param({"sort": "-name"}, ["c", "b", "ab", "a", "B"], id="by name, descending"),
        pytest.param({"sort": "size"}, ["c", "ab", "b", "B", "a"], id="null first, ties by name"),
        pytest.param({"sort": "-size,-name"}, ["a", "B", "b", "ab", "c"], id="two, descending"),
        pytest.param({"sort": "colour,-size"}, ["a", "ab", "B", "b", "c"], id="mixed"),
        pytest.param({"q": "b"}, ["ab", "b"], id="a part of the name"),
        pytest.param({"q": "b*"}, ["b"], id="a pattern"),
        pytest.param({"q": "["}, [], id="a pattern that is not closed"),
        pytest.param({"colour": "blue"}, ["a", "ab"], id="a value"),
        pytest.param({"big": True}, ["B", "a"], id="a test"),
        pytest.param({"big": False, "colour": "blue"}, ["ab"], id="a test that must fail"),
        pytest.param({"limit": 2}, ["B", "a"], id="so many"),
    ],
)
async def test_a_list_has_an_order_and_a_choice(
    arguments: dict[str, object], expected: list[str]
) -> None:
    assert names(await page(THINGS, **arguments)) == expected


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param({"sort": "weight"}, "no attribute weight", id="sort"),
        pytest.param({"sort": "name," * 5}, "sort has at most 4", id="too many sorts"),
        pytest.param({"fields": ["weight"]}, "no attribute weight", id="fields"),
        pytest.param({"limit": 0}, "limit must be a number from 1", id="limit"),
        pytest.param({"limit": LIMIT_MAX + 1}, "limit must be", id="too large a limit"),
        pytest.param({"cursor": "x"}, "cursor must be", id="no base 64"),
        pytest.param({"cursor": "W10"}, "cursor must be", id="an empty list"),
        pytest.param({"cursor": "e30"}, "cursor must be", id="no list"),
        pytest.param({"cursor": "é"}, "cursor must be", id="not ASCII"),
        pytest.param({"cursor": "A" * 9000}, "cursor must be", id="too long"),
        pytest.param({"cursor": 7}, "cursor must be", id="no text"),
        pytest.param({"big": 1}, "big must be true or false", id="a test"),
        pytest.param({"weight": 1}, "knows no argument weight", id="argument"),
    ],
)
async def test_wrong_arguments_are_refused(arguments: dict[str, object], why: str) -> None:
    with pytest.raises(Refused, match=why):
        await page(THINGS, **arguments)


async def test_a_cursor_is_one_of_its_order() -> None:
    following = (await page(THINGS, limit=1))["next"]
    with pytest.raises(Refused, match="the same sort"):
        await page(THINGS, cursor=following, sort="-name")


CURSORS = [
    pytest.param("name", ["name,identity", [[1, 5, ""], [2, 0, "a"]]], id="a number for a name"),
    pytest.param("name", ["name,identity", [[2, 0, "a"], [1, 5, ""]]], id="and for an identity"),
    pytest.param("size", ["size,name,identity", [[2, 0, "x"]] + [[2, 0, "a"]] * 2], id="a text"),
    pytest.param("size", ["size,name,identity", [[1, 3, ""]] + [[1, 5, ""]] * 2], id="numbers"),
    pytest.param("-size", ["-size,name,identity", [[3, 0, "x"]] + [[0, 0, ""]] * 2], id="others"),
    pytest.param(
        "size", ["size,name,identity", [[1, float("nan"), ""]] + [[2, 0, ""]] * 2], id="n"
    ),
]


@pytest.mark.parametrize(("sort", "made"), CURSORS)
async def test_a_cursor_that_a_client_made_is_harmless(sort: str, made: list[object]) -> None:
    cursor = urlsafe_b64encode(dumps(made).encode()).decode().rstrip("=")
    for limit in (1, 50):
        assert set(names(await page(THINGS, sort=sort, cursor=cursor, limit=limit))) <= set(THINGS)


async def test_only_some_attributes() -> None:
    body = await page(
        {"x": Thing(name="x", identity="x", type="t", size=1, colour="", tags=("a",))}
    )
    assert body["items"] == [
        {"name": "x", "identity": "x", "type": "t", "size": 1, "colour": "", "tags": ["a"]}
    ]
    assert (await page(keyed(thing("x")), fields=["size"]))["items"] == [{"size": 0}]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(3, (3, "eq"), id="few"),
        pytest.param(10_000, (10_000, "eq"), id="as many as are counted"),
        pytest.param(10_001, (10_000, "gte"), id="more"),
    ],
)
async def test_a_count_has_an_end(number: int, expected: tuple[int, str]) -> None:
    things = keyed(*(thing(f"{each:06}") for each in range(number)))
    body = await page(things, count=True, limit=1)
    assert (body["total"], body["relation"]) == expected


async def test_entities_of_one_name_are_told_apart() -> None:
    things = keyed(thing("x", identity="2"), thing("x", identity="1"))
    first = await page(things, limit=1)
    second = await page(things, limit=1, cursor=first["next"])
    assert [first["items"][0]["identity"], second["items"][0]["identity"]] == ["1", "2"]  # type: ignore[index]
    assert second["next"] is None


values = st.builds(
    thing,
    st.text(max_size=3),
    st.none() | st.integers(0, 3),
    st.sampled_from(["red", "blue"]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(values, max_size=40, unique_by=lambda each: each.identity),
    st.sampled_from(["", "name", "-name", "size", "-size,colour", "-colour,-size"]),
    st.integers(1, 9),
)
async def test_pages_together_are_the_list(things: list[Thing], sort: str, limit: int) -> None:
    known = keyed(*things)
    whole = names(await page(known, sort=sort, limit=LIMIT_MAX))
    found: list[str] = []
    cursor: object = ""
    while cursor is not None:
        body = await page(known, sort=sort, limit=limit, cursor=cursor)
        found += names(body)
        cursor = body["next"]
    assert found == whole
    assert sorted(found) == sorted(each.name for each in things)


async def test_what_comes_and_goes_hides_and_repeats_nothing() -> None:
    things = keyed(*(thing(name) for name in "abcdef"))
    first = await page(things, limit=3)
    del things["c"], things["d"]
    things |= keyed(thing("aa"), thing("dd"))
    second = await page(things, limit=9, cursor=first["next"])
    assert names(first) + names(second) == ["a", "b", "c", "dd", "e", "f"]


async def test_an_entity_that_ends_meanwhile_is_left_out() -> None:
    things = {**THINGS, "gone": thing("gone")}
    whole = listing(things)
    del things["gone"]
    request = Request(operation="LIST", type="thing", arguments={"sort": "size"})
    body = (await list_of(request, ATTRIBUTES, whole).answer()).body
    assert isinstance(body, dict)
    assert "gone" not in names(body)
