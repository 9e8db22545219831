"""The socket of a bridge, and its login at servers that lie."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from broker.amqp.encode import BytesWriter
from broker.amqp.frames import SASL_HEADER, put_sasl_frame
from broker.amqp.performatives import Performative
from broker.amqp.sasl_frames import SaslMechanisms, SaslOutcome
from broker.bridge.connection import connected
from broker.bridge.failure import BridgeError
from broker.bridge_settings import BridgeSettings


def sasl(*bodies: Performative) -> bytes:
    """Return SASL frames."""
    out = BytesWriter()
    for body in bodies:
        put_sasl_frame(out, body)
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
