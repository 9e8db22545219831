"""The order of password checks: sources in turn, names in turn, and room for each source."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.turns import (
    WAITING_MAX,
    WAITING_PER_SOURCE_MAX,
    TooManyLogins,
    Turns,
    source_of,
)

pytestmark = pytest.mark.attack("A5")

SOURCES = [
    pytest.param("10.0.0.1", "10.0.0.1", id="IPv4 alone"),
    pytest.param("::ffff:10.0.0.1", "10.0.0.1", id="IPv4 within IPv6"),
    pytest.param("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", id="IPv6 by its network"),
    pytest.param("fe80::1%eth0", "fe80::/64", id="IPv6 with a zone"),
    pytest.param("::1", "::/64", id="the loopback of IPv6"),
    pytest.param("unknown", "unknown", id="no address"),
]


@pytest.mark.parametrize(("host", "source"), SOURCES)
def test_a_source_is(host: str, source: str) -> None:
    assert source_of(host) == source


def drain(turns: Turns[str]) -> str:
    return "".join(turns.take() for _ in range(len(turns)))


ORDERS = [
    # logins, each a source, a name and an item; the order of their items
    ("one source and name: as it comes", "xaA xaB xaC", "ABC"),
    ("sources in turn", "xaA xaB xaC yaD", "ADBC"),
    ("names of a source in turn", "xaA xaB xaC xbD", "ADBC"),
    ("a source with many names has one turn", "xaA xbB xcC ydD ydE", "ADBEC"),
]


@pytest.mark.parametrize(("given_", "order"), [case[1:] for case in ORDERS], ids=lambda case: case)
def test_the_order_is(given_: str, order: str) -> None:
    turns = Turns[str]()
    for source, name, item in map(tuple, given_.split()):
        assert turns.put(source, name, item) is None
    assert drain(turns) == order


def test_a_source_that_has_had_its_turn_waits_for_the_others() -> None:
    turns = Turns[str]()
    turns.put("x", "a", "A")
    turns.put("x", "a", "B")
    assert turns.take() == "A"
    turns.put("y", "b", "C")
    turns.put("x", "c", "D")
    assert drain(turns) == "BCD"


ROOM = [
    # limits, logins, the item that the last login displaces, the items that are left
    ("a full source loses the oldest of its busiest name", (3, 9), "xaA xbB xbC xcD", "B", "ACD"),
    ("names that have equally many: the oldest", (2, 9), "xaA xbB xcC", "A", "BC"),
    ("another source is not touched", (2, 9), "yaA xbB xbC xbD", "B", "ACD"),
    ("all together: the busiest source loses", (9, 3), "xaA xaB yaC zaD", "A", "BCD"),
]


@pytest.mark.parametrize(
    ("limits", "given_", "displaced", "left"),
    [case[1:] for case in ROOM],
    ids=[case[0] for case in ROOM],
)
def test_room_is_made(limits: tuple[int, int], given_: str, displaced: str, left: str) -> None:
    turns = Turns[str](per_source_max=limits[0], total_max=limits[1])
    lost = [turns.put(source, name, item) for source, name, item in map(tuple, given_.split())]
    assert lost == [None] * (len(lost) - 1) + [displaced]
    assert sorted(drain(turns)) == sorted(left)


@pytest.mark.parametrize(
    ("sources", "left"),
    [
        pytest.param(1, WAITING_PER_SOURCE_MAX, id="one source: WAITING_PER_SOURCE_MAX"),
        pytest.param(WAITING_MAX + 1, WAITING_MAX, id="many sources: WAITING_MAX"),
    ],
)
def test_only_so_many_wait(sources: int, left: int) -> None:
    turns = Turns[int]()
    displaced = [turns.put(str(number % sources), "a", number) for number in range(WAITING_MAX + 1)]
    assert len(turns) == left
    assert sum(each is not None for each in displaced) == WAITING_MAX + 1 - left


def test_of_nothing_there_is_no_next() -> None:
    with pytest.raises(IndexError, match="no login waits"):
        Turns[str]().take()


def test_the_refusal_is_an_exception_of_its_own() -> None:
    assert not issubclass(TooManyLogins, ValueError)


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc"), st.booleans())))
def test_nothing_is_lost_and_no_source_is_served_twice_before_another(
    steps: list[tuple[str, str, bool]],
) -> None:
    turns = Turns[int](per_source_max=4, total_max=8)
    waiting: dict[int, str] = {}
    skipped = Counter[str]()
    for number, (source, name, takes) in enumerate(steps):
        if takes and waiting:
            served = waiting.pop(turns.take())
            skipped[served] = 0
            for other in set(waiting.values()) - {served}:
                skipped[other] += 1
                assert skipped[other] <= 2, "three sources: everyone is served within two turns"
        else:
            waiting[number] = source
            displaced = turns.put(source, name, number)
            if displaced is not None:
                loser = waiting.pop(displaced)
                if loser not in waiting.values():
                    skipped[loser] = 0
        assert len(turns) == len(waiting)
    assert {turns.take() for _ in range(len(turns))} == set(waiting)
