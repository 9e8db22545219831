"""Values of AMQP as JSON, which every client can read."""

import json
import math
from uuid import UUID

import pytest

from broker.amqp.types import (
    Array,
    Decimal,
    Described,
    Float,
    Int,
    Map,
    Symbol,
    Timestamp,
    ULong,
)
from broker.http.api.json_values import encoded, encoded_in_portions, plain

pytestmark = pytest.mark.requirement("OPS-01")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, None, id="null"),
        pytest.param(True, True, id="boolean"),
        pytest.param(2**53 - 1, 2**53 - 1, id="a number that doubles hold"),
        pytest.param(2**53, "9007199254740992", id="a number that they do not"),
        pytest.param(ULong(2**64 - 1), "18446744073709551615", id="ulong"),
        pytest.param(Int(-7), -7, id="int"),
        pytest.param(Timestamp(5), 5, id="timestamp"),
        pytest.param(Float(0.5), 0.5, id="float"),
        pytest.param(math.inf, "inf", id="infinity"),
        pytest.param(math.nan, "nan", id="not a number"),
        pytest.param(b"\x00\xff", {"base64": "AP8="}, id="binary"),
        pytest.param(Symbol("a"), "a", id="symbol"),
        pytest.param(UUID(int=1), "00000000-0000-0000-0000-000000000001", id="uuid"),
        pytest.param(Decimal(b"\x00" * 4), {"base64": "AAAAAA=="}, id="decimal"),
        pytest.param(Map([("a", Int(1))]), {"a": 1}, id="map"),
        pytest.param(Map([(1, "x")]), [[1, "x"]], id="a map of other keys"),
        pytest.param(Map([("a", 1), (Symbol("a"), 2)]), [["a", 1], ["a", 2]], id="two keys as one"),
        pytest.param(
            Described(Symbol("d"), ["x"]), {"descriptor": "d", "value": ["x"]}, id="described"
        ),
        pytest.param(Array(0xA1, ["x"]), ["x"], id="array"),
        pytest.param({1: ("a",)}, {"1": ["a"]}, id="containers"),
    ],
)
def test_values(value: object, expected: object) -> None:
    assert plain(value) == expected
    assert json.loads(encoded(value)) == expected


def test_a_lone_surrogate_is_still_json() -> None:
    assert json.loads(encoded("a\udc80")) == "a\udc80"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"items": [{"a": 1}] * 70, "next": None}, id="a page"),
        pytest.param({"items": [], "next": "x", "total": 0}, id="an empty page"),
        pytest.param({"items": [1]}, id="items alone"),
        pytest.param({"a": 1}, id="no page"),
        pytest.param({"b": [1, {"c": [2]}], "a": {"d": []}, "e": []}, id="several lists"),
        pytest.param([1], id="a list"),
    ],
)
async def test_portions_together_are_the_value(value: object) -> None:
    assert await encoded_in_portions(value) == encoded(value)
