"""A listener whose clients speak TLS."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.links.container import Container
from broker.listener_settings import ListenerSettings
from broker.net.acceptor import Acceptor
from broker.net.listener import BACKLOG, Listener, PreparedListener
from broker.net.socket_protocol import SocketProtocol
from broker.net.watched_tls import WatchedTls
from broker.tls_settings import TlsSettings

if TYPE_CHECKING:
    from broker.net.proxy_acceptor import HandOver, ProxyAcceptor
    from broker.net.proxy_header import ClientAddress


class TlsListener(Listener):
    """A listener whose clients speak TLS. Raise TlsError if its certificates cannot be used."""

    def __init__(self, settings: ListenerSettings, tls: TlsSettings, container: Container) -> None:
        super().__init__(settings)
        place = f"listener {settings.name}: tls"
        self._tls: Final = WatchedTls(settings.name, tls, container, place=place)
        self._container: Final = container
        self._acceptor: Acceptor | None = None
        self._proxies: ProxyAcceptor | None = None

    async def _listen(self, make_protocol: Callable[[], SocketProtocol]) -> int:
        acceptor = self._tls.acceptor(make_protocol)
        self._acceptor = acceptor
        if not self.settings.is_proxied:
            return await acceptor.listen(self.settings.bind, self.port, backlog=BACKLOG)
        # a broker without proxies is spared these modules
        from broker.net.proxy_acceptor import ProxyAcceptor

        hand_over = _hand_over(acceptor, make_protocol)
        self._proxies = ProxyAcceptor(self.settings, self._container, hand_over)
        return await self._proxies.listen(self.settings.bind, self.port, backlog=BACKLOG)

    async def ended(self) -> None:
        if self._acceptor is not None:
            await self._acceptor.ended()

    def prepare(self, settings: ListenerSettings) -> PreparedListener:
        assert settings.tls is not None, "whether a listener has TLS does not change"
        tls = self._tls.prepare(settings.tls)
        others = super().prepare(settings)

        def adopt() -> None:
            tls.adopt()
            others.adopt()

        return replace(tls, adopt=adopt)

    def watch_tls(self) -> None:
        self._tls.watch()

    def stop_accepting(self) -> None:
        if self._proxies is not None:
            self._proxies.stop_accepting()
        if self._acceptor is not None:
            self._acceptor.stop_accepting()


def _hand_over(acceptor: Acceptor, make_protocol: Callable[[], SocketProtocol]) -> HandOver:
    """Return what lets the TLS handshake follow the header of a proxy."""
    from broker.net.proxy_listener import maker_for

    def hand_over(accepted: socket.socket, host: str, client: ClientAddress | None) -> None:
        acceptor.admit(accepted, host, maker_for(make_protocol, client))

    return hand_over
