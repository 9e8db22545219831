"""What a JMS producer sets as it sends (WD10 6.1, 9; JMS 2.0 3.4)."""

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
    """Set the headers that follow from a message's being sent now, whatever they were before.

    Its delivery mode, priority and time to live are its own. That runs from now on, not from the
    delivery time; 0 is for ever.
    """
    message.message_id = message_id
    message.timestamp = now_ms
    message.destination = destination
    message.expiration = now_ms + message.time_to_live if message.time_to_live > 0 else 0
    message.delivery_time = now_ms + delivery_delay


def header_ttl(amqp_ttl: int | None, time_to_live: int) -> int:
    """The header's ttl, -1 where it is to be left out (MAP-08).

    JMS_AMQP_TTL where it is set, else the producer's time to live, if that fits 32 bits.
    """
    ttl = time_to_live if amqp_ttl is None else amqp_ttl
    return ttl if 0 < ttl <= UINT_MAX else -1
