"""The columns of the data source: their names, Spark's types and Arrow's.

The names are those of the JMS headers, verbatim, so that a condition of a selector reads like one
of SQL. All may be null: Spark and Arrow compare that, too. Arrow's types are written here by hand,
since Spark's own conversion is no public function; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

UTC_MICROSECONDS: Final = pa.timestamp("us", tz="UTC")

V_DDL: Final = (
    "STRUCT<type: STRING, boolean: BOOLEAN, long: BIGINT, double: DOUBLE, string: STRING,"
    " binary: BINARY>"
)
"""A value of one of JMS' types, which `type` names. Its field has the value, all others null."""

ID_DDL: Final = (
    "STRUCT<type: STRING, ulong: DECIMAL(20,0), uuid: STRING, binary: BINARY, string: STRING>"
)
"""An identifier as AMQP has it: a string, a ulong, a uuid or a binary."""

V_TYPE: Final = pa.struct(
    [
        ("type", pa.string()),
        ("boolean", pa.bool_()),
        ("long", pa.int64()),
        ("double", pa.float64()),
        ("string", pa.string()),
        ("binary", pa.binary()),
    ]
)
ID_TYPE: Final = pa.struct(
    [
        ("type", pa.string()),
        ("ulong", pa.decimal128(20, 0)),
        ("uuid", pa.string()),
        ("binary", pa.binary()),
        ("string", pa.string()),
    ]
)
MAP_TYPE: Final = pa.map_(pa.string(), V_TYPE)
LIST_TYPE: Final = pa.list_(pa.field("element", V_TYPE))

TYPES: Final[dict[str, pa.DataType]] = {
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "STRING": pa.string(),
    "TIMESTAMP": UTC_MICROSECONDS,
    f"MAP<STRING, {V_DDL}>": MAP_TYPE,
    f"ARRAY<{V_DDL}>": LIST_TYPE,
    ID_DDL: ID_TYPE,
    "MAP<STRING, STRING>": pa.map_(pa.string(), pa.string()),
    "ARRAY<STRING>": pa.list_(pa.field("element", pa.string())),
}

MESSAGE_COLUMNS: Final[dict[str, str]] = {
    "address": "STRING",
    "subscription": "STRING",
    "position": "BIGINT",
    "enqueuedAt": "TIMESTAMP",
    "JMSMessageID": "STRING",
    "JMSCorrelationID": "STRING",
    "JMSTimestamp": "TIMESTAMP",
    "JMSDestination": "STRING",
    "JMSDestinationType": "STRING",
    "JMSReplyTo": "STRING",
    "JMSReplyToType": "STRING",
    "JMSType": "STRING",
    "JMSPriority": "INT",
    "JMSDeliveryMode": "INT",
    "JMSExpiration": "TIMESTAMP",
    "JMSDeliveryTime": "TIMESTAMP",
    "JMSRedelivered": "BOOLEAN",
    "JMSXDeliveryCount": "INT",
    "JMSXUserID": "STRING",
    "JMSXGroupID": "STRING",
    "JMSXGroupSeq": "BIGINT",
    "JMS_AMQP_TTL": "BIGINT",
    "JMS_AMQP_REPLY_TO_GROUP_ID": "STRING",
    "contentType": "STRING",
    "contentEncoding": "STRING",
    "properties": f"MAP<STRING, {V_DDL}>",
    "bodyType": "STRING",
    "bodySection": "STRING",
    "bodyText": "STRING",
    "bodyBytes": "BINARY",
    "bodyMap": f"MAP<STRING, {V_DDL}>",
    "bodyList": f"ARRAY<{V_DDL}>",
    "bodyJson": "STRING",
    "messageId": ID_DDL,
    "correlationId": ID_DDL,
    "messageAnnotations": "STRING",
    "amqp": "BINARY",
    "messageFormat": "BIGINT",
}
"""The columns of a message, with Spark's types."""

EVENT_LOG_COLUMNS: Final[dict[str, str]] = {
    "id": "BIGINT",
    "at": "TIMESTAMP",
    "kind": "STRING",
    "vhost": "STRING",
    "address": "STRING",
    "subscription": "STRING",
    "messageId": "STRING",
    "position": "BIGINT",
    "consumer": "STRING",
    "link": "STRING",
    "session": "STRING",
    "deliveryCount": "BIGINT",
    "deliverAt": "TIMESTAMP",
    "txn": "STRING",
    "reason": "STRING",
    "boot": "STRING",
}
"""The columns of an event. `deliverAt` is null if no delivery time was requested."""

FORMS: Final[dict[str, dict[str, str]]] = {
    "typed": {},
    "json": dict.fromkeys(("properties", "bodyMap", "bodyList"), "STRING"),
    "string": {
        **dict.fromkeys(("properties", "bodyMap"), "MAP<STRING, STRING>"),
        "bodyList": "ARRAY<STRING>",
    },
}
"""The types of columns that depend on `propertiesAs`, by its value."""


def message_columns(properties_as: str = "typed") -> dict[str, str]:
    """Return the columns of a message, with values in the form that `properties_as` names."""
    return {**MESSAGE_COLUMNS, **FORMS[properties_as]}


def ddl_of(columns: dict[str, str]) -> str:
    """Return the columns as text that Spark reads as a schema."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def schema_of(columns: dict[str, str], names: Sequence[str] | None = None) -> pa.Schema:
    """Return Arrow's schema of the columns `names`, in their order; None means all columns."""
    wanted = list(columns) if names is None else names
    return pa.schema([(name, TYPES[columns[name]]) for name in wanted])
