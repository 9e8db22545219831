"""Where the options say that messages are, asked of the broker as a query is planned."""

from __future__ import annotations

from urllib.parse import quote

from pipeline.broker_client import Management
from pipeline.messages import Place
from pipeline.options import Options


def identity_of(options: Options) -> str | None:
    """The subscription as the broker calls it; None where a queue is meant."""
    subscription = options.text("subscription")
    if subscription is None or "/" in subscription:
        return subscription
    return f"durable//{quote(subscription, safe='')}"


def place_of(options: Options) -> Place:
    """The queue, or the subscription with its topic; GoneError where there is none."""
    identity = identity_of(options)
    if identity is None:
        address = options.text("address")
        assert address is not None
        return Place(address)
    management = Management(options)
    try:
        told = management.ask("READ", "subscription", identity)
    finally:
        management.close()
    return Place(str(told["address"]), identity)
