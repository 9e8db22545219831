"""Messages for a consumer, a browser, and the header of what is delivered, for tests of links."""

from __future__ import annotations

from broker.amqp.performatives import Attach
from broker.amqp.terminus import COPY, Source
from broker.amqp.types import Integer
from tests.support.broker import Broker
from tests.support.frames import Transfer, attach_receiver, header_of


def publish(broker: Broker, payload: bytes, address: str = "q", *, kind: str = "queue") -> None:
    """Put one message with these sections into a node."""
    sender = broker.session("publisher")
    sender.attach_sender(address, kind=kind)
    sender.send(Transfer(settled=True, payload=payload))
    sender.hang_up()


def browser(address: str = "q", **fields: object) -> Attach:
    source = Source(address=address, distribution_mode=COPY)
    return attach_receiver(address, source=source, **fields)  # type: ignore[arg-type]


def fields_of(transfer: Transfer) -> list[object]:
    """Return the fields of the header as plain values."""
    header = header_of(transfer.payload)
    return [field.value if isinstance(field, Integer) else field for field in header]
