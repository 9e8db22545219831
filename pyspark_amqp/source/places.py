"""The queue or subscription that the options name, looked up while a query is planned."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from proton import Terminus

from pyspark_amqp.errors import (
    BrokerError,
    DeniedError,
    GoneError,
    NoManagementError,
    TransientError,
)
from pyspark_amqp.options import Options
from pyspark_amqp.source.messages import Place
from pyspark_amqp.wire.broker_client import opened
from pyspark_amqp.wire.connection import Connection, connected
from pyspark_amqp.wire.consuming import request
from pyspark_amqp.wire.patience import Patience

SHARED_DURABLE: Final = ("topic", "shared", "global")
"""Capabilities that request a subscription of no client, which many consumers may share."""


def identity_of(options: Options) -> str | None:
    """Return the broker's name of the subscription, None if the options name a queue."""
    subscription = options.text("subscription")
    if subscription is None or "/" in subscription:
        return subscription
    return f"durable//{quote(subscription, safe='')}"


def place_of(options: Options) -> Place:
    """Return the queue, or the subscription with its topic.

    Raise GoneError if there is no such subscription; BrokerError if there is no such queue, unless
    the option createAddress is true.
    """
    identity = identity_of(options)
    if identity is None:
        address = options.text("address")
        assert address is not None
        if not options.is_set("createAddress"):
            _check_queue(options, address)
        return Place(address)
    with opened(options) as broker:
        told = broker.ask("READ", "subscription", identity)
    return Place(str(told["address"]), identity)


def _check_queue(options: Options, address: str) -> None:
    """Raise BrokerError if there is no queue `address`: a lease would create it.

    If the broker cannot be asked, because it is another one than this project's or because the user
    may read the queue but not view it, a browse still finds out (EXISTING_NODE).
    """
    with opened(options) as broker:
        try:
            broker.ask("READ", "queue", address)
        except (DeniedError, NoManagementError):
            return
        except GoneError:
            # not a GoneError, which would mean a lost lease
            raise BrokerError(_no_queue(address, is_topic=broker.knows("topic", address))) from None


def _no_queue(address: str, *, is_topic: bool) -> str:
    if is_topic:
        return (
            f"option address: {address} is a topic, whose messages a subscription keeps: give the "
            "option subscription, for readStream together with the option topic"
        )
    return (
        f"option address: there is no queue {address}; correct the name, or give the option "
        "createAddress=true, which creates the queue"
    )


def subscribed(options: Options) -> Place:
    """Like `place_of`, but create a missing subscription if the option topic is set.

    Else raise BrokerError, not GoneError, which means a lost lease.
    """
    topic = options.text("topic")
    try:
        return place_of(options)
    except GoneError as error:
        if topic is None:
            raise BrokerError(
                f"no subscription {identity_of(options)}: name it as `jms-broker subscription "
                "list` does, or give the option topic"
            ) from error
        _subscribe(options, topic)
        return place_of(options)


def _subscribe(options: Options, topic: str) -> None:
    """Create the subscription, which may exist by now; try for the time of amqp.timeout."""
    patience = Patience(options)
    while True:
        try:
            with connected(options) as connection:
                _attach(connection, topic, str(options.text("subscription")))
            return
        except TransientError as error:
            patience.pause(error)


def _attach(connection: Connection, topic: str, name: str) -> None:
    """Create a shared durable subscription by attaching a link to it."""
    # the part behind the bar only distinguishes links of one subscription
    link = connection.receiver(topic, f"{name}|global")
    link.source.durability = Terminus.DELIVERIES
    link.source.expiry_policy = Terminus.EXPIRE_NEVER
    request(link, SHARED_DURABLE)
    connection.attach(link)
    # closing the link would end the subscription
    link.detach()


def waiting(options: Options, place: Place) -> int:
    """Return the number of ready messages, which no consumer or lease has; 0 without a queue."""
    kind = "queue" if place.subscription is None else "subscription"
    with opened(options) as broker:
        try:
            return int(str(broker.ask("READ", kind, place.source)["messages"]))
        except GoneError:
            return 0
