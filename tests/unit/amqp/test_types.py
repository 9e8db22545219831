"""Value classes: which values they refuse, and that values of different types differ."""

import math
import uuid

import pytest

from broker.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    combined,
    same,
)

RANGES = [
    (UByte, 0, 2**8 - 1),
    (UShort, 0, 2**16 - 1),
    (UInt, 0, 2**32 - 1),
    (ULong, 0, 2**64 - 1),
    (Byte, -(2**7), 2**7 - 1),
    (Short, -(2**15), 2**15 - 1),
    (Int, -(2**31), 2**31 - 1),
    (Timestamp, -(2**63), 2**63 - 1),
    (Char, 0, 0x10FFFF),
]

# a value of every type, each of them 1 in some sense
ONES: list[object] = [
    True,
    1,
    1.0,
    "1",
    b"1",
    UByte(1),
    UShort(1),
    UInt(1),
    ULong(1),
    Byte(1),
    Short(1),
    Int(1),
    Timestamp(1),
    Char(1),
    Float(1.0),
    Decimal(b"\0\0\0\1"),
    Symbol("1"),
    uuid.UUID(int=1),
]


@pytest.mark.parametrize(("kind", "low", "high"), RANGES, ids=[r[0].__name__ for r in RANGES])
def test_an_integer_keeps_to_its_range(kind: type[UByte], low: int, high: int) -> None:
    assert kind(low).value == low
    assert kind(high).value == high
    for beyond in (low - 1, high + 1):
        with pytest.raises(ValueError, match="is not within"):
            kind(beyond)


@pytest.mark.parametrize("size", [0, 3, 5, 15, 17])
def test_a_decimal_has_one_of_three_sizes(size: int) -> None:
    with pytest.raises(ValueError, match="a decimal has 4, 8 or 16 bytes"):
        Decimal(bytes(size))


def test_values_of_different_types_are_never_the_same() -> None:
    for i, one in enumerate(ONES):
        for j, other in enumerate(ONES):
            assert same(one, other) == (i == j), (one, other)
            assert same([one], [other]) == (i == j)


@pytest.mark.parametrize("value", ONES, ids=repr)
def test_a_value_equals_another_of_its_kind(value: object) -> None:
    assert same(value, value)
    assert not same(value, None)
    assert not same([value], [value, value])
    assert hash(value) == hash(value)


def test_equal_wrappers_have_one_hash() -> None:
    assert {UInt(1), UInt(1), ULong(1)} == {UInt(1), ULong(1)}
    assert {Symbol("a"), Symbol("a")} == {Symbol("a")}
    assert {Float(1.5), Float(1.5)} == {Float(1.5)}
    assert {Decimal(bytes(8)), Decimal(bytes(8))} == {Decimal(bytes(8))}


def test_a_float_equals_by_its_bits() -> None:
    assert Float(math.nan) == Float(math.nan)
    assert Float(0.0) != Float(-0.0)
    assert same(math.nan, math.nan)
    assert not same(0.0, -0.0)


def test_a_map_keeps_keys_apart_that_python_takes_for_one() -> None:
    keys: list[object] = [1, 1.0, True, UInt(1), ULong(1), "1", Symbol("1")]
    mixed = Map([(key, repr(key)) for key in keys])
    assert len(mixed) == len(keys)
    for key in keys:
        assert mixed.get(key) == repr(key)
        assert key in mixed
    assert mixed.get(UByte(1)) is None
    assert False not in mixed


@pytest.mark.parametrize(
    "key", [1, "a", math.nan, Symbol("a"), True, None, uuid.UUID(int=3)], ids=repr
)
def test_a_key_comes_once(key: object) -> None:
    with pytest.raises(ValueError, match="comes twice"):
        Map([(key, 1), (key, 2)])


@pytest.mark.parametrize(
    "key",
    [[], Map([]), Array(0x40, []), Described(ULong(1), 1), {}],
    ids=lambda k: type(k).__name__,
)
def test_what_contains_values_is_no_key(key: object) -> None:
    with pytest.raises(TypeError, match="cannot be the key of a map"):
        Map([(key, 1)])


def test_maps_are_equal_with_equal_pairs_in_one_order() -> None:
    one = Map([("a", 1), ("b", [2])])
    assert one == Map([("a", 1), ("b", [2])])
    assert one != Map([("b", [2]), ("a", 1)])
    assert one != Map([("a", 1.0), ("b", [2])])
    assert one != Map([("a", 1)])
    assert one != "a"


def test_arrays_are_equal_with_equal_constructors_and_values() -> None:
    one = Array(0x50, [UByte(1)])
    assert one == Array(0x50, [UByte(1)])
    assert len(one) == 1
    assert one != Array(0x50, [UByte(2)])
    assert one != Array(0x50, [UByte(1)], descriptor=ULong(1))
    assert Array(0x40, [], zero_width_count=3) != Array(0x40, [], zero_width_count=4)
    assert len(Array(0x40, [], zero_width_count=2**32 - 1)) == 2**32 - 1


def test_described_values_are_equal_with_equal_descriptors_and_values() -> None:
    one = Described(ULong(1), [1])
    assert one == Described(ULong(1), [1])
    assert one != Described(Symbol("1"), [1])
    assert one != Described(ULong(1), [1.0])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (UInt(5), "UInt(5)"),
        (Symbol("a"), "Symbol('a')"),
        (Float(1.5), "Float(1.5)"),
        (Decimal(b"\1\2\3\4"), "Decimal(01020304)"),
        (Described(ULong(1), 2), "Described(ULong(1), 2)"),
        (Array(0xA3, [Symbol("a")]), "Array(0xa3, [Symbol('a')], count=1)"),
        (Map([(1, 2)]), "Map([(1, 2)])"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_a_value_shows_its_type(value: object, text: str) -> None:
    assert repr(value) == text


@pytest.mark.parametrize("value", [Described(ULong(1), 1), Array(0x40, []), Map([])], ids=repr)
def test_what_contains_values_has_no_hash(value: object) -> None:
    with pytest.raises(TypeError):
        hash(value)


def test_of_combined_maps_the_new_values_hold() -> None:
    old = Map([(Symbol("a"), 1), (1, "one"), (True, "true")])
    new = Map([(Symbol("b"), 2), (1.0, "real"), (Symbol("a"), None)])
    assert combined(old, new) == Map(
        [
            (1, "one"),
            (True, "true"),
            (Symbol("b"), 2),
            (1.0, "real"),
            (Symbol("a"), None),
        ]
    )
