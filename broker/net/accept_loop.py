"""Accepts the connections of one listening address, one in each turn of the event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from broker.net.listening import listening_sockets

ACCEPT_RETRY_S: Final = 1.0
"""Seconds without accepting after the process has run out of descriptors or memory."""


class AcceptLoop:
    """The listening sockets of a host. `on_accept` gets each new socket and its peer's host."""

    def __init__(self, on_accept: Callable[[socket.socket, str], None]) -> None:
        self._on_accept: Final = on_accept
        self._listening: list[socket.socket] = []
        self._retry: asyncio.TimerHandle | None = None

    async def listen(self, host: str, port: int, *, backlog: int) -> int:
        """Accept connections on `host`. Return the port in use, which the kernel chooses for 0.

        Raises OSError if an address cannot be listened on.
        """
        self._listening = await listening_sockets(host, port, backlog=backlog)
        self._read_listening()
        return int(self._listening[0].getsockname()[1])

    def close(self) -> None:
        """Accept no more connections, and close the listening sockets."""
        loop = asyncio.get_running_loop()
        if self._retry is not None:
            self._retry.cancel()
        for listening in self._listening:
            loop.remove_reader(listening)
            listening.close()
        self._listening = []

    def _read_listening(self) -> None:
        self._retry = None
        loop = asyncio.get_running_loop()
        for listening in self._listening:
            loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        """Accept one connection: open ones are served before the loop calls this for the next."""
        try:
            accepted, address = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # the client has gone already
        except OSError as error:
            # out of descriptors or memory: the kernel keeps the connection until later
            self._pause(error)
            return
        accepted.setblocking(False)
        self._on_accept(accepted, address[0])

    def _pause(self, error: OSError) -> None:
        loop = asyncio.get_running_loop()
        for listening in self._listening:
            loop.remove_reader(listening)
        told = f"no connection is accepted for {ACCEPT_RETRY_S} s: raise the limit of open files"
        loop.call_exception_handler({"message": told, "exception": error})
        self._retry = loop.call_later(ACCEPT_RETRY_S, self._read_listening)
