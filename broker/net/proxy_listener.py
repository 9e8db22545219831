"""A listener without TLS whose clients come through proxies."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Final

from broker.links.container import Container
from broker.listener_settings import ListenerSettings
from broker.net.listener import BACKLOG, Listener
from broker.net.proxy_acceptor import ProxyAcceptor
from broker.net.proxy_header import ClientAddress
from broker.net.socket_protocol import SocketProtocol

MakeProtocol = Callable[[], SocketProtocol]


def maker_for(make_protocol: MakeProtocol, client: ClientAddress | None) -> MakeProtocol:
    """Return what makes the protocol of a connection whose client has the address `client`."""

    def make() -> SocketProtocol:
        made = make_protocol()
        made.client = client
        return made

    return make


class ProxyListener(Listener):
    """A listener without TLS whose clients come through proxies."""

    def __init__(self, settings: ListenerSettings, container: Container) -> None:
        super().__init__(settings)
        self._proxies: Final = ProxyAcceptor(settings, container, self._connect)
        self._make_protocol: MakeProtocol | None = None
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    async def _listen(self, make_protocol: MakeProtocol) -> int:
        self._make_protocol = make_protocol
        return await self._proxies.listen(self.settings.bind, self.port, backlog=BACKLOG)

    def _connect(self, accepted: socket.socket, _host: str, client: ClientAddress | None) -> None:
        assert self._make_protocol is not None
        make = maker_for(self._make_protocol, client)
        task = asyncio.get_running_loop().create_task(_open(accepted, make))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop_accepting(self) -> None:
        self._proxies.stop_accepting()

    async def ended(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _open(accepted: socket.socket, make_protocol: MakeProtocol) -> None:
    with contextlib.suppress(OSError):  # the client is gone
        await asyncio.get_running_loop().connect_accepted_socket(make_protocol, accepted)
