"""A socket to a broker that speaks AMQP 1.0 up to its open, with or without TLS."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from mypy_extensions import i64

from broker.amqp.decode import descriptor_at
from broker.amqp.descriptors import CLOSE, OPEN, SASL_MECHANISMS, SASL_OUTCOME
from broker.amqp.encode import BytesWriter
from broker.amqp.frames import (
    HEAD_SIZE,
    SASL_HEADER,
    body_at,
    frame_size,
    put_frame,
    put_sasl_frame,
)
from broker.amqp.limits import FRAME_BEFORE_OPEN
from broker.amqp.performatives import Close, Open, read_close, read_open
from broker.amqp.sasl_frames import (
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    read_sasl_mechanisms,
    read_sasl_outcome,
)
from broker.cli.broker_url import split_url
from broker.cli.client_tls import AMQPS, AMQPS_PORT

if TYPE_CHECKING:
    import ssl
    from urllib.parse import SplitResult

    from broker.cli.client_tls import ClientTls

AMQP_PORT: Final = 5672

Answer = SaslMechanisms | SaslOutcome | Open | Close
A = TypeVar("A", bound=Answer)

READERS: Final[dict[int, Callable[[bytes, i64, i64], Answer]]] = {
    SASL_MECHANISMS: read_sasl_mechanisms,
    SASL_OUTCOME: read_sasl_outcome,
    OPEN: read_open,
    CLOSE: read_close,
}


class Unhealthy(Exception):  # noqa: N818 - a verdict, not a fault of this program
    """The verdict that the broker counts as down; the text says why, in one line."""


def place_of(parts: SplitResult) -> tuple[str, int]:
    """Return the host and the port that a URL names; the port may be that of its scheme."""
    standard = AMQPS_PORT if parts.scheme == AMQPS else AMQP_PORT
    return parts.hostname or "", parts.port or standard


class Wire:
    """A socket to a broker. All operations together must finish within `timeout_s` seconds."""

    def __init__(
        self, host: str, port: int, timeout_s: float, *, context: ssl.SSLContext | None = None
    ) -> None:
        """Connect, with TLS if there is a `context`. Raise OSError, of which ssl.SSLError is one.

        With TLS 1.3 a broker's refusal of the client's certificate is raised by the first read.
        """
        self._ends_at: Final = time.monotonic() + timeout_s
        plain = socket.create_connection((host, port), timeout_s)
        try:
            plain.settimeout(self._left())
            self._socket: Final = (
                plain if context is None else context.wrap_socket(plain, server_hostname=host)
            )
        except BaseException:
            plain.close()
            raise

    @classmethod
    def to(cls, url: str, timeout_s: float, tls: ClientTls | None) -> Self:
        """Connect to the broker at `url`. Raise as the constructor, and ClientTlsError."""
        host, port = place_of(split_url(url))
        return cls(host, port, timeout_s, context=None if tls is None else tls.context())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def mechanisms(self) -> list[str]:
        """Exchange the headers of SASL; return the mechanisms that the broker offers."""
        self.send_bytes(SASL_HEADER)
        self.expect_header(SASL_HEADER)
        return list(self.expect(SaslMechanisms).mechanisms)

    def send_bytes(self, data: bytes) -> None:
        self._socket.settimeout(self._left())
        self._socket.sendall(data)

    def send(self, performative: Open | Close) -> None:
        out = BytesWriter()
        put_frame(out, 0, performative)
        self.send_bytes(out.getvalue())

    def send_sasl(self, performative: SaslInit) -> None:
        out = BytesWriter()
        put_sasl_frame(out, performative)
        self.send_bytes(out.getvalue())

    def expect_header(self, expected: bytes) -> None:
        """Read the protocol header; raise Unhealthy if it is not `expected`."""
        header = self._take(len(expected))
        if header != expected:
            raise Unhealthy(f"answers {expected!r} with {header!r}")

    def expect(self, kind: type[A]) -> A:
        """Return the body of the next frame; raise Unhealthy if it is no `kind`."""
        answer = self._next()
        if isinstance(answer, Close) and answer.error is not None:
            raise Unhealthy(f"closed: {answer.error.condition} {answer.error.description or ''}")
        if isinstance(answer, kind):
            return answer
        raise Unhealthy(f"sent {type(answer).__name__.lower()} in place of {kind.__name__.lower()}")

    def _next(self) -> Answer:
        """Return the body of the next frame that has one; empty frames are heartbeats."""
        while True:
            head = self._take(HEAD_SIZE)
            size = int(frame_size(head, 0, FRAME_BEFORE_OPEN))
            if size > HEAD_SIZE:
                break
        frame = head + self._take(size - HEAD_SIZE)
        code, at = descriptor_at(frame, body_at(frame, 0), size)
        read = READERS.get(int(code))
        if read is None:
            raise Unhealthy(f"sent an unexpected frame, descriptor {int(code):#x}")
        return read(frame, at, size)

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            self._socket.settimeout(self._left())
            more = self._socket.recv(count - len(data))
            if not more:
                raise Unhealthy("closed the socket")
            data += more
        return data

    def _left(self) -> float:
        """Return the seconds left, more than 0, which would mean not to wait at all.

        Raise TimeoutError if none are left.
        """
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
