"""Properties, map bodies and stream bodies in the forms of `propertiesAs` that have no types."""

from __future__ import annotations

import pytest

from broker.amqp.types import Int
from broker.jms import MapBody, NoBody, StreamBody, encode
from tests.unit.pyspark_amqp.rows.test_columns import message_of, rows_of


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
