"""A connection to a broker: Proton's engine, and the socket for its bytes.

Proton's own loop creates several Python objects for each event, which takes ten times as long as
the engine's work on a message. So there are no events here: code that waits checks the engine's
state.
"""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from select import select
from typing import Final, final
from urllib.parse import SplitResult, urlsplit

import proton
from proton import (
    SASL,
    Endpoint,
    Link,
    ProtonException,
    Receiver,
    Sender,
    Transport,
)

from pyspark_amqp.errors import (
    BrokerError,
    LoginError,
    NoAnswerError,
    TransientError,
    UnreachableError,
)
from pyspark_amqp.options import Options
from pyspark_amqp.wire.credentials import login_in, trusting_domain
from pyspark_amqp.wire.failures import (
    REACHED,
    class_of_all,
    class_of_dial,
    connection_ended,
    link_ended,
    words,
)
from pyspark_amqp.wire.refusals import hint_on

PORTS: Final = {"amqp": 5672, "amqps": 5671}

FINAL: Final = frozenset({SASL.AUTH, SASL.SYS, SASL.PERM})
"""Outcomes of logins that the same login has again; Proton's own PERM is no common mechanism."""

WITH_PASSWORD: Final = "SCRAM-SHA-512 SCRAM-SHA-256 PLAIN"  # noqa: S105 - no password
"""The SASL mechanisms that a password is for."""

DIAL_S: Final = 10.0
"""Seconds in which one of several brokers must open the connection before the next is tried."""

REASON_S: Final = 1.0
"""Seconds in which a broker must say why it has attached a link to nothing."""

FAREWELL_S: Final = 1.0
"""Seconds to wait for the broker's answer to our close; a lost broker never answers."""


@final
class Connection:
    """An open connection with one session.

    Bytes move only during `wait` and `move`. These raise BrokerError if the broker ends the
    connection or a link; that is a TransientError if it may accept another, or the network fails.
    """

    def __init__(
        self, wire: socket.socket, transport: Transport, engine: proton.Connection, timeout_s: float
    ) -> None:
        """Open `engine`, which is bound to `transport`. `timeout_s` (seconds) limits each wait."""
        self.timeout_s: Final = timeout_s
        self._wire: Final = wire
        self._transport: Final = transport
        self._engine: Final = engine
        self._links: Final[list[Link]] = []
        self._is_at_end = False
        wire.setblocking(False)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        engine.open()
        self._session: Final = engine.session()
        self._session.open()

    def wait(self, is_done: Callable[[], bool], what: str, limit_s: float | None = None) -> None:
        """Move bytes until `is_done`; raise BrokerError with `what` after `limit_s` seconds.

        `limit_s` None is the connection's own limit.
        """
        limit_s = self.timeout_s if limit_s is None else limit_s
        deadline = time.monotonic() + limit_s
        while not is_done():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise NoAnswerError(f"{what} took longer than {limit_s:g} s")
            self.move(left_s)

    def move(self, patience_s: float = 0.0) -> None:
        """Write and read what is ready; if nothing is, wait up to `patience_s` seconds for it."""
        transport = self._transport
        now = time.monotonic()
        try:
            due = transport.tick(now)
            if due:
                patience_s = min(patience_s, max(0.0, due - now))
            space, written = transport.capacity(), transport.pending()
            # check before a wait for bytes that never come
            self._check()
            wire = [self._wire]
            readable, writable, _ = select(
                wire if space > 0 else [], wire if written > 0 else [], [], patience_s
            )
            if writable:
                transport.pop(self._wire.send(transport.peek(written) or b""))
            if readable:
                self._read(space)
        except (ProtonException, OSError) as error:
            raise TransientError(f"the connection is lost: {_text(error)}") from error

    def _read(self, space: int) -> None:
        data = self._wire.recv(space)
        if data:
            self._transport.push(data)
        else:
            self._transport.close_tail()
            self._is_at_end = True

    def _check(self) -> None:
        lost = self._transport.condition
        if lost is not None:
            raise TransientError(f"the connection is lost: {words(lost)}")
        if self._engine.state & Endpoint.REMOTE_CLOSED:
            raise connection_ended(self._engine.remote_condition)
        for link in self._links:
            if link.state & Endpoint.LOCAL_ACTIVE and link.state & Endpoint.REMOTE_CLOSED:
                raise link_ended(_named(link), link.remote_condition)
        if self._is_at_end:
            # the engine does not tell of an end in the middle of a frame
            raise TransientError("the connection is lost: it ended in the middle of a frame")

    def sender(self, address: str) -> Sender:
        """Return a link to `address`, not yet attached."""
        link = self._session.sender(f"{address}-{uuid.uuid4()}")
        link.target.address = address
        return link

    def receiver(self, address: str, name: str | None = None) -> Receiver:
        """Return a link from `address`, not yet attached."""
        link = self._session.receiver(name or f"{address}-{uuid.uuid4()}")
        link.source.address = address
        return link

    def attach(self, link: Link) -> None:
        """Attach the link and wait for the broker's answer; raise BrokerError if it refuses."""
        link.open()
        self._links.append(link)
        what = f"attaching {_named(link)}"
        self.wait(lambda: not link.state & Endpoint.REMOTE_UNINIT, what)
        if link.is_sender:
            asked, told = link.target.address, link.remote_target.address
        else:
            asked, told = link.source.address, link.remote_source.address
        if asked != told:
            # The link is attached to nothing: the detach that follows says why, and ends this wait.
            self.wait(lambda: False, what, REASON_S)

    def open(self, limit_s: float) -> None:
        """Wait up to `limit_s` seconds until the broker has opened the connection."""
        self.wait(lambda: not self._engine.state & Endpoint.REMOTE_UNINIT, "opening", limit_s)

    def close(self) -> None:
        """Close the connection, and wait a moment for the broker's close."""
        engine = self._engine
        self._links.clear()
        engine.close()
        with suppress(BrokerError):  # it is lost already
            self.move()
            self.wait(lambda: not engine.state & Endpoint.REMOTE_ACTIVE, "closing", FAREWELL_S)
        self._wire.close()
        self._transport.unbind()
        engine.free()


