"""Values of AMQP in JSON's types."""

from uuid import UUID

import pytest

pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")

from proton import UNDESCRIBED, Array, Data, Described, symbol, timestamp, ubyte, ulong

from broker.cli.plain_values import plain

VALUES = [
    pytest.param(None, None, id="null"),
    pytest.param("text", "text", id="a string"),
    pytest.param(symbol("name"), "name", id="a symbol"),
    pytest.param(ulong(2**64 - 1), 2**64 - 1, id="an unsigned number"),
    pytest.param(ubyte(1), 1, id="a small number"),
    pytest.param(timestamp(5), 5, id="a time"),
    pytest.param(1.5, 1.5, id="a fraction"),
    pytest.param(True, True, id="a truth"),
    pytest.param(b"\x00\xff", {"base64": "AP8="}, id="binary"),
    pytest.param(memoryview(b"a"), {"base64": "YQ=="}, id="binary as a view"),
    pytest.param(
        UUID("12345678123456781234567812345678"), "12345678-1234-5678-1234-567812345678", id="uuid"
    ),
    pytest.param([1, b"a"], [1, {"base64": "YQ=="}], id="a list"),
    pytest.param({"a": {"b": b"c"}}, {"a": {"b": {"base64": "Yw=="}}}, id="maps"),
    pytest.param({1: "a"}, {"1": "a"}, id="a number as key"),
    pytest.param(
        Described(symbol("a:b"), [1]), {"descriptor": "a:b", "value": [1]}, id="a described value"
    ),
    pytest.param(
        Array(UNDESCRIBED, Data.INT, 1, 2),  # type: ignore[arg-type]  # proton's own word for none
        [1, 2],
        id="an array",
    ),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_a_value_in_the_types_of_json(value: object, expected: object) -> None:
    assert plain(value) == expected
