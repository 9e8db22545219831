"""The sockets on which clients are awaited."""

import asyncio
import socket
from typing import Final

from broker.links.container import Container
from broker.net.loop_timer import LoopTimer
from broker.net.socket_protocol import SocketProtocol

CUT_OFF_S: Final = 1.0
"""An aborted transport takes one turn of the loop to be gone."""

BACKLOG: Final = 4096
"""Connections that the kernel may keep waiting; a fleet that reconnects comes all at once."""


class Listener:
    """A TCP listener of one container. `stall_timeout_ms` is for connections yet to come."""

    def __init__(self, container: Container, *, stall_timeout_ms: int) -> None:
        self._container = container
        self.stall_timeout_ms = stall_timeout_ms
        self._server: asyncio.Server | None = None
        self._timer: LoopTimer | None = None
        self._pumps: set[SocketProtocol] = set()

    async def listen(self, host: str, port: int) -> int:
        """Accept connections on `host`; the port in use, which `port` 0 leaves to the kernel."""
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
        """Refuse newcomers; connections that are open stay."""
        if self._server is not None:
            self._server.close()

    def drop_connections(self) -> int:
        """Cut off every connection at once, as a network that fails; how many there were."""
        pumps = list(self._pumps)
        for pump in pumps:
            pump.cut()
        return len(pumps)

    async def close(self, patience_s: float) -> None:
        """Wait so long for clients to leave, then cut off the rest. Nothing fires afterwards."""
        self.stop_accepting()
        waited = await self._until_gone(patience_s)
        for pump in list(self._pumps):
            pump.abort()
        if not waited:
            await self._until_gone(CUT_OFF_S)
        if self._timer is not None:
            self._timer.close()

    async def _until_gone(self, patience_s: float) -> bool:
        """Whether all connections have ended within the time."""
        gone = [pump.gone() for pump in self._pumps]
        if not gone:
            return True
        _, left = await asyncio.wait(gone, timeout=patience_s)
        return not left
