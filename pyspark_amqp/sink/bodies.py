"""Bodies of messages, made from the columns of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from broker.jms import (
    BytesBody,
    MapBody,
    NoBody,
    ObjectBody,
    SerializedBody,
    StreamBody,
    TextBody,
)
from broker.jms.bodies import Body
from pyspark_amqp.rows.amqp_json import from_json
from pyspark_amqp.rows.typed import Unreadable
from pyspark_amqp.sink.values import Columns, binary_in, map_in, text_in

VALUE: Final = "value"
"""The column with a body of either kind, text or bytes by its type, named as in Kafka's sink."""


def _text_body(row: Mapping[str, object]) -> Body:
    text = row.get("bodyText")
    return TextBody(None if text is None else text_in("bodyText", text))


def _bytes_body(row: Mapping[str, object]) -> Body:
    return BytesBody(binary_in("bodyBytes", row.get("bodyBytes", b"")))


def _map_body(row: Mapping[str, object]) -> Body:
    return MapBody(map_in("bodyMap", row.get("bodyMap", {})))


def _stream_body(row: Mapping[str, object]) -> Body:
    items = row.get("bodyList", [])
    if isinstance(items, list):
        return StreamBody(items)
    raise items.error if isinstance(items, Unreadable) else ValueError("bodyList is no list")


def _object_body(row: Mapping[str, object]) -> Body:
    if "bodyBytes" in row:
        return SerializedBody(binary_in("bodyBytes", row["bodyBytes"]))
    if "bodyJson" in row:
        return ObjectBody(from_json(text_in("bodyJson", row["bodyJson"])))
    return SerializedBody()


def _no_body(row: Mapping[str, object]) -> Body:  # noqa: ARG001 - of all kinds the only one
    return NoBody()


BODIES: Final = {
    "bodyText": "text",
    "bodyBytes": "bytes",
    "bodyMap": "map",
    "bodyList": "stream",
    "bodyJson": "object",
}
"""The kind of a message without a bodyType, by the column that has a value."""

MAKERS: Final[dict[str, Callable[[Mapping[str, object]], Body]]] = {
    "text": _text_body,
    "bytes": _bytes_body,
    "map": _map_body,
    "stream": _stream_body,
    "object": _object_body,
    "message": _no_body,
}
"""The function that makes a body, by the kind of message."""

USED: Final[dict[str, frozenset[str]]] = {
    **{kind: frozenset({column}) for column, kind in BODIES.items()},
    "object": frozenset({"bodyBytes", "bodyJson"}),
    "message": frozenset(),
}
"""The columns of which one has the body, by the kind of message."""


@final
class Bodies:
    """The bodies of the rows of a batch."""

    def __init__(self, columns: Columns, body_type: str | None) -> None:
        self._body_type: Final = body_type
        self._kinds: Final = columns.get("bodyType")
        self._columns: Final = {name: columns[name] for name in (*BODIES, VALUE) if name in columns}

    def of(self, at: int) -> Body:
        """Return the body of the row `at`; raise ValueError if its columns make none.

        A column with a body that the kind of message does not use is an error: the message would be
        sent without it.
        """
        row = {name: values[at] for name, values in self._columns.items() if values[at] is not None}
        kind = self._body_type
        if self._kinds is not None and self._kinds[at]:
            kind = text_in("bodyType", self._kinds[at])
        if VALUE in row:
            _place_value(row, kind)
        if kind is None:
            kinds = [BODIES[name] for name in row]
            if len(kinds) > 1:
                raise ValueError(f"it has several bodies, and no bodyType: {', '.join(kinds)}")
            kind = kinds[0] if kinds else "message"
        make = MAKERS.get(kind)
        if make is None:
            raise ValueError(f"bodyType {kind!r} is none of {', '.join(MAKERS)}")
        if len(row) > 1:
            raise ValueError(f"it has several bodies: {', '.join(row)}")
        if not USED[kind].issuperset(row):
            raise ValueError(f"a message of bodyType {kind} does not have a {', '.join(row)}")
        return make(row)


def _place_value(row: dict[str, object], kind: str | None) -> None:
    """Replace the column `value` of a row by that of its type; a text can be sent as bytes."""
    value = row.pop(VALUE)
    if not isinstance(value, str | bytes):
        raise TypeError(f"{VALUE} is neither text nor binary")
    if isinstance(value, str) and kind == "bytes":
        value = value.encode()
    name = "bodyText" if isinstance(value, str) else "bodyBytes"
    if name in row:
        raise ValueError(f"it has several bodies: {name}, {VALUE}")
    row[name] = value
