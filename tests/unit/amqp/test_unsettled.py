"""The unsettled map: a ring that behaves as a list of ids, also over wraps and gaps."""

import time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp import serial
from broker.amqp.delivery import Delivery
from broker.amqp.events import OutgoingOwner
from broker.amqp.outcomes import DeliveryState, TransactionalState
from broker.amqp.unsettled import RING_MAX, UnsettledDeliveries

LAST: Final = 0xFFFF_FFFF


class Owner(OutgoingOwner):
    """An owner of an outgoing link that ignores all calls."""

    def credit_changed(self, drain: bool) -> None: ...

    def accepted(self, deliveries: list[Delivery]) -> None: ...

    def settled(self, delivery: Delivery, state: DeliveryState | None) -> None: ...

    def retired(self, delivery: Delivery, state: TransactionalState, settled: bool) -> None: ...

    def outgoing_ended(self, closed: bool, unsettled: list[Delivery]) -> None: ...


def sent(delivery_id: int, owner: Owner | None = None) -> Delivery:
    delivery = Delivery()
    delivery.delivery_id = delivery_id & LAST
    delivery.sent_to = owner
    return delivery


def holding(*ids: int, owner: Owner | None = None) -> UnsettledDeliveries:
    unsettled = UnsettledDeliveries()
    for delivery_id in ids:
        unsettled.put(sent(delivery_id, owner))
    return unsettled


def ids_of(deliveries: list[Delivery]) -> list[int]:
    return [int(delivery.delivery_id) for delivery in deliveries]


# -- one delivery


def test_a_delivery_is_of_nobody_and_without_an_id_until_it_is_sent() -> None:
    delivery = Delivery()
    assert delivery.delivery_id == -1
    assert delivery.sent_to is None


def test_what_is_put_can_be_taken_once() -> None:
    unsettled = UnsettledDeliveries()
    delivery = sent(7)
    unsettled.put(delivery)
    assert unsettled.count == 1
    assert unsettled.take(7) is delivery
    assert unsettled.take(7) is None
    assert unsettled.count == 0


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        pytest.param([], 0, id="nothing is held"),
        pytest.param([5], 4, id="the id before the oldest"),
        pytest.param([5], 6, id="an id that has not been sent"),
        pytest.param([5, 7], 6, id="the id of a settled transfer in between"),
        pytest.param([5], 5 + 16, id="the same place of the ring, one turn on"),
        pytest.param([5 + 16], 5, id="the same place of the ring, one turn back"),
        pytest.param([5], LAST, id="the id before the first of all"),
        pytest.param([LAST], 0, id="the id behind the wrap"),
        pytest.param([0, RING_MAX * 2], 1, id="an id beside one that was left behind"),
    ],
)
def test_an_unknown_id_takes_nothing(held: list[int], asked: int) -> None:
    unsettled = holding(*held)
    assert unsettled.take(asked) is None
    assert unsettled.take_range(asked, asked) == []
    assert unsettled.count == len(held)
    assert ids_of(unsettled.take_range(held[0] if held else 0, held[-1] if held else 9)) == held


def test_deliveries_may_be_taken_in_any_order() -> None:
    numbers = range(LAST - 40, LAST + 60)
    unsettled = holding(*numbers)
    for number in sorted(numbers, key=lambda number: number * 37 % 101):
        delivery = unsettled.take(number & LAST)
        assert delivery is not None
        assert delivery.delivery_id == number & LAST
    assert unsettled.count == 0


def test_places_that_were_taken_out_of_order_are_used_again() -> None:
    unsettled = holding(*range(16))
    for number in (2, 1, 0):
        assert unsettled.take(number) is not None
    for number in (16, 17, 18, 19):
        unsettled.put(sent(number))
    assert ids_of(unsettled.take_range(0, 100)) == list(range(3, 20))


@pytest.mark.parametrize("number", [0, 2, 4], ids=["the oldest", "in between", "the newest"])
def test_a_delivery_that_is_put_back_is_found_again(number: int) -> None:
    unsettled = holding(*range(5))
    delivery = unsettled.take(number)
    assert delivery is not None
    unsettled.put_back(delivery)
    assert unsettled.count == 5
    unsettled.put(sent(5))
    assert unsettled.take(number) is delivery
    assert sorted(ids_of(unsettled.take_range(0, 5))) == sorted({*range(6)} - {number})
    assert unsettled.count == 0


