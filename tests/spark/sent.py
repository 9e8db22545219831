"""Messages for the tests of the source, put into queues as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from broker.jms import Destination, JmsMessage, TextBody, encode, stamp
from broker.jms.bodies import Body
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import read_options
from pyspark_amqp.wire.connection import connected
from pyspark_amqp.wire.publishing import Publisher

SENT_MS = 1_700_000_000_000


def texts(count: int, *, address: str, groups: int = 0, first: int = 0) -> Iterator[bytes]:
    """Yield numbered text messages with a few properties; in `groups` groups, unless that is 0."""
    for number in range(first, first + count):
        yield encoded(TextBody(f"text {number}"), number, address=address, groups=groups)


def encoded(body: Body, number: int, *, address: str, groups: int = 0) -> bytes:
    message = JmsMessage(
        body, properties={"number": number, "colour": "red" if number % 2 else "blue"}
    )
    stamp(
        message,
        now_ms=SENT_MS + number,
        message_id=f"ID:{address}-{number}",
        destination=Destination(address),
    )
    if groups:
        message.group_id = f"group-{number % groups}"
    return encode(message)


def send(url: str, address: str, messages: Iterable[bytes]) -> None:
    """Send the messages; all of them are in the queue when this returns."""
    options = read_options({"url": url, "address": address}, Use.SINK)
    with connected(options) as connection:
        publisher = Publisher(connection, address)
        for data in messages:
            publisher.send(data)
        publisher.flush()
