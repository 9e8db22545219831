"""A connection of the pipeline: how it is kept open, and the errors when it ends."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import proton
import pytest
from cproton import retained_count
from proton import Endpoint, Transport

from broker import Broker
from pyspark_amqp.errors import BrokerError, GoneError, LoginError, UnreachableError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.wire.broker_client import opened
from pyspark_amqp.wire.connection import DIAL_S, Connection, connect, connected
from pyspark_amqp.wire.consuming import copied, lease_slice
from pyspark_amqp.wire.publishing import Publisher

IDLE_MS: Final = 1000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Run a broker that closes connections which are silent for IDLE_MS, a second."""
    small = {"name": "small", "max_messages": 3, "full": "block"}
    closed = {"pattern": "closed", "auto_create": False}
    with Broker(queue=[small], address=[closed], idle_time_out_ms=IDLE_MS) as running:
        yield running


def options(url: str, **given: str) -> Options:
    return read_options({"url": url, "address": "a", **given}, Use.SINK)


def _drops(broker: Broker) -> None:
    broker.faults.drop_connections()


def _deletes(broker: Broker) -> None:
    with opened(options(broker.url)) as asked:
        asked.ask("DELETE", "queue", "mortal")


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        pytest.param(_drops, "the connection is lost: ", id="the connection is dropped"),
        pytest.param(
            _deletes, "has ended the link to mortal: .*deleted", id="the queue is deleted"
        ),
    ],
)
def test_who_waits_is_told_of_an_end(
    broker: Broker, ends: Callable[[Broker], None], told: str
) -> None:
    with connected(options(broker.url)) as connection:
        connection.attach(connection.sender("mortal"))
        ends(broker)
        with pytest.raises(BrokerError, match=told):
            connection.wait(lambda: False, "the end")


def _to_what_may_not_be(connection: Connection) -> None:
    connection.attach(connection.sender("closed"))


def _from_a_lease_of_nobody(connection: Connection) -> None:
    list(copied(connection, "a", lease_slice("nobody", 1, 1, 0), needed=[]))


def _for_ever(connection: Connection) -> None:
    connection.wait(lambda: False, "nothing", 0.05)


def _into_what_is_full(connection: Connection) -> None:
    publisher = Publisher(connection, "small")
    for _ in range(4):
        publisher.send(b"\x00\x53\x77\xa1\x01x")


@pytest.mark.parametrize(
    ("does", "error", "told"),
    [
        pytest.param(
            _to_what_may_not_be, GoneError, "the link to closed: amqp:not-found: ", id="no queue"
        ),
        pytest.param(
            _from_a_lease_of_nobody, GoneError, "the link from a: amqp:not-found", id="no lease"
        ),
        pytest.param(_for_ever, BrokerError, "^nothing took longer than 0.05 s$", id="too late"),
        pytest.param(
            _into_what_is_full, BrokerError, "sending to small took longer than 0.3 s", id="no room"
        ),
    ],
)
def test_what_the_broker_does_not_do_is_told(
    broker: Broker, does: Callable[[Connection], None], error: type[BrokerError], told: str
) -> None:
    with (
        connected(options(broker.url, **{"amqp.timeout": "300ms"})) as connection,
        pytest.raises(error, match=told),
    ):
        does(connection)


def test_a_server_that_says_nothing_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"amqp://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(UnreachableError, match=f"{url}: opening took longer than 0.2 s"):
            connect(options(url, **{"amqp.timeout": "200ms"}))


def test_who_is_not_let_in_is_told_at_once() -> None:
    with Broker(users={"ann": "secret"}) as strict:
        begun = time.monotonic()
        with pytest.raises(LoginError, match=r"Authentication failed \[mech=none\]"):
            connect(options(strict.url, saslMechanism="ANONYMOUS"))
        assert time.monotonic() - begun < DIAL_S / 2


def _greet(listener: socket.socket) -> None:
    """Open one connection, then send nothing more."""
    wire, _ = listener.accept()
    engine, transport = proton.Connection(), Transport(Transport.SERVER)
    transport.sasl().allowed_mechs("ANONYMOUS")
    transport.bind(engine)
    engine.open()
    with wire:
        while not (engine.state & Endpoint.REMOTE_ACTIVE and transport.pending() == 0):
            if written := transport.pending():
                transport.pop(wire.send(transport.peek(written) or b""))
            else:
                transport.push(wire.recv(transport.capacity()))
        while wire.recv(1024):
            pass


def test_a_broker_that_falls_silent_is_told_by_its_heartbeat() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_greet, args=[listener], daemon=True).start()
        url = f"amqp://127.0.0.1:{listener.getsockname()[1]}"
        with (
            connected(options(url, **{"amqp.heartbeat": "200ms"})) as connection,
            pytest.raises(BrokerError, match=r"the connection is lost: .*local-idle-timeout"),
        ):
            connection.wait(lambda: False, "a sign of life")


@pytest.mark.slow
def test_who_waits_for_longer_than_a_connection_may_rest_keeps_it(broker: Broker) -> None:
    until = time.monotonic() + 2 * IDLE_MS / 1000
    with connected(options(broker.url)) as connection:
        connection.wait(lambda: time.monotonic() > until, "time")
        connection.attach(connection.sender("a"))


def test_connections_leave_nothing_behind(broker: Broker) -> None:
    """Proton keeps objects that its C library refers to until the library reports them as free."""

    def use() -> int:
        with opened(options(broker.url)) as asked:
            asked.entities("queue")
        return int(retained_count())

    assert use() == use()
