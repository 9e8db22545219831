"""A healthy client, a program of its own, which makes one request after another.

    python -m tests.attacks.probes request 5672

Prints a line of JSON for each request: its start, its duration in ms, and its error. It ends when
its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import Flow
from tests.attacks.plan import PASSWORD, USER
from tests.conformance.conversation import Conversation, connected
from tests.conformance.frames import Disposition, Transfer, described
from tests.conformance.messages import message
from tests.conformance.session import Receiver, Sender
from tests.conformance.verdict import Failed, Options

PATIENCE_S: Final = 50.0
"""Seconds after which a request is an error.

Less than idle_time_out_ms, since a client that waits sends nothing.
"""

CREDIT: Final = 100
BODY: Final = bytes(100)
OK: Final = b"HTTP/1.1 200"

EVERY_MS: Final = {"request": 10.0, "login": 200.0, "tls": 200.0, "http": 200.0}
"""Milliseconds from one request of a kind to the next, if the broker answers in time."""

Request = Callable[[], Awaitable[None]]


@asynccontextmanager
async def requests(options: Options) -> AsyncIterator[Request]:
    """Yield a request: send a message to a queue of its own, await acceptance, receive, accept."""
    async with connected(options, address="healthy", lines=[]) as peer:
        await peer.open()
        session = await peer.begin()
        sender, receiver = await session.attach_sender(), await session.attach_receiver()
        receiver.grant(CREDIT)
        payload = message(BODY)

        async def once() -> None:
            await sender.credit()
            await _there_and_back(peer, sender, receiver, payload=payload)
            if receiver.link_credit < CREDIT // 2:
                receiver.grant(CREDIT)

        yield once


async def _there_and_back(
    peer: Conversation, sender: Sender, receiver: Receiver, *, payload: bytes
) -> None:
    sender.transfer(payload)
    is_accepted = is_received = False
    while not (is_accepted and is_received):
        came = await peer.receive()
        if isinstance(came.body, Transfer):
            receiver.settle(came.body)
            is_received = True
        elif isinstance(came.body, Disposition) and isinstance(came.body.state, Accepted):
            is_accepted = True
        elif not isinstance(came.body, Flow):
            raise Failed("the message and its outcome", described(came.raw))


@asynccontextmanager
async def logins(options: Options) -> AsyncIterator[Request]:
    """Yield a request: connect, log in with the right password, and hang up."""

    async def once() -> None:
        async with connected(options, address="login", lines=[]) as peer:
            await peer.login()

    yield once


@asynccontextmanager
async def logins_over_tls(options: Options) -> AsyncIterator[Request]:
    """Yield the request of `logins` over TLS; the certificate is of this run, and not checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with logins(replace(options, context=context)) as once:
        yield once


@asynccontextmanager
async def gets(options: Options) -> AsyncIterator[Request]:
    """Yield a request: connect, GET /livez, and read the answer."""

    async def once() -> None:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(options.host, options.port)
            try:
                writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = await reader.read()
            finally:
                writer.close()
            if not answer.startswith(OK):
                raise Failed("200", answer[:40].decode(errors="replace") or "the end of the stream")

    yield once


PROBES: Final[dict[str, Callable[[Options], AbstractAsyncContextManager[Request]]]] = {
    "request": requests,
    "login": logins,
    "tls": logins_over_tls,
    "http": gets,
}


def tell(began_s: float, error: str = "") -> None:
    """Print a sample."""
    took_ms = (time.monotonic() - began_s) * 1000
    print(json.dumps([began_s, took_ms, error]), flush=True)


async def one(request: Request) -> None:
    """Make a request, and print its sample."""
    began_s = time.monotonic()
    try:
        await request()
    except (Failed, OSError, TimeoutError) as error:
        tell(began_s, f"{type(error).__name__}: {error}")
    except asyncio.CancelledError:
        tell(began_s)
        raise
    else:
        tell(began_s)


async def run(kind: str, options: Options) -> None:
    """Make requests until standard input ends."""
    told_to_end = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    async with PROBES[kind](options) as request:
        while not told_to_end.done():
            due_s = time.monotonic() + EVERY_MS[kind] / 1000
            now = asyncio.create_task(one(request))
            await asyncio.wait({now, told_to_end}, return_when=asyncio.FIRST_COMPLETED)
            if not now.done():  # printed with the time that it has taken so far
                now.cancel()
                with suppress(asyncio.CancelledError):
                    await now
            left_s = due_s - time.monotonic()
            if left_s > 0 and not told_to_end.done():
                await asyncio.wait({told_to_end}, timeout=left_s)


def main() -> None:
    """Run the healthy client that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.probes", description=__doc__)
    parser.add_argument("kind", choices=PROBES)
    parser.add_argument("port", type=int)
    parser.add_argument("--with-user", action="store_true", help=f"log in as {USER}")
    asked = parser.parse_args()
    user, password = (USER, PASSWORD) if asked.with_user else (None, None)
    options = Options(
        host="127.0.0.1", port=asked.port, user=user, password=password, timeout_s=PATIENCE_S
    )
    asyncio.run(run(asked.kind, options))


if __name__ == "__main__":
    main()
