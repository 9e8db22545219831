"""Values and maps of values in Arrow's buffers: the same from encoded and from decoded values."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.errors import Fault
from broker.amqp.types import Char, Decimal, Float, Int, Map, Symbol, ULong, same
from broker.jms import MappingError
from pyspark_amqp.rows.buffers import Maps, Values
from pyspark_amqp.rows.typed import map_array, struct_array, value_of, values_of
from tests.support.amqp_values import scalars, values
from tests.support.encoded import NULL, mapped, string


def encoded(value: object) -> bytes:
    out = BytesWriter()
    put_value(out, value)
    return out.getvalue()


@given(st.lists(scalars() | values(), max_size=8))
@example([None, True, False, 0, 127, 2**63 - 1, -0.0, "", "a" * 256, b"", Int(1), Float(0.5)])
@example([Char(0xD800), Char(0x1F600), ULong(2**64 - 1), Symbol("s"), Decimal(bytes(16)), [1]])
def test_encoded_values_are_held_like_decoded_ones(given: list[object]) -> None:
    taken, added = Values(), Values()
    for value in given:
        data = b"before" + encoded(value) + b"behind"
        assert taken.take(data, len(b"before"), len(data)) == len(data) - len(b"behind")
        added.add(value)
    array = struct_array(taken)
    array.validate(full=True)
    # compared by their buffers, since NaN is not equal to itself
    assert same(values_of(array), given)
    assert array.to_pylist().__repr__() == struct_array(added).to_pylist().__repr__()


@given(st.lists(st.dictionaries(st.text(max_size=3) | st.just("a" * 256), scalars(), max_size=4)))
def test_encoded_maps_are_held_like_decoded_ones(given: list[dict[str, object]]) -> None:
    taken = Maps()
    for entries in given:
        data = encoded(entries)
        taken.take(data, 0, len(data))
        taken.close()
    array = map_array(taken)
    array.validate(full=True)
    for told, entries in zip(array.to_pylist(), given, strict=True):
        assert [name for name, _ in told] == list(entries)
        assert same([value_of(value) for _, value in told], list(entries.values()))


NO_MAPS = [
    pytest.param(mapped(NULL, "54 01"), MappingError, id="an entry without a name"),
    pytest.param(mapped("54 01", "54 01"), Fault, id="a name that is a number"),
    pytest.param(mapped("a1 01 ff", "54 01"), Fault, id="a name that is not UTF-8"),
    pytest.param(mapped(string("b"), "a1 01 ff"), Fault, id="a text that is not UTF-8"),
    pytest.param(mapped(string("b"), "a1 09 61"), Fault, id="a text that is cut"),
    pytest.param(mapped(string("b"), "3f 01"), Fault, id="no constructor"),
    pytest.param(
        mapped(string("b"), "54 01", string("b"), "54 02"), MappingError, id="a name twice"
    ),
    pytest.param(
        mapped(string("b"), "54 01", "b1 00000001 62", "54 02"),
        MappingError,
        id="a name twice, encoded in two ways",
    ),
]


@pytest.mark.parametrize(("hexadecimal", "error"), NO_MAPS)
def test_what_is_no_map_is_told_and_leaves_the_others_alone(
    hexadecimal: str, error: type[Exception]
) -> None:
    good = encoded({"a": "x", "b": 1})
    bad = bytes.fromhex(hexadecimal)
    maps = Maps()
    maps.take(good, 0, len(good))
    maps.close()
    with pytest.raises(error):
        maps.take(bad, 0, len(bad))
    maps.close()
    maps.take(good, 0, len(good))
    maps.close()
    maps.take(good, -1, len(good))
    maps.close()
    array = map_array(maps)
    array.validate(full=True)
    first, _, last, empty = array.to_pylist()
    assert first == last
    assert [name for name, _ in first] == ["a", "b"]
    assert empty == []


def test_a_name_may_be_empty() -> None:
    maps = Maps()
    maps.add({"": 1})
    maps.close()
    data = encoded(Map([("", 1)]))
    maps.take(data, 0, len(data))
    maps.close()
    added, taken = map_array(maps).to_pylist()
    assert added == taken
