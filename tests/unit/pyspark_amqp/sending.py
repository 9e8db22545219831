"""Encoded messages of all kinds, and a function that sends them to a queue."""

from __future__ import annotations

from typing import Final

from broker.amqp.types import Int, Map, Symbol
from broker.jms import (
    BytesBody,
    Destination,
    JmsMessage,
    MapBody,
    NoBody,
    ObjectBody,
    StreamBody,
    TextBody,
    encode,
    stamp,
)
from broker.jms.bodies import Body
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import read_options
from pyspark_amqp.wire.connection import connected
from pyspark_amqp.wire.publishing import Publisher

BODIES: Final[list[Body]] = [
    NoBody(),
    TextBody("x" * 200_000),
    TextBody("hello"),
    BytesBody(b"\x00\xff"),
    MapBody({"a": 1, "c": Int(3)}),
    StreamBody([1, "x", None]),
    ObjectBody(Map([(Symbol("k"), [1, None])])),
]


def message(number: int, address: str = "orders") -> bytes:
    """Return the encoded message `number`: one of three groups, of any priority."""
    made = JmsMessage(BODIES[number % len(BODIES)], properties={"number": number})
    stamp(made, now_ms=1000 + number, message_id=f"ID:{number}", destination=Destination(address))
    made.group_id = f"g{number % 3}"
    made.priority = number % 10
    return encode(made)


def send(url: str, address: str, messages: list[bytes]) -> None:
    """Send all messages; they are in the queue when this returns."""
    with connected(read_options({"url": url, "address": address}, Use.SINK)) as connection:
        publisher = Publisher(connection, address)
        for data in messages:
            publisher.send(data)
        publisher.flush()
