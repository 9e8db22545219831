"""The TLS of one listener: certificates that follow their files, and its failed handshakes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from broker.audit.record import DONE, FAILED, AuditEvent
from broker.links.container import Container
from broker.log_events import CERTIFICATE_ENDS, CERTIFICATES_REFUSED, CERTIFICATES_USED
from broker.net.acceptor import Acceptor
from broker.net.handshake_log import HandshakeLog
from broker.net.listener import PreparedListener
from broker.net.tls import TlsContexts
from broker.tls_settings import TlsSettings


class WatchedTls:
    """The TLS of the listener `name`. Raise TlsError if its certificates cannot be used.

    `place` is the table of the settings, as errors name it.
    """

    def __init__(self, name: str, tls: TlsSettings, container: Container, *, place: str) -> None:
        self.contexts: Final = TlsContexts(tls, place=place)
        self._name: Final = name
        self._container: Final = container
        self._failures: Final = HandshakeLog(name, container)

    def acceptor(self, make_protocol: Callable[[], asyncio.BaseProtocol]) -> Acceptor:
        """Return a new acceptor with these certificates, whose failures are counted and logged."""
        return Acceptor(
            self.contexts,
            make_protocol,
            on_failure=self._failures.note,
            took=self._container.stats.measured.handshake_us,
        )

    def prepare(self, tls: TlsSettings) -> PreparedListener:
        """Return what puts `tls` into force. Raise TlsError if a file of it cannot be used."""
        prepared = self.contexts.prepared(tls)

        def adopt() -> None:
            if self.contexts.adopt(prepared):
                self._tell_used()

        return PreparedListener(self._name, adopt, self.contexts.difference(prepared))

    def _tell_used(self) -> None:
        """Report that new files are in use, with the facts of the certificates."""
        self._record(None)
        text = f"listener {self._name}: new certificates are in use: {self.contexts.facts()}"
        self._container.watcher.noticed(CERTIFICATES_USED.notice(text))

    def _record(self, refusal: str | None) -> None:
        """Record in the audit that certificates were replaced, or why they were not."""
        facts = {"certificates": self.contexts.facts()}
        self._container.audit.record(
            AuditEvent(
                action="tls.reloaded" if refusal is None else "tls.failed",
                resource=f"connection:{self._name}",
                result=DONE if refusal is None else FAILED,
                after=facts if refusal is None else {"reason": refusal},
            )
        )

    def watch(self) -> None:
        """Use changed certificates, and report those that are about to end."""
        watcher = self._container.watcher
        if self.contexts.changed():
            refusal = self.contexts.reload()
            if refusal is None:
                self._tell_used()
            else:
                self._record(refusal)
                watcher.noticed(
                    CERTIFICATES_REFUSED.notice(f"the former certificates stay in use: {refusal}")
                )
        ends = [file.end_s for file in self.contexts.dated()]
        self._container.stats.listener(self._name).certificate_end_s = min(ends, default=0.0)
        for warning in self.contexts.warnings(self._container.clock.wall_ms() / 1000):
            watcher.noticed(CERTIFICATE_ENDS.notice(warning))
