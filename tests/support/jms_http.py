"""Requests of JMS over HTTP, with headers in their order, as often as a test gives them."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.support.stores import GatedStore

PATIENCE_S = 90.0

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class JmsAnswer:
    """A response; `all_headers` has repeated ones as often as they came."""

    status: int
    all_headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the first header of that name, None without any."""
        return next((value for key, value in self.all_headers if key.lower() == name.lower()), None)

    def headers(self, name: str) -> list[str]:
        """Return all headers of that name."""
        return [value for key, value in self.all_headers if key.lower() == name.lower()]

    def problem(self) -> tuple[int, str, str]:
        """Return status, kind and text of a problem."""
        assert self.header("content-type") == "application/problem+json", self
        told = json.loads(self.body)
        assert told["status"] == self.status
        assert told["instance"].startswith("urn:uuid:")
        return self.status, told["type"].removeprefix("urn:jms-broker:problem:"), told["detail"]


def request(method: str, url: str, headers: Headers = (), body: bytes | None = None) -> JmsAnswer:
    """Return the answer to a request; a body is sent with its length."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_S)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.putrequest(method, target)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        for name, value in headers:
            connection.putheader(name, value.encode())
        connection.endheaders(body)
        response = connection.getresponse()
        return JmsAnswer(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


async def post(url: str, headers: Headers = (), body: bytes = b"") -> JmsAnswer:
    """Return the answer to a POST, made in a thread so that the broker's loop can run."""
    return await asyncio.to_thread(request, "POST", url, headers, body)


async def call(method: str, url: str, headers: Headers = ()) -> JmsAnswer:
    """Return the answer to a request without a body, made in a thread."""
    return await asyncio.to_thread(request, method, url, headers)


async def until(claim: Callable[[], object]) -> None:
    """Let other tasks run until `claim` holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not claim():  # noqa: ASYNC110 - the broker of a test has no event for it
            await asyncio.sleep(0)


async def store_working(store: GatedStore, answer: asyncio.Task[JmsAnswer]) -> JmsAnswer:
    """Let the store complete its commits until there is an answer; return it."""
    while not answer.done():
        store.let_all_through()
        await asyncio.sleep(0)
    return answer.result()
