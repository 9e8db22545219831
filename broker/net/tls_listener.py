"""A listener whose clients speak TLS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker.links.container import Container
from broker.listener_settings import ListenerSettings
from broker.net.acceptor import Acceptor
from broker.net.listener import BACKLOG, Listener
from broker.net.socket_protocol import SocketProtocol
from broker.net.watched_tls import WatchedTls
from broker.tls_settings import TlsSettings


class TlsListener(Listener):
    """A listener whose clients speak TLS. Raise TlsError if its certificates cannot be used."""

    def __init__(self, settings: ListenerSettings, tls: TlsSettings, container: Container) -> None:
        super().__init__(settings)
        place = f"listener {settings.name}: tls"
        self._tls: Final = WatchedTls(settings.name, tls, container, place=place)
        self._acceptor: Acceptor | None = None

    async def _listen(self, make_protocol: Callable[[], SocketProtocol]) -> int:
        self._acceptor = self._tls.acceptor(make_protocol)
        return await self._acceptor.listen(self.settings.bind, self.port, backlog=BACKLOG)

    async def ended(self) -> None:
        if self._acceptor is not None:
            await self._acceptor.ended()

    def reload_tls(self) -> str | None:
        return self._tls.reload()

    def watch_tls(self) -> None:
        self._tls.watch()

    def stop_accepting(self) -> None:
        if self._acceptor is not None:
            self._acceptor.stop_accepting()
