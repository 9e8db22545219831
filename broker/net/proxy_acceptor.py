"""Accepts connections that come through proxies: reads the PROXY header before everything else.

Only proxies of the settings may connect, since any other client could state a false address.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

from broker.links.container import Container
from broker.listener_settings import ListenerSettings
from broker.net.accept_loop import AcceptLoop
from broker.net.proxy_header import (
    BEGIN_BYTES,
    COUNTED_BYTES_MAX,
    ClientAddress,
    ProxyError,
    ProxyHeaderReader,
)
from broker.net.refusal_log import RefusalLog

HEADER_S: Final = 5.0
"""Maximum seconds from the begin of a connection to the end of its header."""

PENDING_MAX: Final = 5000
"""Maximum connections whose header has not arrived; the oldest gives way."""

PEEK_BYTES: Final = BEGIN_BYTES + COUNTED_BYTES_MAX
"""Bytes looked at to find the end of a header."""

HandOver = Callable[[socket.socket, str, ClientAddress | None], None]


class ProxyAcceptor:
    """The listening sockets of one listener, and its connections until their header has arrived.

    `hand_over` gets the socket, the host of the client, and the client's address as the proxy has
    stated it; None if the socket's own address counts.
    """

    def __init__(
        self, settings: ListenerSettings, container: Container, hand_over: HandOver
    ) -> None:
        self._settings: Final = settings
        self._container: Final = container
        self._hand_over: Final = hand_over
        self._accepting: Final = AcceptLoop(self._admit)
        self._pending: Final[dict[_Headless, None]] = {}
        self._refusals: Final = RefusalLog(settings.name, container)

    async def listen(self, host: str, port: int, *, backlog: int) -> int:
        """Accept connections on `host`. Return the port in use, which the kernel chooses for 0.

        Raises OSError if an address cannot be listened on.
        """
        return await self._accepting.listen(host, port, backlog=backlog)

    def pending(self) -> int:
        """Return the number of connections whose header has not arrived."""
        return len(self._pending)

    def stop_accepting(self) -> None:
        """Close the listening sockets, and the connections whose header has not arrived."""
        self._accepting.close()
        for headless in list(self._pending):
            self._release(headless)
            headless.accepted.close()

    def _admit(self, accepted: socket.socket, host: str) -> None:
        if not self._is_proxy(host):
            accepted.close()
            self._count(f"{host} is no proxy of the setting proxy_from: its connection was closed")
            return
        if len(self._pending) >= PENDING_MAX:
            oldest = next(iter(self._pending))
            self._refuse(oldest, f"more than {PENDING_MAX} connections wait for their header")
        loop = asyncio.get_running_loop()
        headless = _Headless(accepted, host)
        self._pending[headless] = None
        headless.deadline = loop.call_later(
            HEADER_S, self._refuse, headless, f"it did not arrive within {HEADER_S} s"
        )
        loop.add_reader(accepted, self._readable, headless)

    def _is_proxy(self, host: str) -> bool:
        address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._settings.proxy_from)

    def _readable(self, headless: _Headless) -> None:
        """Take what has arrived of the header, and not one byte more."""
        accepted, reader = headless.accepted, headless.reader
        try:
            present = accepted.recv(PEEK_BYTES, socket.MSG_PEEK)
            accepted.recv(reader.feed(present))
            client = self._checked(reader.client, headless.host)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            present, client = b"", None
        except ProxyError as error:
            self._refuse(headless, str(error))
            return
        if not present:
            self._left(headless)
        elif reader.is_complete:
            self._release(headless)
            self._hand_over(accepted, headless.host if client is None else client.host, client)
        else:
            headless.is_silent = False

    def _checked(self, client: ClientAddress | None, proxy: str) -> ClientAddress | None:
        """Return `client`. Raise ProxyError if it claims to be on this machine, and is not.

        PLAIN without TLS is offered to clients of this machine.
        """
        is_elsewhere = not ip_address(proxy.partition("%")[0]).is_loopback
        if client is not None and is_elsewhere and ip_address(client.host).is_loopback:
            raise ProxyError("the address in it is one of the proxy's own machine")
        return client

    def _left(self, headless: _Headless) -> None:
        if headless.is_silent:  # the proxy looks whether the port is open
            self._release(headless)
            headless.accepted.close()
        else:
            self._refuse(headless, "the proxy closed the connection in the middle of it")

    def _refuse(self, headless: _Headless, reason: str) -> None:
        self._release(headless)
        headless.accepted.close()
        self._count(
            f"connection of the proxy {headless.host} closed because of its PROXY header: {reason}"
        )

    def _count(self, text: str) -> None:
        self._container.stats.proxy_headers_refused += 1
        self._refusals.note(text)

    def _release(self, headless: _Headless) -> None:
        del self._pending[headless]
        asyncio.get_running_loop().remove_reader(headless.accepted)
        if headless.deadline is not None:
            headless.deadline.cancel()
            headless.deadline = None


class _Headless:
    """An accepted connection of the proxy `host`, whose header has not arrived."""

    __slots__ = ("accepted", "deadline", "host", "is_silent", "reader")

    def __init__(self, accepted: socket.socket, host: str) -> None:
        self.accepted = accepted
        self.host = host
        self.reader = ProxyHeaderReader()
        self.is_silent = True
        self.deadline: asyncio.TimerHandle | None = None
