"""A client made of python-qpid-proton's engine and one socket, driven by the test itself.

Nothing happens behind the test's back: no thread, no automatic credit, no automatic outcome.
`until` exchanges bytes with the broker until a claim about proton's state holds. Frames are traced
to standard error, which pytest shows when a test fails.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlsplit

from proton import (
    Condition,
    Connection,
    Data,
    Delivery,
    Endpoint,
    Link,
    Message,
    Receiver,
    Sender,
    Session,
    Terminus,
    Transport,
    TransportException,
    symbol,
)

SOON: Final = 15.0
"""Maximum number of seconds to wait; long enough for a loaded machine."""

READ_SIZE: Final = 65536

Kind = TypeVar("Kind", Sender, Receiver)


class RefusedError(Exception):
    """The broker refused a link as it should: a null terminus, then detach with closed=true."""

    def __init__(self, condition: Condition | None) -> None:
        super().__init__(str(condition))
        self.condition: Final = condition.name if condition is not None else None
        self.description: Final = condition.description if condition is not None else None


class LostError(Exception):
    """The connection ended while the test still waited for something."""


class Peer:
    """One connection to the broker."""

    def __init__(
        self,
        url: str,
        *,
        container_id: str | None = None,
        user: str | None = None,
        password: str | None = None,
        mechanisms: str | None = None,
        sasl: bool = True,
        desired_capabilities: Iterable[str] = (),
        properties: Mapping[str, object] | None = None,
        max_frame_size: int | None = None,
        idle_time_out: float | None = None,
    ) -> None:
        where = urlsplit(url)
        self._socket: Final = socket.create_connection((where.hostname, where.port), timeout=SOON)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._names = 0
        self.eof = False
        self.heartbeats = True
        self.transport: Final = Transport()
        self.transport.trace(Transport.TRACE_FRM)
        if max_frame_size is not None:
            self.transport.max_frame_size = max_frame_size
        if idle_time_out is not None:
            self.transport.idle_timeout = idle_time_out
        self.connection: Final = Connection()
        self.connection.container = container_id or f"peer-{id(self)}-{time.monotonic_ns()}"
        self.connection.hostname = str(where.hostname)
        if user is not None:
            self.connection.user = user
        if password is not None:
            self.connection.password = password
        if sasl:
            layer = self.transport.sasl()
            layer.allow_insecure_mechs = True
            layer.allowed_mechs(mechanisms or ("PLAIN" if user is not None else "ANONYMOUS"))
        desired = [symbol(capability) for capability in desired_capabilities]
        if desired:
            self.connection.desired_capabilities = desired
        if properties is not None:
            told: dict[Any, Any] = {symbol(key): value for key, value in properties.items()}
            self.connection.properties = told
        self.transport.bind(self.connection)
        self.connection.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection in order if that is still possible."""
        if not self.eof and self._socket.fileno() >= 0:
            self.connection.close()
            with contextlib.suppress(LostError, OSError):
                self.until(lambda: self.connection.state & Endpoint.REMOTE_CLOSED)
        self._socket.close()

    # ---- moving bytes

    def turn(self, seconds: float) -> None:
        """Exchange the bytes that are ready; wait at most `seconds` for the broker."""
        now = time.monotonic()
        deadline = self.transport.tick(now) if self.heartbeats else 0.0
        if deadline > 0:
            seconds = min(seconds, max(0.0, deadline - now))
        capacity = self.transport.capacity()
        pending = self.transport.pending()
        readable, writable, _ = select.select(
            [self._socket] if capacity > 0 else [],
            [self._socket] if pending > 0 else [],
            [],
            seconds,
        )
        if readable:
            data = self._socket.recv(min(capacity, READ_SIZE))
            if data:
                self.transport.push(data)
            else:
                self.transport.close_tail()
                self.eof = True
        if writable:
            chunk = self.transport.peek(pending)
            assert chunk is not None
            self.transport.pop(self._socket.send(chunk))

    def until(self, claim: Callable[[], object], *, seconds: float = SOON) -> None:
        """Exchange bytes until `claim` holds; raise LostError if the connection ends before.

        Raise TimeoutError after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not claim():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"not within {seconds} s")
            if self.eof or self.transport.closed:
                raise LostError(str(self.transport.condition))
            if self.connection.state & Endpoint.REMOTE_CLOSED and self._active:
                raise LostError(str(self.connection.remote_condition))
            try:
                self.turn(left)
            except (ConnectionError, TransportException) as error:
                self.eof = True
                raise LostError(str(error)) from error

    @property
    def _active(self) -> bool:
        """Return whether this side has not asked for the end of the connection."""
        return bool(self.connection.state & Endpoint.LOCAL_ACTIVE)

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        self.until(lambda: self.transport.pending() <= 0)

    def round_trip(self) -> None:
        """Make the broker answer something new: it has then answered everything before."""
        session = self.connection.session()
        session.open()
        self.until(lambda: session.state & Endpoint.REMOTE_ACTIVE)
        self.end(session)

    def run_for(self, seconds: float) -> None:
        """Let time pass, heartbeats included; raise LostError if the broker ends the connection."""
        with contextlib.suppress(TimeoutError):
            self.until(lambda: False, seconds=seconds)

    def cut(self) -> None:
        """Reset the socket without a close frame, as a broken network would."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
        self.eof = True

    # ---- opening

    def opened(self) -> Self:
        """Wait for the broker's open."""
        self.until(lambda: not self.connection.state & Endpoint.REMOTE_UNINIT)
        return self

    def session(self) -> Session:
        """Return a new session, begun on both sides."""
        session = self.connection.session()
        session.open()
        self.until(lambda: session.state & Endpoint.REMOTE_ACTIVE)
        return session

    def end(self, session: Session) -> None:
        """End `session`, and wait for the broker's end."""
        session.close()
        self.until(lambda: session.state & Endpoint.REMOTE_CLOSED)

    def _next_name(self) -> str:
        self._names += 1
        return f"{self.connection.container}-{self._names}"

    def new_sender(
        self, address: str | None, *, session: Session | None = None, name: str | None = None
    ) -> Sender:
        """Return a sender that is not attached yet. None as address is the anonymous relay."""
        sender = (session or self.session()).sender(name or self._next_name())
        if address is not None:
            sender.target.address = address
        return sender

    def new_receiver(
        self, address: str | None, *, session: Session | None = None, name: str | None = None
    ) -> Receiver:
        """Return a receiver that is not attached yet."""
        receiver = (session or self.session()).receiver(name or self._next_name())
        if address is not None:
            receiver.source.address = address
        return receiver

    def attach(self, link: Kind) -> Kind:
        """Attach `link`; raise RefusedError if the broker answers with a null terminus."""
        link.open()
        self.until(lambda: not link.state & Endpoint.REMOTE_UNINIT)
        terminus = link.remote_target if link.is_sender else link.remote_source
        if terminus.type == Terminus.UNSPECIFIED:
            self.until(lambda: link.state & Endpoint.REMOTE_CLOSED)
            raise RefusedError(link.remote_condition)
        return link

    def sender(self, address: str | None, *, session: Session | None = None) -> Sender:
        """Return an attached sender that has credit."""
        sender = self.attach(self.new_sender(address, session=session))
        self.until(lambda: sender.credit > 0)
        return sender

    def receiver(
        self, address: str | None, *, credit: int = 0, session: Session | None = None
    ) -> Receiver:
        """Return an attached receiver that has given `credit`."""
        receiver = self.attach(self.new_receiver(address, session=session))
        receiver.flow(credit)
        return receiver

    # ---- messages

    def post(self, sender: Sender, message: Message | bytes | str) -> Delivery:
        """Send without waiting for an outcome. A str becomes a message with that body."""
        if isinstance(message, str):
            message = Message(body=message)
        encoded = message if isinstance(message, bytes) else message.encode()
        self.until(lambda: sender.credit > 0)
        delivery = sender.delivery(sender.delivery_tag())
        sender.stream(encoded)
        sender.advance()
        if sender.snd_settle_mode == Link.SND_SETTLED:
            delivery.settle()
        return delivery

    def send(self, sender: Sender, *messages: Message | bytes | str) -> None:
        """Send, and wait until the broker has accepted and settled every message."""
        posted = [self.post(sender, message) for message in messages]
        for delivery in posted:
            assert self.outcome(delivery) == Delivery.ACCEPTED

    def fill(self, address: str, *messages: Message | bytes | str) -> None:
        """Send to `address` over a link that is closed afterwards."""
        sender = self.sender(address)
        self.send(sender, *messages)
        self.close(sender)

    def outcome(self, delivery: Delivery) -> int:
        """Return the state in which the broker settled `delivery`, once it has."""
        self.until(lambda: delivery.settled)
        state = int(delivery.remote_state)
        delivery.settle()
        return state

    def take_bytes(self, receiver: Receiver) -> tuple[Delivery, bytes]:
        """Return the next delivery, and the bytes of its message."""
        self.until(lambda: receiver.current is not None)
        delivery = receiver.current
        assert delivery is not None
        chunks = []
        while (chunk := self._more(receiver, delivery)) is not None:
            chunks.append(chunk)
        receiver.advance()
        return delivery, b"".join(chunks)

    def _more(self, receiver: Receiver, delivery: Delivery) -> bytes | None:
        """Return the next bytes of `delivery`, None after the last. Reading opens the window."""
        self.until(lambda: delivery.pending > 0 or not delivery.partial)
        return receiver.recv(READ_SIZE)

    def take(self, receiver: Receiver) -> tuple[Delivery, Message]:
        """Return the next delivery, and its message."""
        delivery, encoded = self.take_bytes(receiver)
        message = Message()
        message.decode(encoded)
        return delivery, message

    def accept(self, *deliveries: Delivery) -> None:
        """Accept and settle the deliveries; the broker has processed that when this returns."""
        for delivery in deliveries:
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
        self.round_trip()

    def drain(self, receiver: Receiver, credit: int = 100) -> list[tuple[Delivery, Message]]:
        """Return everything that the broker has for `receiver` now, up to `credit` messages."""
        receiver.drain(credit)
        taken = []
        while receiver.current is not None or receiver.draining():
            self.until(lambda: receiver.current is not None or not receiver.draining())
            if receiver.current is not None:
                taken.append(self.take(receiver))
        receiver.drain_mode = False
        return taken

    def bodies(self, address: str) -> list[object]:
        """Consume everything in the queue `address`; return the bodies."""
        receiver = self.receiver(address)
        taken = self.drain(receiver)
        self.accept(*(delivery for delivery, _ in taken))
        self.close(receiver)
        return [_own(message.body) for _, message in taken]

    def close(self, link: Sender | Receiver) -> None:
        """Detach with closed=true, and wait for the broker's detach."""
        link.close()
        self.until(lambda: link.state & Endpoint.REMOTE_CLOSED)
        link.free()


def _own(body: object) -> object:
    """Return a body that outlives its message, in whose memory proton keeps binary ones."""
    return bytes(body) if isinstance(body, memoryview) else body


def asking(terminus: Terminus, *capabilities: str) -> None:
    """Put `capabilities` on `terminus`."""
    terminus.capabilities.put_array(False, Data.SYMBOL)
    terminus.capabilities.enter()
    for capability in capabilities:
        terminus.capabilities.put_symbol(capability)
    terminus.capabilities.exit()