def test_a_range_that_is_put_back_is_found_again() -> None:
    unsettled = holding(*range(LAST - 2, LAST + 3))
    taken = unsettled.take_range(LAST - 2, 2)
    for delivery in taken:
        unsettled.put_back(delivery)
    assert unsettled.take_range(LAST - 2, 2) == taken
    assert unsettled.count == 0


# -- ranges

RANGES: Final = [
    pytest.param(2, 4, [2, 3, 4], id="some of those held"),
    pytest.param(0, 9, list(range(10)), id="all that is held"),
    pytest.param(5, 5, [5], id="one"),
    pytest.param(7, 1000, [7, 8, 9], id="more than was sent"),
    pytest.param(LAST - 5, 2, [0, 1, 2], id="from before the first"),
    pytest.param(4, 3, [], id="the last before the first"),
    pytest.param(3, 3 + 0x7FFF_FFFF, [3, 4, 5, 6, 7, 8, 9], id="the longest range there is"),
    pytest.param(3, 3 + 0x8000_0000, [], id="a range of half of all ids"),
    pytest.param(0, LAST, [], id="a range of all ids, which is one back"),
    pytest.param(20, 30, [], id="only what was not sent"),
]


@pytest.mark.parametrize("start", [0, 1, LAST, LAST - 4, 0x7FFF_FFFC], ids="from {:#x}".format)
@pytest.mark.parametrize(("first", "last", "taken"), RANGES)
def test_a_range(start: int, first: int, last: int, taken: list[int]) -> None:
    unsettled = holding(*range(start, start + 10))
    found = unsettled.take_range((start + first) & LAST, (start + last) & LAST)
    assert ids_of(found) == [(start + number) & LAST for number in taken]
    assert unsettled.count == 10 - len(taken)
    rest = ids_of(unsettled.take_range(start, (start + 9) & LAST))
    assert rest == [(start + number) & LAST for number in range(10) if number not in taken]


def test_a_range_passes_over_what_is_not_held() -> None:
    unsettled = holding(0, 1, 2, 5, 6)
    unsettled.take(1)
    assert ids_of(unsettled.take_range(0, 5)) == [0, 2, 5]
    assert ids_of(unsettled.take_range(0, 100)) == [6]


def test_few_deliveries_among_many_gaps_are_found_by_range() -> None:
    """Gaps as after thousands of deliveries that were settled one at a time."""
    unsettled = holding(*range(4000))
    kept = [0, 1, 1999, 3998]
    for number in range(4000):
        if number not in kept:
            unsettled.take(number)
    assert unsettled.take_range(2, 1998) == []
    assert ids_of(unsettled.take_range(1, 3999)) == [1, 1999, 3998]
    assert unsettled.count == 1
    assert unsettled.take(0) is not None
    unsettled.put(sent(4000))
    assert ids_of(unsettled.take_range(0, 5000)) == [4000]


# -- deliveries that stay unsettled for long


@pytest.mark.parametrize("start", [0, LAST - 10, LAST - RING_MAX], ids="from {:#x}".format)
def test_a_delivery_stays_while_thousands_come_and_go(start: int) -> None:
    unsettled = holding(start, start + 1, start + 2)
    for number in range(start + 3, start + 3 + RING_MAX * 3, 1021):
        unsettled.put(sent(number))
        assert unsettled.take(number & LAST) is not None
    assert unsettled.count == 3
    assert unsettled.take((start + 1) & LAST) is not None
    assert unsettled.take((start + 1) & LAST) is None
    assert ids_of(unsettled.take_range(start, (start + 50) & LAST)) == [start, start + 2]
    assert unsettled.count == 0


def test_stragglers_come_before_the_rest_in_a_range_and_at_an_end() -> None:
    for take_all in (False, True):
        owner = Owner()
        far = RING_MAX * 2
        unsettled = holding(0, 1, far, far + 1, owner=owner)
        found = unsettled.take_all_of(owner) if take_all else unsettled.take_range(1, far)
        assert ids_of(found) == ([0, 1, far, far + 1] if take_all else [1, far])


