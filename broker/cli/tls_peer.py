"""Looks at the TLS of a broker: its certificate, and whether a client accepts it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from broker.amqp.frames import SASL_HEADER
from broker.cli.client_tls import WRONG_NAME, ClientTls, handshake_failure
from broker.net.certificate_facts import (
    WARNING_DAYS,
    CertificateFacts,
    client_trusting,
    facts_of,
    time_text,
)

NOT_TO_BE_READ: Final = "it cannot be read"


class UnreachableError(Exception):
    """There is no TLS to look at; the text says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class PeerReport:
    """The TLS of a broker. A text that is empty means that nothing is wrong."""

    place: str
    protocol: str
    cipher: str
    speaks: str
    facts: CertificateFacts | None
    distrust: str
    wrong_name: str
    refusal: str

    def problems(self) -> list[str]:
        """Return why a client cannot use the broker; empty if it can."""
        return [text for text in (self.distrust, self.wrong_name, self.refusal) if text]

    def record(self, now_s: float) -> dict[str, object]:
        """Return the report for print and JSON, with the days left at `now_s` (s since 1970)."""
        facts = self.facts
        return {
            "broker": self.place,
            "protocol": self.protocol,
            "cipher": self.cipher,
            "speaks": self.speaks,
            "subject": NOT_TO_BE_READ if facts is None else facts.subject,
            "names": [] if facts is None else list(facts.names),
            "issuer": NOT_TO_BE_READ if facts is None else facts.issuer,
            "valid_from": None if facts is None else time_text(facts.begin_s),
            "valid_to": None if facts is None else time_text(facts.end_s),
            "days_left": None if facts is None else facts.days_left(now_s),
            "trusted": not self.distrust,
            "name_fits": not self.wrong_name,
        }

    def warning(self, now_s: float) -> str:
        """Return a warning that the certificate ends soon; empty if there is none to give."""
        days = WARNING_DAYS if self.facts is None else self.facts.days_left(now_s)
        if not 0 <= days < WARNING_DAYS:
            return ""
        return f"its certificate ends soon, days left {days}: the broker needs a new one"


class TlsPeer:
    """A broker at a host and port, and the files with which a client connects to it."""

    def __init__(self, host: str, port: int, tls: ClientTls, *, timeout_s: float) -> None:
        self._host: Final = host
        self._port: Final = port
        self._tls: Final = tls
        self._timeout_s: Final = timeout_s

    def report(self) -> PeerReport:
        """Connect as a client does, and again to find out what is wrong, if anything is.

        Raise UnreachableError without a handshake, ClientTlsError if a file cannot be used.
        """
        try:
            try:
                with self._connected(self._tls.context()) as sound:
                    return self._told(sound, facts_of(sound), distrust="", wrong_name="")
            except ssl.SSLCertVerificationError:
                return self._examined()
        except ssl.SSLError as error:
            raise UnreachableError(self._why(error)) from None
        except TimeoutError:
            raise UnreachableError(f"no answer within {self._timeout_s:g} s") from None
        except OSError as error:
            raise UnreachableError(error.strerror or str(error)) from None

    def _examined(self) -> PeerReport:
        """Return what is wrong with a certificate that a client refuses."""
        distrust = self._refusal_of(self._unnamed(self._tls.context()))
        blind = self._unnamed(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        blind.verify_mode = ssl.CERT_NONE
        self._tls.show_in(blind)
        with self._connected(blind) as unread:
            leaf = unread.getpeercert(binary_form=True) or b""
        reading = client_trusting(leaf)
        self._tls.show_in(reading)
        reading.check_hostname = True
        try:
            with self._connected(reading) as fitting:
                return self._told(fitting, facts_of(fitting), distrust=distrust, wrong_name="")
        except ssl.SSLCertVerificationError as error:
            wrong_name = self._why(error) if error.verify_code in WRONG_NAME else ""
        context = self._unnamed(reading) if wrong_name else blind
        with self._connected(context) as other:
            facts = facts_of(other) if wrong_name else None
            return self._told(other, facts, distrust=distrust, wrong_name=wrong_name)

    def _unnamed(self, context: ssl.SSLContext) -> ssl.SSLContext:
        """Return `context`, which compares no host name any more."""
        context.check_hostname = False
        return context

    def _refusal_of(self, context: ssl.SSLContext) -> str:
        """Return why a client with `context` refuses the certificate; empty if it does not."""
        try:
            with self._connected(context):
                return ""
        except ssl.SSLCertVerificationError as error:
            return self._why(error)

    @contextmanager
    def _connected(self, context: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
        """Connect, and perform a handshake, for the block. Raise OSError."""
        with (
            socket.create_connection((self._host, self._port), self._timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=self._host) as encrypted,
        ):
            yield encrypted

    def _told(
        self,
        connection: ssl.SSLSocket,
        facts: CertificateFacts | None,
        *,
        distrust: str,
        wrong_name: str,
    ) -> PeerReport:
        """Return the report of an open connection, after the broker has answered on it."""
        refusal = ""
        try:
            speaks = self._first_answer(connection)
        except ssl.SSLError as error:  # with TLS 1.3 a client is refused by the first answer
            speaks, refusal = "", self._why(error)
        cipher = connection.cipher()
        return PeerReport(
            place=f"{self._host}:{self._port}",
            protocol=connection.version() or "",
            cipher=cipher[0] if cipher is not None else "",
            speaks=speaks,
            facts=facts,
            distrust=distrust,
            wrong_name=wrong_name,
            refusal=refusal,
        )

    def _first_answer(self, connection: ssl.SSLSocket) -> str:
        """Return the protocol in which the other side answers the header of AMQP's SASL."""
        try:
            connection.sendall(SASL_HEADER)
            answer = connection.recv(len(SASL_HEADER))
        except TimeoutError:
            return f"no AMQP: no answer within {self._timeout_s:g} s"
        except ConnectionError:
            answer = b""
        if answer == SASL_HEADER:
            return "AMQP 1.0"
        if answer.startswith(b"HTTP"):
            return "HTTP"
        return "no AMQP" if answer else "no AMQP: it ends the connection"

    def _why(self, error: ssl.SSLError) -> str:
        return handshake_failure(error, self._host, self._tls)
