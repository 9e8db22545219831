"""The TLS context that a listener hands to the event loop.

It carries what a connection keeps from its first context: verify mode, verify flags, versions,
options. Its callback then puts a context with the certificate in its place.

It also sends the alert of a failed handshake. asyncio and uvloop drop what OpenSSL has written
when a handshake fails, so that a client would see the connection end for no reason.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from broker.tls_settings import UserSource

ACCEPTED: Final[ContextVar[socket.socket | None]] = ContextVar("ACCEPTED", default=None)
"""The socket whose handshake the current task performs; the alert is written to it."""


class AlertingObject(ssl.SSLObject):
    """The TLS state of one connection."""

    _send_alert: Callable[[], None] | None = None

    def alert_to(self, accepted: socket.socket, outgoing: ssl.MemoryBIO) -> None:
        """Write what is in `outgoing` to `accepted` if the handshake fails."""

        def send() -> None:
            # a client that reads nothing has a full buffer: it loses the alert
            with contextlib.suppress(OSError):
                accepted.send(outgoing.read())

        self._send_alert = send

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self._send_alert is not None:
                self._send_alert()
            raise
        self._send_alert = None


class CertificateContext(ssl.SSLContext):
    """The context of one certificate, which takes the place of the front in a handshake.

    `user_from` chooses the name in a client's certificate that stands for a user. It belongs to the
    authorities that the client was verified by, and so stays as it was when the settings change.
    """

    user_from: UserSource | None = None


class FrontContext(ssl.SSLContext):
    """A server's context whose connections send alerts, for tasks that have set ACCEPTED."""

    sslobject_class = AlertingObject

    def wrap_bio(  # type: ignore[override] # both loops name the last two
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,  # noqa: FBT001, FBT002 - as in SSLContext
        *,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        accepted = ACCEPTED.get()
        if accepted is not None and isinstance(made, AlertingObject):
            made.alert_to(accepted, outgoing)
        return made
