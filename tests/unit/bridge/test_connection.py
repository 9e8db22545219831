"""The socket of a bridge, and its login at servers that lie."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from broker.amqp.encode import BytesWriter
from broker.amqp.frames import AMQP_HEADER, SASL_HEADER, put_frame, put_sasl_frame
from broker.amqp.performatives import Begin, Flow, Open, Performative
from broker.amqp.sasl_frames import SaslMechanisms, SaslOutcome
from broker.app import PRODUCT
from broker.bridge.bridge import Bridge
from broker.bridge.client_connection import ClientConnection
from broker.bridge.connection import UNREAD_MAX, BridgeConnection, connected
from broker.bridge.failure import BridgeError
from broker.bridge_settings import BridgeSettings
from broker.embedding import Broker
from broker.links.bridge_status import PAUSED
from tests.support.bridges import bridge_to, status_of


def sasl(*bodies: Performative) -> bytes:
    """Return SASL frames."""
    out = BytesWriter()
    for body in bodies:
        put_sasl_frame(out, body)
    return out.getvalue()


def amqp(*bodies: Performative) -> bytes:
    """Return frames on channel 0."""
    out = BytesWriter()
    for body in bodies:
        put_frame(out, 0, body)
    return out.getvalue()


@asynccontextmanager
async def server_of(data: bytes) -> AsyncIterator[str]:
    """Run a server that sends `data` to each client, whatever that sends; yield its URL."""

    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        with suppress(ConnectionError):
            while await reader.read(1024):
                pass
        writer.close()
        ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"amqp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await ended.wait()


def settings_to(url: str, credentials_file: Path | None) -> BridgeSettings:
    """Return the settings of a bridge to the server at `url`."""
    return BridgeSettings(
        name="b", source="q", to="there", url=url, credentials_file=credentials_file
    )


@pytest.mark.requirement("BRG-06")
async def test_a_server_that_accepts_a_login_without_a_challenge(tmp_path: Path) -> None:
    """It has not proved that it knows the password (RFC 5802, 5)."""
    file = tmp_path / "credentials"
    file.write_text("ann:secret\n")
    lies = SASL_HEADER + sasl(SaslMechanisms(["SCRAM-SHA-256"]), SaslOutcome(0))
    async with server_of(lies) as url:
        with pytest.raises(BridgeError, match="does not prove"):
            await connected(settings_to(url, file), "here", lambda: None)


async def test_a_broker_that_asks_and_does_not_read() -> None:
    """The answers to its flows would fill the memory."""
    engine = ClientConnection(container_id="here", host="there", logs_in=False)
    connection = BridgeConnection(engine, lambda: None)
    out = BytesWriter()
    put_frame(out, 0, Open(container_id="there", max_frame_size=1000))
    begin = Begin(remote_channel=0, next_outgoing_id=5, incoming_window=10, outgoing_window=10)
    put_frame(out, 0, begin)
    connection.data_received(AMQP_HEADER + out.getvalue())
    asks = BytesWriter()
    flow = Flow(
        next_incoming_id=0, incoming_window=10, next_outgoing_id=5, outgoing_window=10, echo=True
    )
    put_frame(asks, 0, flow)
    many = asks.getvalue() * (UNREAD_MAX // 10 // len(asks.getvalue()))
    connection.pause_writing()
    for _ in range(4):
        connection.data_received(many)
    assert not engine.failure
    for _ in range(10):
        connection.data_received(many)
    assert "does not read" in engine.failure


async def test_an_answer_that_never_comes() -> None:
    engine = ClientConnection(container_id="here", host="there", logs_in=False)
    connection = BridgeConnection(engine, lambda: None)
    with pytest.raises(BridgeError, match=r"no answer of the other broker for 0\.01 s"):
        await connection.until(lambda: False, within_s=0.01)


SILENT = (
    SASL_HEADER
    + sasl(SaslMechanisms(["ANONYMOUS"]), SaslOutcome(0))
    + AMQP_HEADER
    + amqp(
        Open(container_id="there", max_frame_size=1000, properties={"product": PRODUCT}),
        Begin(remote_channel=0, next_outgoing_id=5, incoming_window=10, outgoing_window=10),
    )
)
"""The beginning of a broker of this kind, which then says nothing."""


@pytest.mark.requirement("BRG-07")
async def test_a_pause_ends_the_wait_for_an_answer() -> None:
    async with server_of(SILENT) as url, Broker(bridge=[bridge_to(url)]) as here:
        status = status_of(here)
        bridge = status.control
        await here.until(lambda: isinstance(bridge, Bridge) and bridge._beginning is not None)
        bridge.pause()
        await here.until(lambda: status.state == PAUSED)
        assert status.failures == 0
