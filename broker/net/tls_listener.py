"""A listener whose clients speak TLS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker.links.container import Container
from broker.listener_settings import ListenerSettings
from broker.net.acceptor import Acceptor
from broker.net.handshake_log import HandshakeLog
from broker.net.listener import BACKLOG, Listener
from broker.net.socket_protocol import SocketProtocol
from broker.net.tls import TlsContexts
from broker.tls_settings import TlsSettings


class TlsListener(Listener):
    """A listener whose clients speak TLS. Raise TlsError if its certificates cannot be used."""

    def __init__(self, settings: ListenerSettings, tls: TlsSettings, container: Container) -> None:
        super().__init__(settings)
        place = f"listener {settings.name}: tls"
        self.contexts: Final = TlsContexts(tls, place=place)
        self._container: Final = container
        self._failures: Final = HandshakeLog(settings.name, container)
        self._acceptor: Acceptor | None = None

    async def _listen(self, make_protocol: Callable[[], SocketProtocol]) -> int:
        self._acceptor = Acceptor(self.contexts, make_protocol, on_failure=self._failures.note)
        return await self._acceptor.listen(self.settings.bind, self.port, backlog=BACKLOG)

    async def ended(self) -> None:
        if self._acceptor is not None:
            await self._acceptor.ended()

    def reload_tls(self) -> str | None:
        return self.contexts.reload()

    def watch_tls(self) -> None:
        watcher = self._container.watcher
        if self.contexts.changed():
            refusal = self.contexts.reload()
            if refusal is None:
                watcher.noticed(f"listener {self.settings.name}: new certificates are in use")
            else:
                watcher.noticed(f"the former certificates stay in use: {refusal}")
        for warning in self.contexts.warnings(self._container.clock.wall_ms() / 1000):
            watcher.noticed(warning)

    def stop_accepting(self) -> None:
        if self._acceptor is not None:
            self._acceptor.stop_accepting()
