"""Where the options say that messages are, asked of the broker as a query is planned."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from proton import Data, Terminus

from pyspark_amqp.errors import BrokerError, GoneError
from pyspark_amqp.options import Options
from pyspark_amqp.source.messages import Place
from pyspark_amqp.wire.broker_client import opened
from pyspark_amqp.wire.connection import Connection, connected

SHARED_DURABLE: Final = ("topic", "shared", "global")
"""The capabilities of a subscription that has no client, which many may use."""


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
    with opened(options) as broker:
        told = broker.ask("READ", "subscription", identity)
    return Place(str(told["address"]), identity)


def subscribed(options: Options) -> Place:
    """The same; a subscription that is not there is made, where the option topic says of what.
    Else it is BrokerError, which nobody takes for a lease that is gone."""
    topic = options.text("topic")
    try:
        return place_of(options)
    except GoneError as error:
        if topic is None:
            raise BrokerError(
                f"no subscription {identity_of(options)}: name it as `jms-broker subscription "
                "list` does, or give the option topic"
            ) from error
        with connected(options) as connection:
            _subscribe(connection, topic, str(options.text("subscription")))
        return place_of(options)


def _subscribe(connection: Connection, topic: str, name: str) -> None:
    """Make a shared durable subscription, by a link that uses it."""
    # what is behind the bar only tells links of one subscription apart
    link = connection.receiver(topic, f"{name}|global")
    link.source.durability = Terminus.DELIVERIES
    link.source.expiry_policy = Terminus.EXPIRE_NEVER
    capabilities = link.source.capabilities
    capabilities.put_array(False, Data.SYMBOL)
    capabilities.enter()
    for capability in SHARED_DURABLE:
        capabilities.put_symbol(capability)
    capabilities.exit()
    connection.attach(link)
    # closing would end the subscription
    link.detach()


def waiting(options: Options, place: Place) -> int:
    """How many messages there are that nobody has."""
    kind = "queue" if place.subscription is None else "subscription"
    with opened(options) as broker:
        try:
            return int(str(broker.ask("READ", kind, place.source)["messages"]))
        except GoneError:
            return 0
