"""`jms-broker healthcheck`: test whether a broker opens and closes a connection.

Containers and supervisors run it every few seconds, so it sends the engine's frames on a plain
socket, without Proton. A broker that asks for a password has shown by its SASL mechanisms that it
serves, so no password has to be stored for the check.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import unquote, urlsplit

from mypy_extensions import i64

from broker.amqp.decode import descriptor_at
from broker.amqp.descriptors import CLOSE, OPEN, SASL_MECHANISMS, SASL_OUTCOME
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import ConnectionFault
from broker.amqp.frames import (
    AMQP_HEADER,
    HEAD_SIZE,
    SASL_HEADER,
    body_at,
    frame_size,
    put_frame,
    put_sasl_frame,
)
from broker.amqp.limits import FRAME_BEFORE_OPEN
from broker.amqp.performatives import Close, Open, read_close, read_open
from broker.amqp.sasl import ANONYMOUS, PLAIN
from broker.amqp.sasl_frames import (
    SASL_OK,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    read_sasl_mechanisms,
    read_sasl_outcome,
)
from broker.compiled import BUILD, INTERPRETED, SLOWER, build_kind

AMQP_PORT: Final = 5672

THIS_MACHINE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not listened on
"""The address to connect to, by the wildcard address that a broker listens on."""

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


def run(url: str | None, config: Path | None, timeout_s: float) -> None:
    """Print the verdict; exit with status 1 if the broker counts as down.

    `url` None means the broker with the settings of the environment and `config`.
    """
    try:
        if url is None:  # the broker of this installation, so it has the build of this one
            verdict = check(url_of_settings(config), timeout_s, build=build_kind())
        else:
            verdict = check(url, timeout_s)
        print(f"healthy: {verdict}")
    except Unhealthy as verdict:
        print(f"jms-broker: {verdict}", file=sys.stderr)
        sys.exit(1)


def url_of_settings(config: Path | None) -> str:
    """Return the URL of the broker with the settings of the environment and `config`.

    Raise Unhealthy if the settings are wrong, or if they leave the choice of a port to the system.
    """
    from broker.settings import SettingsError, load_settings

    try:
        settings = load_settings(config)
    except SettingsError as error:
        raise Unhealthy("; ".join(str(error).splitlines())) from None
    if settings.port == 0:
        raise Unhealthy("port = 0 is a free port that nobody knows here: name the broker by --url")
    host = THIS_MACHINE.get(settings.bind, settings.bind)
    return f"amqp://[{host}]:{settings.port}" if ":" in host else f"amqp://{host}:{settings.port}"


def offers_anonymous(url: str, timeout_s: float) -> bool:
    """Return True if a broker answers at `url` and lets clients in without a password."""
    parts = urlsplit(url)
    try:
        with Wire(parts.hostname or "", parts.port or AMQP_PORT, timeout_s) as wire:
            wire.send_bytes(SASL_HEADER)
            wire.expect_header(SASL_HEADER)
            return ANONYMOUS in wire.expect(SaslMechanisms).mechanisms
    except (OSError, ConnectionFault, Unhealthy):
        return False


def check(url: str, timeout_s: float, *, build: str = "") -> str:
    """Return what the broker at `url` did to count as up; raise Unhealthy if it is down.

    The text says if the broker runs interpreted, by its `open`, or by `build` if the `open` does
    not say or the broker asks for a password before it.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or AMQP_PORT
    except ValueError as error:
        raise Unhealthy(f"{url!r} is no address of a broker: {error}") from None
    if parts.scheme != "amqp" or host is None:
        raise Unhealthy(f"{url!r} is no address of a broker: amqp://HOST:PORT is")
    place = f"{host}:{port}"
    try:
        with Wire(host, port, timeout_s) as wire:
            return _converse(
                wire, unquote(parts.username or ""), unquote(parts.password or ""), build=build
            )
    except TimeoutError:
        raise Unhealthy(f"{place} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise Unhealthy(f"{place}: {error.strerror or error}") from None
    except ConnectionFault as fault:
        raise Unhealthy(f"{place} does not speak AMQP 1.0: {fault}") from None
    except Unhealthy as verdict:
        raise Unhealthy(f"{place} {verdict}") from None


def _converse(wire: Wire, user: str, password: str, *, build: str) -> str:
    """Open and close a connection; return what was done.

    Without `user`, stop if the broker asks for a password: it has answered.
    """
    wire.send_bytes(SASL_HEADER)
    wire.expect_header(SASL_HEADER)
    mechanisms = wire.expect(SaslMechanisms).mechanisms
    if not user and ANONYMOUS not in mechanisms:
        return _with_build(f"asks for a password ({', '.join(mechanisms)})", build)
    if user:
        credentials = f"\0{user}\0{password}".encode()
        wire.send_sasl(SaslInit(mechanism=PLAIN, initial_response=credentials))
    else:
        wire.send_sasl(SaslInit(mechanism=ANONYMOUS))
    outcome = wire.expect(SaslOutcome)
    if outcome.code != SASL_OK:
        raise Unhealthy(f"refuses {repr(user) if user else 'strangers'} (code {int(outcome.code)})")
    wire.send_bytes(AMQP_HEADER)
    wire.send(Open(container_id=f"jms-broker-healthcheck-{os.urandom(4).hex()}"))
    wire.expect_header(AMQP_HEADER)
    told = wire.expect(Open).properties.get(BUILD, build)
    wire.send(Close())
    wire.expect(Close)
    return _with_build("opened and closed a connection", told)


def _with_build(done: str, build: object) -> str:
    """Return `done`, with a note that the broker is slow if `build` says it is not compiled."""
    return f"{done}; it runs {SLOWER}" if build == INTERPRETED else done


class Wire:
    """A socket to a broker. All operations together must finish within `timeout_s` seconds."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._ends_at: Final = time.monotonic() + timeout_s
        self._socket: Final = socket.create_connection((host, port), timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

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
