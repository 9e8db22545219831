"""Headers that a JMS producer sets when it sends a message (WD10 6.1, 9; JMS 2.0 3.4)."""

from __future__ import annotations

from broker.jms.destinations import Destination
from broker.jms.message import UINT_MAX, JmsMessage


def stamp(
    message: JmsMessage,
    *,
    now_ms: int,
    message_id: str | None,
    destination: Destination,
    delivery_delay: int = 0,
) -> None:
    """Set the headers that depend on sending a message now, whatever they were before.

    A message that was received loses the marks of its delivery: the count, and first-acquirer,
    which only a provider sets (WD10 3.2.1 JMSRedelivered, 3.2.2, 4). Delivery mode, priority and
    time to live stay as they are. The time to live (ms) runs from `now_ms` on, not from the
    delivery time; 0 means that the message never expires.
    """
    message.message_id = message_id
    message.timestamp = now_ms
    message.destination = destination
    message.expiration = now_ms + message.time_to_live if message.time_to_live > 0 else 0
    message.delivery_time = now_ms + delivery_delay
    message.delivery_count = 1
    message.first_acquirer = False


def header_ttl(amqp_ttl: int | None, time_to_live: int) -> int:
    """Return the header's ttl in ms, -1 if it is to be left out (MAP-08).

    It is JMS_AMQP_TTL if that is set, else the producer's time to live; left out if it is 0 or does
    not fit 32 bits.
    """
    ttl = time_to_live if amqp_ttl is None else amqp_ttl
    return ttl if 0 < ttl <= UINT_MAX else -1
