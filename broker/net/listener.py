"""The sockets on which the broker accepts AMQP connections."""

import asyncio
import socket
from typing import Final

from broker.links.container import Container
from broker.net.loop_timer import LoopTimer
from broker.net.socket_protocol import SocketProtocol

CUT_OFF_S: Final = 1.0
"""Maximum seconds that aborted transports take to close; it takes them one turn of the loop."""

BACKLOG: Final = 4096
"""Connections that may wait in the kernel: a fleet of clients reconnects all at once."""


class Listener:
    """A TCP listener of one container. `stall_timeout_ms` applies to new connections."""

    def __init__(self, container: Container, *, stall_timeout_ms: int) -> None:
        self._container = container
        self.stall_timeout_ms = stall_timeout_ms
        self._server: asyncio.Server | None = None
        self._timer: LoopTimer | None = None
        self._pumps: set[SocketProtocol] = set()

    async def listen(self, host: str, port: int) -> int:
        """Accept connections on `host`. Return the port in use, which the kernel chooses for 0."""
        loop = asyncio.get_running_loop()
        self._timer = LoopTimer(self._container, loop)
        self._server = await loop.create_server(
            lambda: SocketProtocol(
                self._container, self._pumps, stall_timeout_ms=self.stall_timeout_ms
            ),
            host,
            port,
            backlog=BACKLOG,
            family=socket.AF_UNSPEC,
        )
        name = self._server.sockets[0].getsockname()
        return int(name[1])

    def stop_accepting(self) -> None:
        """Refuse new connections; open ones stay."""
        if self._server is not None:
            self._server.close()

    def drop_connections(self) -> int:
        """Cut off every connection at once, as a failing network does. Return their number."""
        pumps = list(self._pumps)
        for pump in pumps:
            pump.cut()
        return len(pumps)

    async def close(self, patience_s: float) -> None:
        """Wait `patience_s` for clients to leave, and cut off the rest. No timer fires later."""
        self.stop_accepting()
        waited = await self._until_gone(patience_s)
        for pump in list(self._pumps):
            pump.abort()
        if not waited:
            await self._until_gone(CUT_OFF_S)
        if self._timer is not None:
            self._timer.close()

    async def _until_gone(self, patience_s: float) -> bool:
        """Return whether all connections have ended within `patience_s`."""
        gone = [pump.gone() for pump in self._pumps]
        if not gone:
            return True
        _, left = await asyncio.wait(gone, timeout=patience_s)
        return not left
