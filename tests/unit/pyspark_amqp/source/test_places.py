"""The place that a query reads: an error if it does not exist, unless it may be created."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker import Broker
from pyspark_amqp.errors import BrokerError, GoneError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.source.messages import Place
from pyspark_amqp.source.places import place_of, subscribed
from pyspark_amqp.wire.broker_client import opened
from tests.unit.pyspark_amqp.sending import message, send

pytestmark = pytest.mark.requirement("PIP-49")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topic=[{"name": "prices"}]) as running:
        send(running.url, "orders", [message(1)])
        yield running


def options(broker: Broker, **given: str) -> Options:
    return read_options({"url": broker.url, **given}, Use.STREAM)


def test_a_queue_that_exists_is_read(broker: Broker) -> None:
    assert place_of(options(broker, address="orders")) == Place("orders")


def test_a_queue_that_does_not_exist_is_an_error_and_is_not_created(broker: Broker) -> None:
    asked = options(broker, address="odrers")
    told = "option address: there is no queue odrers; correct the name, or give the option creat"
    for look in (place_of, subscribed):
        with pytest.raises(BrokerError, match=told) as raised:
            look(asked)
        # a GoneError would mean a lost lease
        assert not isinstance(raised.value, GoneError)
    with opened(asked) as management:
        assert not management.knows("queue", "odrers")


def test_a_queue_that_may_be_created_need_not_exist(broker: Broker) -> None:
    assert place_of(options(broker, address="new", createAddress="true")) == Place("new")


def test_a_topic_in_place_of_a_queue_is_named_as_one(broker: Broker) -> None:
    with pytest.raises(BrokerError, match=r"prices is a topic, .* give the option subscription"):
        place_of(options(broker, address="prices"))
