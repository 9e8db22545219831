"""Rows that become messages, and rows that cannot: none loses a part of what it has."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pytest

from pyspark_amqp.options import OptionError
from pyspark_amqp.sink.encoding import MessageMaker, RowError, check_columns
from tests.unit.pyspark_amqp.rows.test_columns import rows_of

NOW: Final = 1_700_000_000_000


def sent(row: dict[str, object], body_type: str | None = None) -> dict[str, object]:
    """Return the row of the message that is made of `row`."""
    maker = MessageMaker(name="q", address="a", body_type=body_type, now_ms=lambda: NOW)
    [made] = maker.messages(pa.RecordBatch.from_pylist([row]))
    [read] = rows_of([made.data]).to_pylist()
    return dict(read)


@pytest.mark.requirement("PIP-32")
@pytest.mark.parametrize(
    ("row", "body_type", "expected"),
    [
        ({"value": "é"}, None, ("text", "bodyText", "é")),
        ({"value": "é"}, "text", ("text", "bodyText", "é")),
        ({"value": "é"}, "bytes", ("bytes", "bodyBytes", "é".encode())),
        ({"value": b"x"}, None, ("bytes", "bodyBytes", b"x")),
        ({"value": b"x"}, "bytes", ("bytes", "bodyBytes", b"x")),
        ({"value": b"x"}, "object", ("object", "bodyBytes", b"x")),
        ({"value": "x", "bodyText": None}, None, ("text", "bodyText", "x")),
        ({"value": None, "bodyText": "x"}, None, ("text", "bodyText", "x")),
        ({"value": None}, None, ("message", "bodyText", None)),
        ({"value": None}, "text", ("text", "bodyText", None)),
        ({"value": "x", "bodyType": "bytes"}, "text", ("bytes", "bodyBytes", b"x")),
    ],
)
def test_a_value_is_the_body(
    row: dict[str, object], body_type: str | None, expected: tuple[str, str, object]
) -> None:
    read = sent(row, body_type)
    kind, column, body = expected
    assert (read["bodyType"], read[column]) == (kind, body)


@pytest.mark.requirement("PIP-32")
@pytest.mark.parametrize(
    ("row", "body_type", "reason"),
    [
        ({"value": 5}, None, "value is neither text nor binary"),
        ({"value": b"x"}, "text", "bodyType text does not have a bodyBytes"),
        ({"value": "x"}, "map", "bodyType map does not have a bodyText"),
        ({"value": "x"}, "stream", "bodyType stream does not have a bodyText"),
        ({"value": "x"}, "object", "bodyType object does not have a bodyText"),
        ({"value": "x"}, "message", "bodyType message does not have a bodyText"),
        ({"bodyText": "x", "bodyType": "map"}, None, "bodyType map does not have a bodyText"),
        ({"bodyText": "x", "bodyType": "bytes"}, None, "bodyType bytes does not have a bodyText"),
        ({"bodyText": "x", "value": "y"}, None, "several bodies: bodyText, value"),
        ({"bodyText": "x", "value": b"y"}, "text", "several bodies: bodyText, bodyBytes"),
        ({"bodyBytes": b"x", "bodyJson": "1"}, "object", "several bodies: bodyBytes, bodyJson"),
    ],
)
def test_no_body_is_left_out(row: dict[str, object], body_type: str | None, reason: str) -> None:
    with pytest.raises(RowError, match=f"row 0 of q is no message: .*{reason}"):
        sent(row, body_type)


@pytest.mark.requirement("PIP-32")
@pytest.mark.parametrize("name", ["properties", "bodyMap"])
def test_the_names_of_a_map_are_texts(name: str) -> None:
    numbered = pa.array([None, [(1, "x")]], pa.map_(pa.int32(), pa.string()))
    maker = MessageMaker(name="q", address="a", now_ms=lambda: NOW)
    made = maker.messages(pa.RecordBatch.from_arrays([numbered], names=[name]))
    next(made)
    with pytest.raises(RowError, match=r"row 1 of q .*: the names of a map are int32, not texts"):
        next(made)


@pytest.mark.requirement("PIP-32")
def test_the_names_of_a_map_may_be_large_texts_of_arrow() -> None:
    """Spark's setting `spark.sql.execution.arrow.useLargeVarTypes` makes such ones."""
    named = pa.array([[("a", "x")]], pa.map_(pa.large_string(), pa.large_string()))
    maker = MessageMaker(name="q", address="a", now_ms=lambda: NOW)
    [made] = maker.messages(pa.RecordBatch.from_arrays([named], names=["bodyMap"]))
    [read] = rows_of([made.data]).to_pylist()
    assert read["bodyType"] == "map"


@pytest.mark.parametrize("name", ["JMSPriority", "JMSDeliveryMode", "JMSTimestamp"])
def test_a_boolean_is_no_number(name: str) -> None:
    with pytest.raises(RowError, match=f"{name} is no whole number"):
        sent({"value": "x", name: True})


KINDS: Final = [
    ("value", "string", True),
    ("value", "binary", True),
    ("value", "void", True),
    ("value", "integer", False),
    ("value", "struct", False),
    ("JMSTimestamp", "timestamp", True),
    ("JMSExpiration", "timestamp_ntz", True),
    ("JMSTimestamp", "long", False),
    ("JMSExpiration", "long", False),
    ("JMSDeliveryTime", "date", False),
    ("JMSPriority", "byte", True),
    ("JMSPriority", "void", True),
    ("JMSPriority", "boolean", False),
    ("JMSPriority", "string", False),
    ("JMSDeliveryMode", "double", False),
    ("JMSXGroupSeq", "long", True),
    ("JMS_AMQP_TTL", "decimal", False),
    ("messageFormat", "boolean", False),
]


@pytest.mark.requirement("PIP-32")
@pytest.mark.parametrize(("name", "kind", "is_allowed"), KINDS)
@pytest.mark.parametrize("raw", [False, True])
def test_a_column_of_another_type_is_named_before_anything_is_sent(
    name: str, kind: str, is_allowed: bool, raw: bool
) -> None:
    """With replay=raw the sink uses none of these columns."""
    columns = {"amqp": "binary", name: kind}
    if is_allowed or raw:
        check_columns(columns, raw=raw, address="a")
        return
    with pytest.raises(OptionError, match=f"the column {name} of the sink is .*, not"):
        check_columns(columns, raw=raw, address="a")
