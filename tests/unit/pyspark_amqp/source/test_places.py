"""The place that a query reads: an error if it does not exist, unless it may be created."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker import Broker
from broker.security.users import Users
from pyspark_amqp.errors import BrokerError, GoneError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.source.messages import Place, part_of_queue, rows
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


def test_a_browse_by_a_user_who_may_not_view_the_queue_creates_none(tmp_path: Path) -> None:
    """The role application may read and create queues, and has no right to view them."""
    users = Users(tmp_path / "users")
    users.add("app", "secret", roles=["application"])
    place = Place("odrers")
    part = part_of_queue(place, 0, 1, selector=None, until_ms=0)
    with Broker(users_file=users.file) as strict:
        login = {"username": "app", "password": "secret", "address": place.address}
        asked = options(strict, **login)
        assert place_of(asked) == place
        with pytest.raises(GoneError, match="the link from odrers: amqp:not-found"):
            list(rows(asked, ["position"], place, part))
        assert list(rows(options(strict, **login, createAddress="true"), [], place, part)) == []


def test_a_topic_in_place_of_a_queue_is_named_as_one(broker: Broker) -> None:
    with pytest.raises(BrokerError, match=r"prices is a topic, .* give the option subscription"):
        place_of(options(broker, address="prices"))
