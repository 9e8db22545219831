"""Messages as Arrow rows, in both directions."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.amqp.types import (
    Byte,
    Char,
    Decimal,
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
    same,
)
from broker.jms import (
    NON_PERSISTENT,
    BytesBody,
    Destination,
    DestinationType,
    JmsMessage,
    MapBody,
    NoBody,
    ObjectBody,
    SerializedBody,
    StreamBody,
    TextBody,
    encode,
    stamp,
)
from broker.jms.bodies import Body
from pyspark_amqp.engines.duckdb_engine import duckdb_engine
from pyspark_amqp.jobs.statements import query
from pyspark_amqp.options import OptionError
from pyspark_amqp.rows.amqp_json import annotations_from_json, annotations_json, from_json, to_json
from pyspark_amqp.rows.buffers import Values
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS, MESSAGE_COLUMNS, ddl_of, schema_of
from pyspark_amqp.rows.decoding import RowMaker, told_of
from pyspark_amqp.rows.typed import Unreadable, lists, maps, struct_array, value_of, values_of
from pyspark_amqp.sink.encoding import MessageMaker, RowError, check_columns
from tests.support.amqp_values import scalars, values

NOW: Final = 1_700_000_000_000
NOW_US: Final = NOW * 1000
ALL: Final = list(MESSAGE_COLUMNS)

JMS_VALUES: Final = {
    "flag": True,
    "tiny": Byte(-1),
    "small": Short(300),
    "number": Int(70_000),
    "long": 2**40,
    "ratio": Float(0.5),
    "precise": 0.1,
    "text": "tëxt",
    "letter": Char(0x1F600),
    "bytes": b"\x00\xff",
    "nothing": None,
}
BODIES: Final = {
    "message": NoBody(),
    "text": TextBody("hello"),
    "bytes": BytesBody(b"\x01\x02"),
    "map": MapBody(dict(JMS_VALUES)),
    "stream": StreamBody(list(JMS_VALUES.values())),
    "object": ObjectBody(Map([(Symbol("k"), [1, UInt(2), None])])),
}


def message_of(body: Body) -> JmsMessage:
    """Return a message that has a value in every column."""
    message = JmsMessage(body)
    for name, value in JMS_VALUES.items():
        message.set_any_property(name, value)
    message.time_to_live = 60_000
    stamp(
        message,
        now_ms=NOW,
        message_id="ID:1",
        destination=Destination("orders", DestinationType.TOPIC),
        delivery_delay=5,
    )
    message.correlation_id = f"ID:AMQP_UUID:{uuid.UUID(int=7)}"
    message.reply_to = Destination("answers", DestinationType.TEMPORARY_QUEUE)
    message.type = "kind"
    message.priority = 7
    message.delivery_mode = NON_PERSISTENT
    message.user_id = "ann"
    message.group_id = "g"
    message.group_sequence = -1
    message.reply_to_group_id = "h"
    message.content_encoding = "gzip"
    message.annotations = Map([(Symbol("x-opt-own"), [Int(1), Timestamp(5)])])
    return message


def rows_of(
    messages: Sequence[bytes], names: Sequence[str] = ALL, **more: object
) -> pa.RecordBatch:
    """Return the columns `names` of these encoded messages, as the source makes them."""
    maker = RowMaker(names, address="here", **more)  # type: ignore[arg-type]
    places = range(len(messages))
    told = told_of(messages, positions=places, enqueued_us=[NOW_US + at for at in places])
    batch = maker.batch(told)
    batch.validate(full=True)
    return batch


@pytest.mark.requirement("PIP-30")
def test_a_message_in_every_column() -> None:
    data = encode(message_of(TextBody("hello")))
    batch = rows_of([data], include_raw=True)
    assert batch.schema == schema_of(MESSAGE_COLUMNS)
    assert len(batch.schema) == 38
    [row] = batch.to_pylist()
    assert batch.column("enqueuedAt").cast(pa.int64()).to_pylist() == [NOW_US]
    for name, moment in (
        ("JMSTimestamp", NOW),
        ("JMSExpiration", NOW + 60_000),
        ("JMSDeliveryTime", NOW + 5),
    ):
        assert batch.column(name).cast(pa.int64()).to_pylist() == [moment * 1000]
        del row[name]
    del row["enqueuedAt"]
    properties = dict(row.pop("properties"))
    assert {name: value_of(told) for name, told in properties.items()} == JMS_VALUES
    assert properties["number"]["type"] == "int"
    assert row == {
        "address": "here",
        "subscription": None,
        "position": 0,
        "JMSMessageID": "ID:1",
        "JMSCorrelationID": "ID:AMQP_UUID:00000000-0000-0000-0000-000000000007",
        "JMSDestination": "orders",
        "JMSDestinationType": "topic",
        "JMSReplyTo": "answers",
        "JMSReplyToType": "temporary-queue",
        "JMSType": "kind",
        "JMSPriority": 7,
        "JMSDeliveryMode": 1,
        "JMSRedelivered": False,
        "JMSXDeliveryCount": 1,
        "JMSXUserID": "ann",
        "JMSXGroupID": "g",
        "JMSXGroupSeq": -1,
        "JMS_AMQP_TTL": 60_000,
        "JMS_AMQP_REPLY_TO_GROUP_ID": "h",
        "contentType": None,
        "contentEncoding": "gzip",
        "bodyType": "text",
        "bodySection": "amqp-value",
        "bodyText": "hello",
        "bodyBytes": None,
        "bodyMap": None,
        "bodyList": None,
        "bodyJson": None,
        "messageId": {"type": "string", "string": "ID:1", **NO_ID},
        "correlationId": {
            **NO_ID,
            "type": "uuid",
            "uuid": "00000000-0000-0000-0000-000000000007",
            "string": None,
        },
        "messageAnnotations": '{"x-opt-own":[{"int":1},{"timestamp":5}]}',
        "amqp": data,
        "messageFormat": None,
    }


def structs(given: Sequence[object]) -> pa.StructArray:
    added = Values()
    for value in given:
        added.add(value)
    return struct_array(added)


NO_ID: Final = {"ulong": None, "uuid": None, "binary": None}


@pytest.mark.requirement("PIP-53")
@pytest.mark.parametrize("kind", BODIES)
def test_a_message_of_each_kind_comes_back_byte_for_byte_from_its_columns(kind: str) -> None:
    data = encode(message_of(BODIES[kind]))
    batch = rows_of([data])
    assert batch.column("bodyType").to_pylist() == [kind]
    assert batch.column("amqp").to_pylist() == [None]
    # the destination is the address to which the message is sent
    columns = batch.drop_columns(["address"])
    maker = MessageMaker(name="q/1/0", address="orders", now_ms=lambda: NOW)
    [sent] = maker.messages(columns)
    assert sent.data == data


@pytest.mark.requirement("PIP-53")
@pytest.mark.parametrize("first", range(len(BODIES)))
def test_a_part_of_a_batch_has_the_messages_of_that_part(first: int) -> None:
    """A slice of an Arrow batch shares the buffers of the whole batch."""
    data = [encode(message_of(body)) for body in BODIES.values()]
    part = rows_of(data).slice(first, 2)
    maker = MessageMaker(name="q", address="orders", now_ms=lambda: NOW)
    assert [sent.data for sent in maker.messages(part)] == data[first : first + 2]


@given(st.lists(scalars() | values(), min_size=3, max_size=8))
def test_values_in_columns_are_those_one_by_one(given: list[object]) -> None:
    array = structs(given)
    assert same(values_of(array), given)
    assert same(values_of(array.slice(1, 2)), given[1:3])


def test_a_value_that_is_none_is_told_of_where_it_is_wanted() -> None:
    array = pa.array(
        [{"type": "int", "long": 2**40}, None, {"type": "long"}, {"type": "x"}], structs([1]).type
    )
    first, none, empty, strange = values_of(array)
    assert none is None
    for value in (first, empty, strange):
        assert isinstance(value, Unreadable)


def test_a_serialized_object_is_bytes() -> None:
    data = encode(message_of(SerializedBody(b"\xac\xed\x00\x05t")))
    batch = rows_of([data])
    assert batch.column("bodyBytes").to_pylist() == [b"\xac\xed\x00\x05t"]
    assert batch.column("bodyJson").to_pylist() == [None]
    [sent] = MessageMaker(name="q", address="orders", now_ms=lambda: NOW).messages(batch)
    assert sent.data == data


@pytest.mark.requirement("PIP-31")
def test_what_is_not_asked_for_is_not_decoded() -> None:
    """Bytes that are no message raise no error if no column of their contents is asked for."""
    batch = rows_of([b"\x00no message"], ["position", "amqp", "address"], include_raw=True)
    assert batch.to_pylist() == [{"position": 0, "amqp": b"\x00no message", "address": "here"}]


@pytest.mark.requirement("PIP-31")
def test_a_row_has_the_columns_that_are_asked_for_in_their_order() -> None:
    batch = rows_of([encode(message_of(TextBody("x")))], ["bodyText", "JMSPriority", "position"])
    assert batch.to_pylist() == [{"bodyText": "x", "JMSPriority": 7, "position": 0}]


def test_without_bodies_their_columns_are_null() -> None:
    batch = rows_of([encode(message_of(TextBody("x")))], include_body=False)
    assert batch.column("bodyText").to_pylist() == batch.column("bodyType").to_pylist() == [None]


def test_what_is_no_message_is_a_row_with_its_bytes_and_the_reason() -> None:
    """The rows before and after it are not affected."""
    good = encode(message_of(MapBody({"a": 1})))
    batch = rows_of([good, b"\x00garbage", good])
    first, bad, last = batch.to_pylist()
    assert dict(first["properties"]) == dict(last["properties"])
    assert bad["amqp"] == b"\x00garbage"
    assert bad["position"] == 1
    assert bad["bodyJson"].startswith('{"error":"amqp:decode-error')
    told = {"address", "position", "enqueuedAt", "amqp", "bodyJson"}
    assert {name for name, value in bad.items() if value is not None} == told


def test_a_message_that_says_no_destination_is_for_where_it_is() -> None:
    message = message_of(NoBody())
    message.destination = None
    there = Destination("a/topic", DestinationType.TOPIC)
    batch = rows_of([encode(message)], ["JMSDestination", "JMSDestinationType"], consumer=there)
    assert batch.to_pylist() == [{"JMSDestination": "a/topic", "JMSDestinationType": "topic"}]


LAST_US: Final = 9_223_372_022_400_000_000


@pytest.mark.parametrize(
    ("ms", "us"),
    [
        (2**63 - 1, LAST_US),
        (LAST_US // 1000, LAST_US),
        (LAST_US // 1000 + 1, LAST_US),
        (-LAST_US // 1000, -LAST_US),
        (-LAST_US // 1000 - 1, -LAST_US),
        (-(2**63), -LAST_US),
    ],
)
def test_times_out_of_the_range_of_the_engines_become_its_ends(ms: int, us: int) -> None:
    message = message_of(NoBody())
    message.timestamp = ms
    batch = rows_of([encode(message)], ["JMSTimestamp"])
    assert batch.column(0).cast(pa.int64()).to_pylist() == [us]
    with duckdb_engine() as engine:
        kept = engine.of_arrow(pa.Table.from_batches([batch]))
        read = query("SELECT unix_micros(JMSTimestamp) AS us FROM {kept}", kept=kept)
        assert read.rows() == [{"us": us}]


@pytest.mark.parametrize(
    "value",
    [
        *JMS_VALUES.values(),
        UByte(1),
        UShort(2),
        UInt(3),
        ULong(2**64 - 1),
        Timestamp(-1),
        uuid.UUID(int=1),
        Symbol("s"),
        Decimal(b"1234"),
        Char(0xD800),
    ],
    ids=repr,
)
def test_a_value_of_each_type_is_the_same_again(value: object) -> None:
    [told] = structs([value]).to_pylist()
    assert same(value_of(told), value)


@given(st.lists(scalars() | values(), max_size=8))
@example([Float(-math.nan), -math.nan])
def test_values_of_all_types_beside_one_another_are_the_same_again(given: list[object]) -> None:
    again = [value_of(told) for told in structs(given).to_pylist()]
    assert same(again, given)
    [as_list, none] = lists([given, None]).to_pylist()
    assert none is None
    assert same([value_of(told) for told in as_list], given)


@given(st.lists(st.none() | st.dictionaries(st.text(), scalars(), max_size=3), max_size=5))
def test_maps_of_values_are_the_same_again(given: list[dict[str, object] | None]) -> None:
    for told, entries in zip(maps(given).to_pylist(), given, strict=True):
        again = None if told is None else {name: value_of(value) for name, value in told}
        assert (again is None) == (entries is None)
        if entries is not None and again is not None:
            assert list(again) == list(entries)
            assert same(list(again.values()), list(entries.values()))


@given(values())
@example(-math.nan)
@example(Float(-math.nan))
def test_json_tells_values_of_all_types(value: object) -> None:
    assert same(from_json(to_json(value)), value)
    annotations = Map([(Symbol("x"), value), (ULong(5), 1), (Symbol("#y"), 2)])
    assert annotations_from_json(annotations_json(annotations)) == annotations


@pytest.mark.parametrize(
    "text", ['{"int": "x"}', '{"huge": 1}', "{", '{"a": 1, "b": 2}', '{"map": 1}']
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the texts are Python's own
        from_json(text)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"bodyText": "a", "bodyBytes": b"b"}, "several bodies, and no bodyType: text, bytes"),
        ({"bodyType": "story"}, "bodyType 'story' is none of text, bytes"),
        ({"JMSMessageID": "1"}, "a JMSMessageID begins with ID:"),
        ({"JMSPriority": 11}, "JMSPriority is 0 to 9"),
        ({"JMSDestinationType": "tube"}, "'tube' is not a valid DestinationType"),
        ({"messageAnnotations": "[]"}, "annotations are a JSON object"),
        ({"bodyJson": '{"int": "x"}'}, "row 1 of q/3/1 is no message"),
        ({"address": None, "bodyText": "x"}, "its address is null"),
        ({"address": 5, "bodyText": "x"}, "address is no text"),
        ({"bodyText": 5}, "bodyText is no text"),
        ({"bodyBytes": "x"}, "bodyBytes is not binary"),
        ({"bodyList": "x"}, "bodyList is no list"),
        ({"bodyList": [{"type": "long"}]}, "is no value of type long: long is null"),
        ({"bodyMap": 5}, "bodyMap is no map"),
        ({"properties": {"a": {"type": "story"}}}, "is no value of type story"),
        ({"JMSType": 5}, "JMSType is no text"),
        ({"JMSPriority": "x"}, "JMSPriority is no whole number"),
        ({"messageId": {"type": "ulong", "string": "x"}}, "invalid literal for int"),
        ({"messageId": {"type": "date", "string": "x"}}, "messageId is none: {'type': 'date'"),
    ],
)
@pytest.mark.requirement("PIP-53")
def test_a_row_that_is_no_message_is_named(row: dict[str, object], told: str) -> None:
    address = None if "address" in row else "q"
    maker = MessageMaker(name="q/3/1", address=address, now_ms=lambda: NOW)
    good = pa.RecordBatch.from_pylist([{"value": "x", "address": "a"}])
    assert [sent.address for sent in maker.messages(good)] == [address or "a"]
    with pytest.raises(RowError, match="row 1 of q/3/1 is no message") as raised:
        list(maker.messages(pa.RecordBatch.from_pylist([row])))
    assert told in str(raised.value)


def _sent(batch: pa.RecordBatch) -> list[bytes]:
    maker = MessageMaker(name="q", address="a", now_ms=lambda: NOW)
    return [sent.data for sent in maker.messages(batch)]


@pytest.mark.requirement("PIP-53")
def test_properties_are_the_same_however_a_row_has_them() -> None:
    """They may be a map of V, a map of structs with some of its fields, or a struct of either."""
    entries: dict[str, object] = {"colour": "red", "size": "xl"}
    some = {name: {"type": "string", "string": value} for name, value in entries.items()}
    part = pa.map_(pa.string(), pa.struct([("type", pa.string()), ("string", pa.string())]))
    ways = [
        pa.RecordBatch.from_arrays([maps([entries])], ["properties"]),
        pa.RecordBatch.from_pydict({"properties": pa.array([list(some.items())], part)}),
        pa.RecordBatch.from_pylist([{"properties": some}]),
        pa.RecordBatch.from_pylist([{"properties": entries}]),
    ]
    first, *others = [_sent(way) for way in ways]
    assert others == [first] * 3
    [row] = rows_of(first, ["properties"]).to_pylist()
    assert {name: value["string"] for name, value in row["properties"]} == entries


@pytest.mark.requirement("PIP-53")
def test_the_rows_before_one_with_a_value_that_is_none_are_sent() -> None:
    values = pa.array([{"type": "long", "long": 1}, {"type": "long"}], structs([1]).type)
    for column, array in (
        ("properties", pa.MapArray.from_arrays([0, 1, 2], ["a", "b"], values)),
        ("bodyList", pa.ListArray.from_arrays([0, 1, 2], values)),
    ):
        maker = MessageMaker(name="q", address="a", now_ms=lambda: NOW)
        sent = maker.messages(pa.RecordBatch.from_arrays([array], [column]))
        assert next(sent).data
        with pytest.raises(RowError, match=r"row 1 of q is no message: .*long is null"):
            next(sent)


@pytest.mark.requirement("PIP-54")
def test_raw_sends_the_bytes_that_are_there() -> None:
    maker = MessageMaker(name="q", address=None, raw=True, now_ms=lambda: NOW)
    batch = pa.RecordBatch.from_pylist([{"amqp": b"\x00as it is", "address": "a", "extra": 1}])
    assert [(sent.address, sent.data) for sent in maker.messages(batch)] == [("a", b"\x00as it is")]


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "of columns"])
def test_another_message_format_is_not_sent_as_the_usual_one(raw: bool) -> None:
    maker = MessageMaker(name="q", address="a", raw=raw, now_ms=lambda: NOW)
    rows = [
        {"amqp": b"x", "bodyText": "x", "bodyType": "text", "messageFormat": each}
        for each in (None, 0, 0x8001_3700)
    ]
    sent = maker.messages(pa.RecordBatch.from_pylist(rows))
    assert [next(sent).address for _ in range(2)] == ["a", "a"]
    with pytest.raises(RowError, match=r"row 2 of q .* messageFormat 0x80013700 cannot be sent"):
        next(sent)


def test_plain_columns_are_enough_and_ids_come_again() -> None:
    """As for Kafka's sink, a value and properties without structs are enough."""
    batch = pa.RecordBatch.from_pylist(
        [{"value": "x", "properties": [("colour", "red")]}, {"value": "y", "properties": None}],
        schema=pa.schema(
            [("value", pa.string()), ("properties", pa.map_(pa.string(), pa.string()))]
        ),
    )
    sent = [
        [
            each.data
            for each in MessageMaker(name="q/0", address="a", now_ms=lambda: NOW).messages(b)
        ]
        for b in (batch, batch)
    ]
    assert sent[0] == sent[1]
    first = rows_of(sent[0], ["JMSMessageID", "bodyText"]).to_pylist()
    assert first[0] == {"JMSMessageID": "ID:q/0/0", "bodyText": "x"}
    assert first[1] == {"JMSMessageID": "ID:q/0/1", "bodyText": "y"}


@pytest.mark.parametrize(
    ("names", "raw", "address", "told"),
    [
        (["bodyText"], False, None, "option address"),
        (["bodyText"], True, "a", "option replay: raw needs the column amqp"),
        (["bodyText", "colour"], False, "a", "no column colour; allowed: address"),
    ],
)
@pytest.mark.requirement("PIP-32")
def test_columns_that_cannot_be_sent_are_named_before_anything_is(
    names: list[str], raw: bool, address: str | None, told: str
) -> None:
    with pytest.raises(OptionError, match=told):
        check_columns(dict.fromkeys(names, "string"), raw=raw, address=address)


def test_the_schema_as_text_names_all_columns() -> None:
    assert ddl_of({"a": "INT", "b": "STRING"}) == "`a` INT, `b` STRING"
    assert len(schema_of(EVENT_LOG_COLUMNS)) == len(EVENT_LOG_COLUMNS) == 16
