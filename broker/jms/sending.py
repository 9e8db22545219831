"""What a JMS producer sets as it sends (WD10 6.1, 9; JMS 2.0 3.4)."""

from __future__ import annotations

from broker.jms.destinations import Destination
from broker.jms.message import PERSISTENT, PRIORITY_DEFAULT, UINT_MAX, JmsMessage


def stamp(
    message: JmsMessage,
    *,
    now_ms: int,
    message_id: str | None,
    destination: Destination,
    delivery_mode: int = PERSISTENT,
    priority: int = PRIORITY_DEFAULT,
    time_to_live: int = 0,
    delivery_delay: int = 0,
) -> None:
    """Set the headers that are the producer's to set, whatever they were before.

    The time to live runs from now on, not from the delivery time. 0 is for ever.
    """
    message.message_id = message_id
    message.timestamp = now_ms
    message.destination = destination
    message.delivery_mode = delivery_mode
    message.priority = priority
    message.time_to_live = time_to_live
    message.expiration = now_ms + time_to_live if time_to_live > 0 else 0
    message.delivery_time = now_ms + delivery_delay


def header_ttl(amqp_ttl: int | None, time_to_live: int) -> int:
    """The header's ttl, -1 where it is to be left out (MAP-08).

    JMS_AMQP_TTL where it is set, else the producer's time to live, if that fits 32 bits.
    """
    ttl = time_to_live if amqp_ttl is None else amqp_ttl
    return ttl if 0 < ttl <= UINT_MAX else -1
