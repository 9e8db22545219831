"""Values in the forms of `propertiesAs`, what is no message, and the time of expiration."""

from __future__ import annotations

import pyarrow as pa
import pytest

from broker.amqp.types import Char, Int, Timestamp, UInt
from broker.jms import MapBody, NoBody, StreamBody, encode
from pyspark_amqp.rows.decoding import RowMaker, told_of
from tests.support.jms import HEADER, PROPERTIES, VALUE, joined
from tests.unit.pyspark_amqp.rows.test_columns import NOW, message_of, rows_of


def test_as_json_values_are_plain() -> None:
    batch = rows_of(
        [encode(message_of(MapBody({"a": Int(1), "b": b"\xff"})))], properties_as="json"
    )
    [row] = batch.to_pylist()
    assert row["bodyMap"] == '{"a":1,"b":"ff"}'
    assert '"letter":"😀"' in row["properties"]


@pytest.mark.requirement("PIP-79")
def test_as_strings_values_are_texts_without_types() -> None:
    told = MapBody({"a": Int(1), "b": b"\xff", "c": None})
    batch = rows_of(
        [encode(message_of(told)), encode(message_of(NoBody()))], properties_as="string"
    )
    first, second = batch.to_pylist(maps_as_pydicts="strict")
    assert first["bodyMap"] == {"a": "1", "b": "ff", "c": None}
    assert second["bodyMap"] is None
    assert first["properties"] == {
        "flag": "true",
        "tiny": "-1",
        "small": "300",
        "number": "70000",
        "long": str(2**40),
        "ratio": "0.5",
        "precise": "0.1",
        "text": "tëxt",
        "letter": "\N{GRINNING FACE}",
        "bytes": "00ff",
        "nothing": None,
    }
    batch = rows_of([encode(message_of(StreamBody(["x", False])))], properties_as="string")
    assert batch.to_pylist()[0]["bodyList"] == ["x", "false"]


@pytest.mark.requirement("PIP-79")
@pytest.mark.parametrize("code", [0xD800, 0xDFFF])
def test_half_a_character_of_java_is_told_as_a_number(code: int) -> None:
    """A map of JMS may have such a char, which no text of Arrow can have."""
    data = encode(message_of(MapBody({"half": Char(code), "whole": Char(65)})))
    [row] = rows_of([data], ["bodyMap"], properties_as="json").to_pylist()
    assert row["bodyMap"] == f'{{"half":{{"char":{code}}},"whole":"A"}}'
    [row] = rows_of([data], ["bodyMap"], properties_as="string").to_pylist()
    assert dict(row["bodyMap"]) == {"half": f'{{"char":{code}}}', "whole": "A"}


@pytest.mark.parametrize("form", ["typed", "json", "string"])
def test_what_is_no_message_may_be_alone_in_its_batch(form: str) -> None:
    for row in rows_of([b"\x00garbage", b"\x00?"], properties_as=form).to_pylist():
        told = {"address", "position", "enqueuedAt", "amqp", "bodyJson"}
        assert {name for name, value in row.items() if value is not None} == told


@pytest.mark.parametrize(
    ("ttl_ms", "absolute", "ends_ms", "expected"),
    [
        pytest.param(40, None, NOW + 60_000, NOW + 60_000, id="the broker tells its end"),
        pytest.param(40, None, None, NOW + 40, id="another broker: from now on"),
        pytest.param(40, NOW + 9, NOW + 60_000, NOW + 9, id="a time of the sender"),
        pytest.param(40, 0, NOW + 60_000, None, id="the sender says never"),
        pytest.param(None, None, None, None, id="without a ttl"),
    ],
)
def test_when_a_message_expires(
    ttl_ms: int | None, absolute: int | None, ends_ms: int | None, expected: int | None
) -> None:
    sections: list[tuple[int, object]] = []
    if ttl_ms is not None:
        sections.append((HEADER, [True, None, UInt(ttl_ms)]))
    if absolute is not None:
        sections.append((PROPERTIES, [*[None] * 8, Timestamp(absolute)]))
    told = told_of(
        [joined(*sections, (VALUE, "x"))],
        positions=[None],
        enqueued_us=[None],
        ttl_ends_us=[ends_ms and ends_ms * 1000],
    )
    maker = RowMaker(["JMSExpiration"], address="q", now_ms=lambda: NOW)
    [found] = maker.batch(told).column(0).cast(pa.int64()).to_pylist()
    assert found == (expected and expected * 1000)
