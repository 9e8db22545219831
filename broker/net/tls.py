"""TLS contexts of a listener, which can be replaced while connections are open.

Connections begin with a front context, whose callback for server names puts the context of the
current certificate in its place. OpenSSL takes the certificate, its key and the client authorities
from that second context, and everything else from the front: verify mode and flags (a revocation
list would else be ignored), versions, options, and the cache of sessions.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from broker.net.certificate_dates import DatedFile, DateWarnings
from broker.net.certificate_name import CertificateContext
from broker.net.revocation_lists import check_lists
from broker.net.tls_files import CERTIFICATE, KeyPair, TlsError, TlsFiles
from broker.net.tls_proof import handshake
from broker.tls_settings import ClientCertificates, TlsSettings

SESSIONS_MAX: Final = 16
"""Sessions in the cache of one front, before another one takes its place.

OpenSSL keeps up to 20,480 of TLS 1.2, at 12 KiB each with a client certificate, and Python cannot
turn its cache off.
"""

TICKETS: Final = 1
"""Tickets with which a client of TLS 1.3 may resume its session (RFC 8446 4.6.1).

OpenSSL would send two. Each costs a tenth of a handshake, in the event loop.
"""

VERIFY_MODES: Final[Mapping[ClientCertificates, ssl.VerifyMode]] = {
    "no": ssl.CERT_NONE,
    "ask": ssl.CERT_OPTIONAL,
    "require": ssl.CERT_REQUIRED,
}

VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, kw_only=True)
class Published:
    """The contexts in force: `first`, and those of named hosts. `since_s` is in s since 1970."""

    settings: TlsSettings
    first: ssl.SSLContext
    by_host: Mapping[str, ssl.SSLContext]
    dated: tuple[DatedFile, ...]
    since_s: float

    def facts(self) -> str:
        """Return the fingerprint, end and file of each certificate, for people.

        The log cuts long lines: a long path must not hide the fingerprint.
        """
        return "; ".join(
            f"SHA-256 {each.sha256}, ends {each.end()}, {each.path}"
            for each in self.dated
            if each.sha256
        )


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """New contexts that have proved to work, with the files that they come from."""

    files: TlsFiles
    digest: bytes
    published: Published


class TlsContexts:
    """The TLS of one listener. `place` is its table in the settings, such as `tls`.

    Raises TlsError if the files cannot be used. `wall_s` returns the time in s since 1970.
    """

    def __init__(
        self,
        settings: TlsSettings,
        *,
        place: str = "tls",
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._place: Final = place
        self._wall_s: Final = wall_s
        self._warnings: Final = DateWarnings()
        self._files = TlsFiles(settings, place)
        self._digest = self._files.digest()
        self._published = self._built(settings, self._files)
        self._front = self._new_front(settings)
        self.reloads = 0
        self.reloads_failed = 0

    def front(self) -> ssl.SSLContext:
        """Return the context with which the next connection begins; ask anew for each one.

        A listener of the event loop's own may keep one as long as it lives: its connections get
        the current certificates, too. It then keeps its verify mode, and OpenSSL's own limit of
        cached sessions.
        """
        if self._front.session_stats()["number"] >= SESSIONS_MAX:
            self._front = self._new_front(self._published.settings)
        return self._front

    def reload(self) -> str | None:
        """Build all contexts anew, and use them for new connections if all of them work.

        Return None, or the reason why the former ones stay; the same files are then not tried again
        until one changes.
        """
        digest = self._files.digest()
        try:
            prepared = self.prepared(self._published.settings)
        except TlsError as error:
            self.reloads_failed += 1
            self._digest = digest
            return str(error)
        self.adopt(prepared)
        return None

    def prepared(self, settings: TlsSettings) -> Prepared:
        """Return the contexts of `settings`, not in use yet. Raise TlsError if one does not work.

        Reads files: takes milliseconds.
        """
        files = TlsFiles(settings, self._place)
        digest = files.digest()
        return Prepared(files=files, digest=digest, published=self._built(settings, files))

    def difference(self, new: Prepared) -> str:
        """Return what is new in `new`, with the facts of each certificate."""
        facts = new.published.facts()
        if facts != self._published.facts():
            return f"new certificate: {facts}"
        if self._differs(new):
            return f"other files or settings, the certificate is the same: {facts}"
        return f"unchanged: {facts}"

    def facts(self) -> str:
        """Return the fingerprint, end and file of each certificate in force, for people."""
        return self._published.facts()

    def _differs(self, new: Prepared) -> bool:
        return new.digest != self._digest or new.published.settings != self._published.settings

    def adopt(self, new: Prepared) -> bool:
        """Use new contexts for new connections. Return whether files or settings have changed."""
        is_changed = self._differs(new)
        self._files, self._digest, self._published = new.files, new.digest, new.published
        # another front has no sessions: those of a client whose authority was removed end here
        self._front = self._new_front(new.published.settings)
        self.reloads += 1
        return is_changed

    def changed(self) -> bool:
        """Return whether a file differs from the last time it was tried. Reads all files."""
        return self._files.digest() != self._digest

    def dated(self) -> tuple[DatedFile, ...]:
        """Return the ends of validity of the certificates and the revocation list in force."""
        return self._published.dated

    def warnings(self, now_s: float) -> list[str]:
        """Return the warnings about dates that are due at `now_s` (s since 1970), each once."""
        return self._warnings.due(self._published.dated, now_s)

    def _new_front(self, settings: TlsSettings) -> ssl.SSLContext:
        front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _apply_rules(front, settings)
        front.sni_callback = self._publish
        return front

    def _publish(
        self, connection: ssl.SSLObject, name: str | None, front: ssl.SSLContext
    ) -> int | None:
        """Give a new connection the certificate for `name`. Return an alert to refuse it."""
        published = self._published
        if front.verify_mode != VERIFY_MODES[published.settings.client_certificates]:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        is_asked = front.verify_mode != ssl.CERT_NONE
        if is_asked and connection.session_reused and self._is_older(connection):
            # its certificate was verified against authorities that may have been removed; the
            # client forgets the session, and comes back without it
            return ssl.ALERT_DESCRIPTION_CERTIFICATE_UNKNOWN
        host = "" if name is None else name.lower()
        connection.context = published.by_host.get(host, published.first)
        return None

    def _is_older(self, connection: ssl.SSLObject) -> bool:
        """Return whether the session of `connection` began before the contexts in force."""
        session = connection.session
        return session is None or session.time <= self._published.since_s

    def _built(self, settings: TlsSettings, files: TlsFiles) -> Published:
        """Return new contexts that have proved to work. Raise TlsError."""
        since_s = self._wall_s()
        contexts = {host: _context(pair, settings, files) for host, pair in files.pairs.items()}
        dated = [pair.certificate.dated_certificate() for pair in files.pairs.values()]
        revoked = None if files.crl is None else files.crl.dated_crls()
        if revoked is not None:
            dated.append(revoked)
        for each in dated:
            if each.end_s <= since_s:
                raise TlsError(
                    f"{each.key} = '{each.path}': {each.content} expired on {each.end()}: replace"
                    " the file, or correct the clock of this machine"
                )
        check_lists(files)
        for host, context in contexts.items():
            _prove(context, files.pairs[host])
        return Published(
            settings=settings,
            first=contexts.pop(""),
            by_host=contexts,
            dated=tuple(dated),
            since_s=since_s,
        )


def _apply_rules(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Set what does not come from files: versions, options, whether clients are verified."""
    context.minimum_version = VERSIONS[settings.minimum]
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.verify_mode = VERIFY_MODES[settings.client_certificates]
    if settings.client_certificates == "no":
        context.num_tickets = TICKETS
    else:
        # a ticket would outlive the authority that its client was verified by
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    if settings.crl is not None:
        # an authority that another one has revoked vouches for nobody
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN


def _context(pair: KeyPair, settings: TlsSettings, files: TlsFiles) -> ssl.SSLContext:
    """Return the context of one certificate. Raise TlsError if a file cannot be used."""
    context = CertificateContext(ssl.PROTOCOL_TLS_SERVER)
    context.user_from = settings.user_from
    _apply_rules(context, settings)
    pair.certificate.blocks(CERTIFICATE)
    pair.load_into(context)
    files.load_authorities_into(context)
    return context


def _prove(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Perform a handshake with `context` in memory. Raise TlsError if it fails."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    try:
        handshake(context, client)
    except ssl.SSLError as error:
        raise pair.certificate.error(f"a handshake with it fails: {error}") from None