@pytest.mark.parametrize("between", [0x7FFF_FFFF, 0x8000_0000, 0xC000_0000], ids=hex)
def test_nothing_is_lost_where_half_of_all_ids_were_sent_settled_in_between(between: int) -> None:
    owner = Owner()
    unsettled = holding(5, 5 + between, owner=owner)
    assert unsettled.count == 2
    assert ids_of(unsettled.take_all_of(owner)) == [5, 5 + between]
    unsettled = holding(5, 5 + between)
    assert unsettled.take(5) is not None
    assert unsettled.take(5 + between) is not None
    assert unsettled.count == 0


# -- the end of a link or session


def test_the_deliveries_of_one_owner_leave_in_order() -> None:
    one, other = Owner(), Owner()
    unsettled = UnsettledDeliveries()
    for number in range(LAST - 3, LAST + 5):
        unsettled.put(sent(number, one if number % 2 else other))
    assert ids_of(unsettled.take_all_of(one)) == [LAST - 2, LAST, 1, 3]
    assert unsettled.take_all_of(one) == []
    assert unsettled.count == 4
    assert ids_of(unsettled.take_all_of(other)) == [LAST - 3, LAST - 1, 0, 2]
    assert unsettled.take_all_of(other) == []


def test_nothing_is_left_after_clear() -> None:
    owner = Owner()
    unsettled = holding(0, RING_MAX * 2, RING_MAX * 2 + 1, owner=owner)
    unsettled.clear()
    assert unsettled.count == 0
    assert unsettled.take_all_of(owner) == []
    assert unsettled.take(0) is None
    unsettled.put(sent(RING_MAX * 2 + 2))
    assert ids_of(unsettled.take_range(0, RING_MAX * 4)) == [RING_MAX * 2 + 2]


# -- compared with a list

PUT: Final = st.tuples(st.just("put"), st.sampled_from([0, 0, 0, 0, 1, 3, 40, 700, 70_000]))
TAKE: Final = st.tuples(st.just("take"), st.integers(-2, 40))
HELD: Final = st.tuples(st.just("take held"), st.integers(0, 40))
RANGE: Final = st.tuples(st.just("range"), st.integers(-5, 80_000), st.integers(-3, 90_000))
NEAR: Final = st.tuples(st.just("range"), st.integers(-5, 60), st.integers(-3, 30))
ALL_OF: Final = st.tuples(st.just("all of"), st.integers(0, 2))


class Model:
    """Deliveries in a list, and the `UnsettledDeliveries` that must behave like it."""

    def __init__(self, start: int) -> None:
        self.owners = [Owner() for _ in range(3)]
        self.unsettled = UnsettledDeliveries()
        self.held: list[Delivery] = []
        self.next = start

    def do(self, name: str, first: int, second: int = 0) -> None:
        """Carry out one step on the map and the list, and compare them."""
        if name == "put":
            for burst in range(3):
                self.put(first if burst == 0 else 0)
        elif name == "take":
            self.take((self.next - first) & LAST)
        elif name == "take held" and self.held:
            self.take(int(self.held[first % len(self.held)].delivery_id))
        elif name == "range":
            self.take_range((self.next - first) & LAST, (self.next - first + second) & LAST)
        elif name == "all of":
            owner = self.owners[first]
            gone = [delivery for delivery in self.held if delivery.sent_to is owner]
            self.gone(gone, self.unsettled.take_all_of(owner))
        assert self.unsettled.count == len(self.held)

    def put(self, gap: int) -> None:
        self.next += gap
        delivery = sent(self.next, self.owners[self.next % 3])
        self.next += 1
        self.unsettled.put(delivery)
        self.held.append(delivery)

    def take(self, delivery_id: int) -> None:
        gone = [delivery for delivery in self.held if delivery.delivery_id == delivery_id]
        found = self.unsettled.take(delivery_id)
        self.gone(gone, [] if found is None else [found])

    def take_range(self, first: int, last: int) -> None:
        length = serial.ahead(last, first)
        gone = [
            delivery
            for delivery in self.held
            if 0 <= serial.ahead(delivery.delivery_id, first) <= length
        ]
        self.gone(gone, self.unsettled.take_range(first, last))

    def gone(self, gone: list[Delivery], found: list[Delivery]) -> None:
        """Check that `found`, the result of the map, equals `gone`, that of the list."""
        assert ids_of(found) == ids_of(gone)
        assert found == gone
        self.held = [delivery for delivery in self.held if delivery not in gone]


