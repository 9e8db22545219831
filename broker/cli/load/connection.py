"""A connection of the load: Proton's engine, and a socket that never blocks.

There is no event loop of Proton's here: it creates several Python objects for each event. The
process waits for all of its sockets, then each client looks at the state of its links.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from select import select
from typing import TYPE_CHECKING, Final, TypeVar, final
from urllib.parse import unquote

import proton
from proton import Condition, Endpoint, ProtonException, Terminus, Transport

from broker.cli.broker_url import split_url
from broker.cli.client import Capabilities, domain_of, exit_status_of, mechanism_of
from broker.cli.client_tls import AMQPS, AMQPS_PORT
from broker.cli.ending import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from proton import Link, Receiver, Sender

    from broker.cli.load.plan import LoadPlan

AMQP_PORT: Final = 5672
HEARTBEAT_S: Final = 60.0
SESSION_BYTES: Final = 1 << 22
"""Bytes of messages that a session may receive ahead."""

REASON_S: Final = 1.0
"""Seconds in which a broker that attached a link to nothing says why."""

FAREWELL_S: Final = 1.0
"""Maximum seconds to wait for the broker's close."""

AnyLink = TypeVar("AnyLink", "Sender", "Receiver")


@final
class LoadConnection:
    """An open connection with one session and any number of links."""

    def __init__(self, plan: LoadPlan, container_id: str) -> None:
        """Connect and log in; raise ClientError if the broker does not open the connection."""
        parts = split_url(plan.url)
        host = parts.hostname or ""
        port = parts.port or (AMQPS_PORT if parts.scheme == AMQPS else AMQP_PORT)
        self._timeout_s: Final = plan.timeout_s
        self._links: Final[list[Link]] = []
        self._engine: Final = proton.Connection()
        self._engine.container = container_id
        self._engine.hostname = host
        if parts.username:
            self._engine.user = unquote(parts.username)
            self._engine.password = unquote(parts.password or "")
        self._transport: Final = Transport()
        sasl = self._transport.sasl()
        # the user has named the broker that gets the password, with or without TLS
        sasl.allow_insecure_mechs = True
        if plan.tls is not None:
            mechanism = mechanism_of(plan.tls, has_user=bool(parts.username))
            if mechanism is not None:
                sasl.allowed_mechs(mechanism)
        self._transport.bind(self._engine)
        self._transport.idle_timeout = HEARTBEAT_S
        if plan.tls is not None:
            self._transport.ssl(domain_of(plan.tls)).peer_hostname = host
        try:
            self._socket: Final = socket.create_connection((host, port), plan.timeout_s)
        except OSError as error:
            raise _lost(error) from None
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._engine.open()
        self._session: Final = self._engine.session()
        self._session.incoming_capacity = SESSION_BYTES
        self._session.open()
        self._wait(lambda: not self._engine.state & Endpoint.REMOTE_UNINIT)

    def fileno(self) -> int:
        return self._socket.fileno()

    def sender(self, name: str, address: str | None, capability: str | None = None) -> Sender:
        """Return an attached link to `address`; None is the anonymous relay."""
        link = self._session.sender(name)
        if address is None:
            link.target.type = Terminus.TARGET
        else:
            link.target.address = address
        Capabilities(capability).apply(link)
        return self._attached(link)

    def coordinator(self, name: str) -> Sender:
        """Return an attached link to the coordinator of transactions (core 4.2)."""
        link = self._session.sender(name)
        link.target.type = Terminus.COORDINATOR
        return self._attached(link)

    def receiver(self, name: str, address: str | None, capability: str | None = None) -> Receiver:
        """Return an attached link from `address`; None creates a temporary queue."""
        link = self._session.receiver(name)
        if address is None:
            link.source.dynamic = True
        else:
            link.source.address = address
        Capabilities(capability).apply(link)
        return self._attached(link)

    def _attached(self, link: AnyLink) -> AnyLink:
        link.open()
        self._links.append(link)
        self._wait(lambda: not link.state & Endpoint.REMOTE_UNINIT)
        told = link.remote_target if link.is_sender else link.remote_source
        if told.type == Terminus.UNSPECIFIED:
            # attached to nothing: the detach that follows says why, and ends this wait
            self._wait(lambda: False, REASON_S)
        return link

    def keep_alive(self) -> None:
        """Let Proton prepare a heartbeat, or end a connection that was silent for too long."""
        self._transport.tick(time.monotonic())
        self._check()

    def write(self) -> bool:
        """Write what the socket takes; return whether that was all.

        Raise ClientError if the connection is lost.
        """
        transport = self._transport
        try:
            while (size := transport.pending()) > 0:
                transport.pop(self._socket.send(transport.peek(size) or b""))
        except BlockingIOError:
            return False
        except (OSError, ProtonException) as error:
            raise _lost(error) from None
        return True

    def read(self) -> None:
        """Read what has arrived, if anything.

        Raise ClientError if the connection is lost, or the broker has ended it or one of its links.
        """
        transport = self._transport
        try:
            while (space := transport.capacity()) > 0:
                data = self._socket.recv(space)
                if data:
                    transport.push(data)
                else:
                    transport.close_tail()
                if len(data) < space:
                    break
        except BlockingIOError:
            pass
        except (OSError, ProtonException) as error:
            raise _lost(error) from None
        self._check()

    def _wait(self, is_done: Callable[[], bool], limit_s: float | None = None) -> None:
        """Move bytes until `is_done`. Raise ClientError after `limit_s` seconds, or the timeout."""
        limit_s = self._timeout_s if limit_s is None else limit_s
        end_s = time.monotonic() + limit_s
        while not is_done():
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                raise ClientError(f"the broker has not answered for {limit_s:g} s")
            unwritten = [] if self.write() else [self._socket]
            readable, _, _ = select([self._socket], unwritten, [], left_s)
            if readable:
                self.read()

    def _check(self) -> None:
        if self._transport.condition is not None:
            raise _ended("the connection is lost", self._transport.condition)
        if self._engine.state & Endpoint.REMOTE_CLOSED:
            raise _ended("the broker closed the connection", self._engine.remote_condition)
        for link in self._links:
            if link.state & Endpoint.REMOTE_CLOSED:
                node = (link.target if link.is_sender else link.source).address
                raise _ended(f"the broker detached the link of {node}", link.remote_condition)

    def close(self) -> None:
        """Close the connection and wait a moment for the broker's close."""
        self._links.clear()
        self._engine.close()
        with suppress(ClientError):  # it is lost already
            self._wait(lambda: not self._engine.state & Endpoint.REMOTE_ACTIVE, FAREWELL_S)
        self._socket.close()


def _ended(text: str, condition: Condition | None) -> ClientError:
    if condition is not None:
        text = f"{text}: {condition.name}: {condition.description or 'without a description'}"
    return ClientError(text, exit_status_of(text, connected=True))


def _lost(error: Exception) -> ClientError:
    return ClientError(f"the connection is lost: {error}")
