"""Values as the console shows them."""

from __future__ import annotations

import pytest

from broker.amqp.types import Map, Symbol
from broker.http.console.listings import BYTES, DURATION, FLAG, NUMBER, TIME
from broker.http.console.values import (
    DUMP_MAX,
    NOTHING,
    address_of,
    dump,
    form_of,
    shown,
    table_of,
)

pytestmark = pytest.mark.requirement("OPS-06")


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        pytest.param(None, NUMBER, NOTHING, id="nothing"),
        pytest.param("", "", NOTHING, id="an empty text"),
        pytest.param([], "", NOTHING, id="an empty list"),
        pytest.param(True, "", "yes", id="true"),
        pytest.param(0, FLAG, "no", id="a number as a flag"),
        pytest.param(1234567, NUMBER, "1,234,567", id="a number"),
        pytest.param(0, NUMBER, "0", id="zero"),
        pytest.param(1023, BYTES, "1023 B", id="bytes"),
        pytest.param(1024, BYTES, "1.0 KiB", id="a kibibyte"),
        pytest.param(3 * 1024**3, BYTES, "3.0 GiB", id="gibibytes"),
        pytest.param(2**60, BYTES, "1048576.0 TiB", id="more than units reach"),
        pytest.param(0, DURATION, NOTHING, id="no duration"),
        pytest.param(999, DURATION, "999 ms", id="milliseconds"),
        pytest.param(59_999, DURATION, "59 s", id="seconds"),
        pytest.param(61_000, DURATION, "1 min 1 s", id="minutes"),
        pytest.param(3_660_000, DURATION, "1 h 1 min", id="hours"),
        pytest.param(90_000_000, DURATION, "1 d 1 h", id="days"),
        pytest.param(1_795_710_050_249, TIME, "2026-11-26 16:20:50", id="a time"),
        pytest.param(0, TIME, NOTHING, id="no time"),
        pytest.param(2**62, TIME, f"{2**62} ms", id="a time that no calendar has"),
        pytest.param(["a", "b"], "", "a, b", id="a list"),
        pytest.param({"a": [1]}, "", '{"a": [1]}', id="a map"),
        pytest.param(b"\x00", "", '{"base64": "AA=="}', id="binary"),
    ],
)
def test_a_value_is_shown(value: object, form: str, text: str) -> None:
    assert shown(value, form) == text


@pytest.mark.parametrize(
    ("attribute", "form"),
    [
        ("started_at", TIME),
        ("expires_at_ms", TIME),
        ("uptime_ms", DURATION),
        ("bytes", BYTES),
        ("staged_bytes", BYTES),
        ("messages", NUMBER),
    ],
)
def test_the_form_of_an_attribute_is_in_its_name(attribute: str, form: str) -> None:
    assert form_of(attribute) == form


def test_sections_become_rows() -> None:
    section = Map([("b", True), (Symbol("x-opt"), 3), ("t", "text"), ("n", None), ("d", b"\x01")])
    assert table_of(section) == [
        ("b", "boolean", "true"),
        ("x-opt", "integer", "3"),
        ("t", "string", "text"),
        ("d", "binary", '{"base64": "AQ=="}'),
    ]
    assert table_of({"a": 1.5}) == [("a", "double", "1.5")]
    assert table_of(None) == []


def test_binary_is_dumped_up_to_a_limit() -> None:
    assert dump(b"AB\x00" * 6).splitlines() == [
        "000000  41 42 00 41 42 00 41 42 00 41 42 00 41 42 00 41  AB.AB.AB.AB.AB.A",
        "000010  42 00                                            B.",
    ]
    assert len(dump(b"x" * (DUMP_MAX + 100)).splitlines()) == DUMP_MAX // 16


def test_addresses_of_pages_are_quoted() -> None:
    assert address_of("/queues", "a/b?c") == "/console/queues/a%2Fb%3Fc"
    assert address_of("/messages", queue="a&b", state="") == "/console/messages?queue=a%26b"
