"""HTTP clients of a broker: the standard library's, and a plain socket."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pyarrow as pa

from broker.http.server import HttpServer
from broker.http_settings import HttpSettings
from broker.management.management import Management
from storage.api import Store
from storage.batch import Batch
from storage.events import EventRow
from tests.support.broker import Broker

PATIENCE_S = 10.0


@dataclass(frozen=True)
class Answer:
    """A response; `is_whole` is False if the connection ended before the body did."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_whole: bool

    def error(self) -> str:
        """Return the reason of a refusal."""
        told = json.loads(self.body)
        assert list(told) == ["error"]
        return str(told["error"])

    def table(self) -> pa.Table:
        """Return the table of the Arrow stream, which must be complete."""
        assert self.is_whole
        return pa.ipc.open_stream(self.body).read_all()


def basic(user: str, password: str) -> dict[str, str]:
    """Return the headers for basic authentication."""
    return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


async def ask(
    url: str,
    headers: dict[str, str] | None = None,
    method: str = "GET",
    *,
    tls: ssl.SSLContext | None = None,
    body: bytes | None = None,
) -> Answer:
    """Return the answer to a request, made in a thread so that the broker's loop can run.

    With `tls` the request is made by HTTPS.
    """
    parts = urlsplit(url)
    netloc = parts.netloc
    if tls is None:
        connection = http.client.HTTPConnection(netloc, timeout=PATIENCE_S)
    else:
        connection = http.client.HTTPSConnection(netloc, timeout=PATIENCE_S, context=tls)
    asked = (method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body)
    return await asyncio.to_thread(_ask, connection, asked, headers or {})


def _ask(
    connection: http.client.HTTPConnection,
    asked: tuple[str, str, bytes | None],
    headers: dict[str, str],
) -> Answer:
    method, path, body = asked
    try:
        connection.request(method, path, body, headers=headers)
        response = connection.getresponse()
        is_whole = True
        try:
            body = response.read()
        except http.client.IncompleteRead as cut:
            body, is_whole = cut.partial, False
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, body, is_whole)
    finally:
        connection.close()


def server_of(store: Store, broker: Broker | None = None, **settings: int) -> HttpServer:
    """Return an HTTP server for a broker without other sockets, on a free port once it starts."""
    broker = broker or Broker()
    management = broker.container.service
    assert isinstance(management, Management)
    return HttpServer(
        HttpSettings(port=0, **settings), broker.container, store, management=management
    )


@asynccontextmanager
async def served(
    store: Store, *, broker: Broker | None = None, **settings: int
) -> AsyncIterator[str]:
    """Run an HTTP server on a free port, for a broker without other sockets; yield its URL."""
    server = server_of(store, broker, **settings)
    await server.start()
    try:
        yield server.url()
    finally:
        await server.stop()


@asynccontextmanager
async def socket_to(
    url: str,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a plain connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=2**16)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def begin(path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Request a stream on a plain connection, and read only the head of the response."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head


def event(number: int, kind: str = "enqueued", address: str = "a") -> EventRow:
    """Return a row of the event log."""
    return (
        *(number, number * 1000, kind, "", address, "", f"ID:{number}", number * 10 + 4),
        *("client", "link", "1/0", 0, 0, "", "", "boot"),
    )


async def note(store: Store, *rows: EventRow) -> None:
    """Store these rows."""
    batch = Batch()
    for row in rows:
        batch.note_event(row)
    await store.commit(batch)


@asynccontextmanager
async def event_stream(url: str, headers: dict[str, str]) -> AsyncIterator[asyncio.StreamReader]:
    """Open a stream of events that does not end; yield what it is read from, behind the head."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    lines = [f"GET {path} HTTP/1.1", "host: localhost"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        assert b"content-type: text/event-stream" in head
        yield reader
    finally:
        writer.close()