def connect(options: Options) -> Connection:
    """Return a connection to the first broker that opens one.

    Raise UnreachableError if none of them answers; else BrokerError, since another attempt would
    end in the same way. That is a LoginError if one of them refuses the login.
    """
    failures: list[str] = []
    classes: list[type[BrokerError]] = []
    for url in options.urls:
        parts = urlsplit(url)
        try:
            connection = _dial(parts, options)
        except (BrokerError, ProtonException, OSError, ValueError) as error:
            place = parts.netloc.rpartition("@")[2]
            text = _text(error)
            classes.append(class_of_dial(error, parts.hostname))
            failures.append(f"{parts.scheme}://{place}: {text}{hint_on(text, options)}")
        else:
            REACHED.add(parts.hostname)
            return connection
    told = "no broker: " + "; ".join(failures)
    found = class_of_all(classes)
    # the next attempt may find another token in the file
    is_final = found is not LoginError or options.text("tokenFile") is None
    raise (found if is_final else UnreachableError)(told)


@contextmanager
def connected(options: Options) -> Iterator[Connection]:
    """Open a connection for the block."""
    connection = connect(options)
    try:
        yield connection
    finally:
        connection.close()


def _dial(parts: SplitResult, options: Options) -> Connection:
    timeout_s = options.number("amqp.timeout") / 1000
    limit_s = min(timeout_s, DIAL_S)
    host = parts.hostname or ""
    engine = proton.Connection()
    engine.container = str(uuid.uuid4())
    engine.hostname = options.text("amqp.virtualHost") or host
    transport = Transport()
    _say_who(parts, options, engine, transport)
    transport.bind(engine)
    transport.idle_timeout = options.number("amqp.heartbeat") / 1000
    if parts.scheme == "amqps":
        # the host that was dialled: the certificate knows nothing of a virtual host
        transport.ssl(trusting_domain(options)).peer_hostname = host
    wire = socket.create_connection((host, parts.port or PORTS[parts.scheme]), limit_s)
    connection = Connection(wire, transport, engine, timeout_s)
    try:
        connection.open(limit_s)
    except BrokerError as error:
        # None before the login, OK behind it, TEMP from a broker that has not judged the login
        outcome = transport.sasl().outcome
        connection.close()
        if outcome in FINAL:
            raise LoginError(_text(error)) from error
        raise
    return connection


def _say_who(
    parts: SplitResult, options: Options, engine: proton.Connection, transport: Transport
) -> None:
    user, password = login_in(options, parts)
    if user is not None:
        engine.user = user
    if password is not None:
        engine.password = password
    sasl = transport.sasl()
    # a password is sent to the broker that the user named, even without TLS, as by every client
    sasl.allow_insecure_mechs = True
    mechanism = options.text("saslMechanism")
    if mechanism is None and password is not None and options.text("tls.certFile") is not None:
        # Proton would prefer the certificate, which may be another user's
        mechanism = WITH_PASSWORD
    if mechanism is not None:
        sasl.allowed_mechs(mechanism)


def _named(link: Link) -> str:
    if link.is_sender:
        return f"the link to {link.target.address}"
    return f"the link from {link.source.address}"


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
