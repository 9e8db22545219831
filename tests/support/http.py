"""What asks a broker over HTTP: the standard library's client, and bare bytes on a socket."""

from __future__ import annotations

import asyncio
import http.client
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pyarrow as pa

from broker.http.server import HttpServer
from broker.settings import HttpSettings
from storage.api import Store
from storage.batch import Batch
from storage.events import EventRow
from tests.support.broker import Broker

PATIENCE_S = 10.0


@dataclass(frozen=True)
class Answer:
    """A response. `is_whole`: it ended as it should, and not with the connection."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_whole: bool

    def error(self) -> str:
        """Why it was refused."""
        told = json.loads(self.body)
        assert list(told) == ["error"]
        return str(told["error"])

    def table(self) -> pa.Table:
        """What the Arrow stream has."""
        assert self.is_whole
        return pa.ipc.open_stream(self.body).read_all()


def basic(user: str, password: str) -> dict[str, str]:
    """The header that says who asks."""
    return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


async def ask(url: str, headers: dict[str, str] | None = None, method: str = "GET") -> Answer:
    """What comes back, in a thread beside the broker's loop."""
    return await asyncio.to_thread(_ask, url, headers or {}, method)


def _ask(url: str, headers: dict[str, str], method: str) -> Answer:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_S)
    try:
        connection.request(method, f"{parts.path}?{parts.query}", headers=headers)
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


@asynccontextmanager
async def served(
    store: Store, *, broker: Broker | None = None, **settings: int
) -> AsyncIterator[str]:
    """The URL of an HTTP server on a free port, of a broker without other sockets."""
    broker = broker or Broker()
    server = HttpServer(HttpSettings(port=0, **settings), broker.container, store)
    await server.start()
    try:
        yield server.url()
    finally:
        await server.stop()


@asynccontextmanager
async def socket_to(
    url: str,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A bare connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=2**16)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def begin(path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ask for a stream on a bare connection, and read no more than its head."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head


def event(number: int, kind: str = "enqueued", address: str = "a") -> EventRow:
    """A row of the event log."""
    return (
        *(number, number * 1000, kind, "", address, "", f"ID:{number}", number * 10 + 4),
        *("client", "link", "1/0", 0, 0, "", "", "boot"),
    )


async def note(store: Store, *rows: EventRow) -> None:
    """Have the store keep these rows."""
    batch = Batch()
    for row in rows:
        batch.note_event(row)
    await store.commit(batch)
