"""Attacks by connections that never log in, from many addresses of this machine."""

from __future__ import annotations

import asyncio
from typing import Final

from broker.amqp.frames import SASL_HEADER
from tests.attacks.flooding import linger
from tests.attacks.plan import Deadline, Reached, Site

OF_A_SOURCE: Final = 50
"""Connections from one address: half of those that unauthenticated_source_max allows."""

SOURCES_OF_A_NET: Final = 250
CONNECTING_AT_ONCE: Final = 200
FRAME: Final = 8192
"""The size of the largest frame before the login."""

HALF_A_LOGIN: Final = SASL_HEADER + FRAME.to_bytes(4) + b"\x02\x01\0\0" + bytes(FRAME - 100)
"""Nearly all of a frame, which the broker keeps until the rest arrives."""

RETRY_S: Final = 0.2
CONNECTED_S: Final = 60.0
"""Maximum seconds until all connections are open; the attack lasts `seconds` from then on."""


async def silent_1000(site: Site) -> Reached:
    """Keep a thousand connections open that do not log in."""
    return await _silent(site, 1000)


async def silent_5000(site: Site) -> Reached:
    """Keep as many open as the setting unauthenticated_max allows."""
    return await _silent(site, 5000)


class Crowd:
    """The connections that are open now, the most that ever were, and those that were closed."""

    def __init__(self) -> None:
        self.open = 0
        self.most = 0
        self.closed = 0
        self.connecting: Final = asyncio.Semaphore(CONNECTING_AT_ONCE)


class Silent(asyncio.Protocol):
    """A connection that sends `begun` and no more; `over` is set when the broker closes it."""

    def __init__(self, crowd: Crowd, begun: bytes) -> None:
        self._crowd: Final = crowd
        self._begun: Final = begun
        self.over: Final = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._crowd.open += 1
        self._crowd.most = max(self._crowd.most, self._crowd.open)
        if self._begun:
            transport.write(self._begun)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        self._crowd.open -= 1
        self.over.set()


async def _silent(site: Site, count: int) -> Reached:
    """Half of the connections send nothing, the others nearly a frame; all come back if closed."""
    crowd = Crowd()
    silent = [asyncio.create_task(_stay(site.port, number, crowd)) for number in range(count)]
    await linger(Deadline(CONNECTED_S), lambda: crowd.most == count)
    await linger(site.deadline(), lambda: False)
    for each in silent:
        each.cancel()
    await asyncio.wait(silent)
    reached = Reached(
        figures={
            "connections without a login at once": crowd.most,
            "closed by the broker": crowd.closed,
        }
    )
    reached.check(crowd.most == count, f"at most {crowd.most} of {count} were open at once")
    return reached


async def _stay(port: int, number: int, crowd: Crowd) -> None:
    """Be one of the connections, again and again, until cancelled."""
    loop = asyncio.get_running_loop()
    net, host = divmod(number // OF_A_SOURCE, SOURCES_OF_A_NET)
    source = f"127.0.{1 + net}.{1 + host}"
    begun = HALF_A_LOGIN if number % 2 else b""
    while True:
        try:
            async with crowd.connecting:
                transport, protocol = await loop.create_connection(
                    lambda: Silent(crowd, begun), "127.0.0.1", port, local_addr=(source, 0)
                )
        except OSError:  # the broker closes connections at its limit, or is busy
            await asyncio.sleep(RETRY_S)
            continue
        try:
            await protocol.over.wait()
            crowd.closed += 1
        finally:
            transport.abort()
