"""Waiting in requests of JMS over HTTP: for a commit, for a message, for a body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from starlette.requests import ClientDisconnect, Request

from broker.http.jms_problems import RETRY, TIMED_OUT, TOO_LARGE, TOO_MANY, JmsProblem
from broker.http.limits import (
    JMS_BODY_BYTES_MAX,
    JMS_BODY_MAX_MS,
    JMS_WAITING_MAX,
    JMS_WAITING_PER_USER_MAX,
)
from broker.http.user_counts import UserCounts
from broker.journal import Journal, Waiter
from broker.links.container import Container
from broker.links.linkless import LinklessClient
from broker.links.rights_review import LOGIN_ENDED
from broker.management.request import BAD_REQUEST, BUSY, FORBIDDEN
from broker.routing.credit.memory import MemoryBudget


class Committed(Waiter):
    """A request that waits until the changes noted before it are durable."""

    def __init__(self, journal: Journal) -> None:
        self._done: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        journal.submit(self)

    def committed(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    async def wait(self) -> None:
        """Return after the commit. If that fails, the broker stops and never answers."""
        await self._done


class Waiting:
    """Counts the requests that wait for messages, in all and by user."""

    def __init__(self) -> None:
        self._counts: Final = UserCounts()

    @contextmanager
    def one(self, user: str) -> Iterator[None]:
        """Count one more request of `user` during the block; JmsProblem if too many wait."""
        own = self._counts.of(user)
        if own >= JMS_WAITING_PER_USER_MAX or self._counts.total() >= JMS_WAITING_MAX:
            raise JmsProblem(
                TOO_MANY,
                "limit-reached",
                f"{own} requests of this user wait for messages, the broker allows"
                f" {JMS_WAITING_PER_USER_MAX}, and {JMS_WAITING_MAX} of all users",
                headers=RETRY,
            )
        with self._counts.one(user):
            yield


class Disconnected(Exception):  # noqa: N818 - an event: there is no client to respond to
    """The client has closed its connection."""


@asynccontextmanager
async def watched(request: Request) -> AsyncIterator[asyncio.Task[None]]:
    """Yield a task that ends when the client has disconnected. Its body must have been read."""
    gone = asyncio.get_running_loop().create_task(_gone(request))
    try:
        yield gone
    finally:
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def arrival(happened: asyncio.Event, gone: asyncio.Task[None], seconds: float) -> None:
    """Wait until `happened` is set, for at most `seconds`; Disconnected if the client is gone."""
    coming = asyncio.get_running_loop().create_task(happened.wait())
    try:
        await asyncio.wait((coming, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        coming.cancel()
    if gone.done():
        raise Disconnected


def demand_login(client: LinklessClient) -> None:
    """Give a client that has waited the roles of its user by now; JmsProblem if its login ended."""
    if not client.renew():
        raise JmsProblem(FORBIDDEN, "not-permitted", LOGIN_ENDED)


async def body_of(request: Request, container: Container) -> bytes:
    """Return the body of a request; JmsProblem if it is too large, or does not arrive in time."""
    memory = container.router.memory
    at_most = min(JMS_BODY_BYTES_MAX, int(container.limits.max_message_size))
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or len(declared) > len(str(at_most)) or int(declared) > at_most:
        raise _too_large(at_most)
    if memory.unfinished > memory.quarter():
        raise JmsProblem(BUSY, "busy", "the broker is short of memory", headers=RETRY)
    try:
        async with asyncio.timeout(JMS_BODY_MAX_MS / 1000):
            return await _gathered(request, memory, at_most)
    except TimeoutError:
        raise JmsProblem(
            TIMED_OUT,
            "body-too-slow",
            f"the body did not arrive within {JMS_BODY_MAX_MS} ms",
            headers={"connection": "close"},
        ) from None
    except ClientDisconnect:
        raise Disconnected from None


async def _gathered(request: Request, memory: MemoryBudget, at_most: int) -> bytes:
    """Return the whole body, which counts as unfinished until it is complete."""
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in request.stream():
            size += len(piece)
            memory.unfinished += len(piece)
            if size > at_most:
                raise _too_large(at_most)
            pieces.append(piece)
    finally:
        memory.unfinished -= size
    return b"".join(pieces)


def _too_large(at_most: int) -> JmsProblem:
    return JmsProblem(
        TOO_LARGE,
        "message-too-large",
        f"the body of a message has at most {at_most} bytes here: send larger ones by AMQP",
        headers={"connection": "close"},
    )


def preferred_wait(prefer: str | None, at_most: int) -> int | None:
    """Return the seconds that a header `Prefer` asks to wait (RFC 7240), None if it does not."""
    for preference in (prefer or "").split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() != "wait":
            continue
        text = value.strip().strip('"')
        if text.isascii() and text.isdigit() and len(text) <= len(str(at_most)):
            seconds = int(text)
            if seconds <= at_most:
                return seconds
        raise JmsProblem(BAD_REQUEST, "bad-request", f"Prefer: wait is 0 to {at_most} seconds")
    return None