@given(
    start=st.sampled_from([0, LAST - 5, LAST - 1000, LAST - 100_000, 0x7FFF_FFF0]),
    actions=st.lists(st.one_of(PUT, PUT, PUT, TAKE, HELD, NEAR, RANGE, ALL_OF), max_size=40),
)
def test_it_does_what_a_list_would(start: int, actions: list[tuple[str, int]]) -> None:
    model = Model(start)
    for action in actions:
        model.do(*action)
    for owner in range(3):
        model.do("all of", owner)
    assert model.unsettled.count == 0


def test_a_session_that_ends_gives_each_link_its_own_in_order() -> None:
    one, other, none = Owner(), Owner(), Owner()
    unsettled = UnsettledDeliveries()
    far = RING_MAX * 2
    for number in (0, 1, 2, far, far + 1, far + 3):
        unsettled.put(sent(number, one if number % 2 else other))
    unsettled.put(sent(far + 4))
    unsettled.part()
    assert ids_of(unsettled.take_all_of(one)) == [1, far + 1, far + 3]
    assert ids_of(unsettled.take_all_of(other)) == [0, 2, far]
    assert unsettled.take_all_of(none) == unsettled.take_all_of(one) == []
    assert (one.unsettled, other.unsettled) == (0, 0)
    unsettled.clear()
    assert unsettled.count == 0
    unsettled.put(sent(far + 5, one))
    assert ids_of(unsettled.take_all_of(one)) == [far + 5]


def test_many_links_of_a_session_that_ends_do_not_each_search_it() -> None:
    """Thousands of links: if each of them searched all deliveries, this would take minutes."""
    owners = [Owner() for _ in range(4000)]
    unsettled = UnsettledDeliveries()
    for number in range(60_000):
        unsettled.put(sent(number, owners[number % len(owners)]))
    unsettled.part()
    assert [len(unsettled.take_all_of(owner)) for owner in owners] == [15] * len(owners)


def with_stragglers() -> UnsettledDeliveries:
    """Return 30,000 deliveries, every second one of their ids, that have left the ring."""
    return holding(*range(0, 60_000, 2), 60_000 + RING_MAX, 60_001 + RING_MAX)


def with_a_hole() -> UnsettledDeliveries:
    """Return 50,000 deliveries, all but the first of them behind a gap of 15,000."""
    return holding(0, *range(15_000, 65_000))


@pytest.mark.parametrize(
    ("unsettled", "first", "last"),
    [
        pytest.param(with_stragglers(), 1, 1 + 0x7FFF_FFFF, id="stragglers, of which it takes all"),
        pytest.param(with_stragglers(), LAST - 5, LAST, id="stragglers, from before the first"),
        pytest.param(with_stragglers(), 60_000, RING_MAX, id="stragglers, up to the ring"),
        pytest.param(with_stragglers(), 0x7000_0000, 0x7000_0001, id="stragglers, far ahead"),
        pytest.param(with_a_hole(), 1, 14_999, id="a gap of the ring"),
        pytest.param(with_a_hole(), 65_000, 0x7FFF_FFFF, id="behind the ring"),
    ],
)
def test_ranges_that_settle_nothing_cost_nothing_again_and_again(
    unsettled: UnsettledDeliveries, first: int, last: int
) -> None:
    """A read has some 40,000 dispositions: if each walked over what is kept, minutes."""
    unsettled.take_range(first, last)
    began_s = time.process_time()
    for _ in range(200):
        assert unsettled.take_range(first, last) == []
    assert time.process_time() - began_s < 0.3


def test_what_lies_in_front_of_a_gap_is_still_found() -> None:
    unsettled = with_a_hole()
    assert unsettled.take_range(1, 14_998) == []
    assert ids_of(unsettled.take_range(LAST, 15_001)) == [0, 15_000, 15_001]
    assert unsettled.take(15_002) is not None
    assert unsettled.count == 50_001 - 4
