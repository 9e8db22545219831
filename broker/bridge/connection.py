"""The socket of a bridge: connects, logs in, and passes bytes to the engine."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, cast

from broker.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN
from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK
from broker.bridge.client_connection import ClientConnection
from broker.bridge.client_frames import IDLE_TIME_OUT_MS
from broker.bridge.failure import BridgeError, PausedError
from broker.bridge.login import (
    SCRAMS,
    Credentials,
    ScramLogin,
    chosen_mechanism,
    plain_response,
    read_credentials,
)
from broker.bridge_settings import BridgeSettings, BridgeTlsSettings

CONNECT_TIMEOUT_S: Final = 10.0
"""Seconds for the connection, TLS and the login."""

ANSWER_S: Final = 30.0
"""Seconds for an answer of the other broker, which may be alive and yet never answer."""

SILENCE_S: Final = IDLE_TIME_OUT_MS / 1000 * 1.25
"""Seconds without a byte after which the connection counts as lost."""

BEAT_S_MAX: Final = 10.0
"""Maximum seconds between two empty frames."""

BEAT_S_MIN: Final = 0.1

CLOSE_S: Final = 0.5
"""Seconds that the other broker gets to answer the close."""

WRITE_BUFFER_HIGH: Final = 512 * 1024
WRITE_BUFFER_LOW: Final = 128 * 1024

UNREAD_MAX: Final = 256 * 1024
"""Maximum bytes that are written for frames of the other broker while it does not read."""


class BridgeConnection(asyncio.Protocol):
    """One connection. `changed` is called after all that may have changed the engine's state."""

    def __init__(self, engine: ClientConnection, changed: Callable[[], None]) -> None:
        self.engine: Final = engine
        self._changed: Final = changed
        self._event: Final = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._loop: Final = asyncio.get_running_loop()
        self._heard_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._unread = 0
        self._stops_waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do everything that asyncio's do, but are not derived from them
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH, low=WRITE_BUFFER_LOW)
        self.flush()

    def data_received(self, data: bytes) -> None:
        self._heard_s = self._loop.time()
        self.engine.receive(data)
        self._tell()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._stop_timer()
        if exc is None:
            self.engine.lost()
        else:
            self.engine.fail(f"connection lost: {exc}", "")
        self._tell()

    def pause_writing(self) -> None:
        self._unread = 0
        self.engine.is_blocked = True

    def resume_writing(self) -> None:
        self.engine.is_blocked = False
        self._tell()

    def flush(self) -> None:
        """Write the engine's output, unless the other broker asks for much and reads nothing."""
        data = self.engine.take()
        if self.engine.is_blocked:
            self._unread += len(data)
            if self._unread > UNREAD_MAX:
                self.engine.fail("the other broker does not read what it asks for", "")
                self.abort()
                return
        if data and self._transport is not None:
            self._transport.write(data)

    def _tell(self) -> None:
        self.flush()
        self._event.set()
        self._changed()

    # -- heartbeats

    def watch(self) -> None:
        """Send empty frames from now on, and end the connection if the other side is silent."""
        remote = self.engine.remote
        pause_s = BEAT_S_MAX
        if remote is not None and remote.idle_time_out > 0:
            pause_s = min(pause_s, int(remote.idle_time_out) / 1000 / 2)
        self._beat(max(pause_s, BEAT_S_MIN))

    def _beat(self, pause_s: float) -> None:
        if self._loop.time() - self._heard_s > SILENCE_S:
            self.engine.fail(f"connection lost: silent for {SILENCE_S:g} s", "")
            self.abort()
            return
        self.engine.beat()
        self.flush()
        self._timer = self._loop.call_later(min(pause_s, SILENCE_S / 4), self._beat, pause_s)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- waits

    async def until(self, is_so: Callable[[], bool], *, within_s: float = ANSWER_S) -> None:
        """Wait until `is_so`; raise BridgeError if the connection ends before, or the time.

        Raise PausedError after `stop_waiting`.
        """
        self.flush()
        try:
            async with asyncio.timeout(within_s):
                await self._wait(is_so)
        except TimeoutError:
            raise BridgeError(f"no answer of the other broker for {within_s:g} s") from None

    async def _wait(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self.check()
            if self._stops_waiting:
                raise PausedError("the bridge is paused")
            self._event.clear()
            await self._event.wait()

    def stop_waiting(self) -> None:
        """End what waits for an answer now, or will: the bridge is paused."""
        self._stops_waiting = True
        self._event.set()

    def check(self) -> None:
        """Raise BridgeError if the connection has ended."""
        if self.engine.failure:
            raise BridgeError(self.engine.failure)

    # -- the end

    def abort(self) -> None:
        """End the connection at once."""
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Close the connection in order, if it is open."""
        self._stop_timer()
        self._stops_waiting = False
        engine = self.engine
        if not engine.failure and self._transport is not None:
            engine.close()
            self.flush()
            with suppress(BridgeError, TimeoutError):  # closed, or it takes too long
                await asyncio.wait_for(self.until(lambda: bool(engine.failure)), CLOSE_S)
        if self._transport is not None:
            self._transport.abort()


async def connected(
    settings: BridgeSettings, container_id: str, changed: Callable[[], None]
) -> BridgeConnection:
    """Return an open connection to the other broker of `settings`; BridgeError if that fails."""
    host, port = settings.place
    credentials = None
    if settings.credentials_file is not None:
        credentials = await asyncio.to_thread(read_credentials, settings.credentials_file)
    context = None
    if settings.is_encrypted:
        context = await asyncio.to_thread(client_context, settings.tls)
    connection = BridgeConnection(
        ClientConnection(container_id=container_id, host=host, logs_in=True), changed
    )
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await asyncio.get_running_loop().create_connection(
                lambda: connection,
                host,
                port,
                ssl=context,
                server_hostname=None if context is None else host,
            )
            await _log_in(connection, settings, credentials)
            engine = connection.engine
            await connection.until(lambda: engine.remote is not None and engine.has_begun)
    except TimeoutError:
        connection.abort()
        raise BridgeError(f"no answer of {host} for {CONNECT_TIMEOUT_S:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise BridgeError(f"the certificate is not trusted: {error.verify_message}") from None
    except OSError as error:
        connection.abort()
        raise BridgeError(f"cannot connect: {error.strerror or error}") from None
    except BaseException:
        connection.abort()
        raise
    connection.watch()
    return connection


async def _log_in(
    connection: BridgeConnection, settings: BridgeSettings, credentials: Credentials | None
) -> None:
    engine = connection.engine
    await connection.until(lambda: engine.mechanisms is not None)
    mechanism = chosen_mechanism(
        engine.mechanisms or [],
        credentials,
        host=settings.place[0],
        is_encrypted=settings.is_encrypted,
        has_certificate=settings.tls is not None and settings.tls.certificate is not None,
    )
    if mechanism in SCRAMS and credentials is not None:
        await _log_in_by_scram(connection, ScramLogin(mechanism, credentials), mechanism)
    else:
        response = {EXTERNAL: b"", ANONYMOUS: b"bridge"}.get(mechanism)
        if mechanism == PLAIN and credentials is not None:
            response = plain_response(credentials)
        engine.choose(mechanism, response)
    await connection.until(lambda: engine.outcome >= 0)
    if engine.outcome != SASL_OK:
        raise BridgeError(_refused_login(int(engine.outcome), credentials))


async def _log_in_by_scram(connection: BridgeConnection, scram: ScramLogin, mechanism: str) -> None:
    engine = connection.engine
    engine.choose(mechanism, scram.first())
    await connection.until(lambda: engine.challenge is not None or engine.outcome >= 0)
    challenge = engine.take_challenge()
    if challenge is None:
        if engine.outcome == SASL_OK:
            raise BridgeError("the other broker does not prove that it knows the password")
        return
    engine.respond(await scram.final(challenge))
    await connection.until(lambda: engine.challenge is not None or engine.outcome >= 0)
    final = engine.take_challenge()
    if final is not None:
        scram.check(final)
        engine.respond(b"")
        await connection.until(lambda: engine.outcome >= 0)
    elif engine.outcome == SASL_OK:
        scram.check(engine.outcome_data)


def _refused_login(code: int, credentials: Credentials | None) -> str:
    who = "without a user" if credentials is None else f"of user {credentials.user!r}"
    if code == SASL_AUTH:
        return f"the login {who} was refused: correct credentials_file, or the user there"
    return f"the login {who} could not be checked (sasl-code {code})"


def client_context(tls: BridgeTlsSettings | None) -> ssl.SSLContext:
    """Return the context of a client; BridgeError if a file of `tls` cannot be used."""
    try:
        context = ssl.create_default_context(
            cafile=None if tls is None or tls.ca is None else str(tls.ca)
        )
        if tls is not None and tls.certificate is not None and tls.key is not None:
            context.load_cert_chain(str(tls.certificate), str(tls.key), password=_no_password)
    except (OSError, ssl.SSLError) as error:
        raise BridgeError(f"tls: a file cannot be used: {error}") from None
    return context


def _no_password() -> str:
    """Raise BridgeError: OpenSSL would ask for the key's password on the terminal."""
    raise BridgeError("tls: the key has a password: write it without one to a file of its own")
