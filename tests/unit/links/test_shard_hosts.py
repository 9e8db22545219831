"""A client that asks for a host: served by this shard, or sent to another one."""

from __future__ import annotations

import pytest

from broker.amqp.errors import CONNECTION_REDIRECT, ConnectionFault
from broker.amqp.performatives import Close, Open
from broker.amqp.types import UInt
from broker.links.shard_hosts import ShardHosts
from tests.support.broker import Broker, Client
from tests.support.frames import Header, opening

HOSTS = ShardHosts({"b.example": {"amqp": 5673, "inner": 7}})


SERVED = [
    # the hostname of the open, the listener
    pytest.param(None, "amqp", id="no host"),
    pytest.param("", "amqp", id="an empty one"),
    pytest.param("a.example", "amqp", id="one of this shard, or of none"),
    pytest.param("b.example.", "amqp", id="not quite one of another shard"),
    pytest.param("b.example", "outer", id="at a listener that the other shard lacks"),
]


@pytest.mark.parametrize(("hostname", "listener"), SERVED)
def test_clients_of_other_hosts_are_served(hostname: str | None, listener: str) -> None:
    HOSTS.check(hostname, listener)


SENT = [
    # the hostname of the open, the listener, the port of the other shard
    pytest.param("b.example", "amqp", 5673, id="at the first listener"),
    pytest.param("B.Example", "amqp", 5673, id="in other letters"),
    pytest.param("b.example", "inner", 7, id="at a further listener"),
]


@pytest.mark.parametrize(("hostname", "listener", "port"), SENT)
def test_clients_of_another_shard_are_sent_to_its_listener_of_that_name(
    hostname: str, listener: str, port: int
) -> None:
    with pytest.raises(ConnectionFault) as raised:
        HOSTS.check(hostname, listener)
    assert raised.value.condition == CONNECTION_REDIRECT
    info = raised.value.info or {}
    told = {str(key): value for key, value in info.items()}
    assert told["hostname"] == told["network-host"] == "b.example"
    assert told["port"] == UInt(port)


def opened(hostname: str) -> Client:
    """Return a client that has sent its open to a shard, and got the broker's."""
    broker = Broker()
    broker.container.shard_hosts = HOSTS
    client = broker.dial()
    client.send_bytes(opening("client", hostname=hostname))
    client.expect(Header)
    client.expect(Open)
    return client


def test_an_open_that_names_another_shard_is_answered_with_a_close() -> None:
    client = opened("b.example")
    error = client.expect(Close).error
    assert error is not None
    assert error.condition == CONNECTION_REDIRECT
    assert not client.peer.is_open


def test_an_open_that_names_no_other_shard_is_accepted() -> None:
    client = opened("elsewhere.example")
    client.expect_nothing()
    assert client.peer.is_open
