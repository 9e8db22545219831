"""Says why a TLS handshake failed: a reason of a closed set, to count by, and words for the log."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

DETAIL_MAX: Final = 200
"""Maximum characters of OpenSSL's own words in a failure."""


class FailureReason(StrEnum):
    """Why a connection to a TLS port ended before its handshake did."""

    CLOSED = "closed"
    TIMEOUT = "timeout"
    NOT_TLS = "not-tls"
    VERSION = "version"
    CIPHER = "cipher"
    NO_CERTIFICATE = "no-certificate"
    CERTIFICATE = "certificate"
    ALERT = "alert"
    STALE = "stale"
    PROTOCOL = "protocol"
    REFUSED = "refused"
    STOPPED = "stopped"


ADVICE: Final = {
    FailureReason.CLOSED: "the client closed the connection",
    FailureReason.TIMEOUT: "the handshake took too long",
    FailureReason.NOT_TLS: "the client does not speak TLS: its URL should begin with amqps, wss or"
    " https, or use the other port",
    FailureReason.VERSION: "the client offers no version of TLS that the setting minimum allows",
    FailureReason.CIPHER: "client and broker have no cipher in common",
    FailureReason.NO_CERTIFICATE: "the client sent no certificate, and client_certificates ="
    ' "require"',
    FailureReason.CERTIFICATE: "the client's certificate was refused: compare it with client_ca"
    " and crl",
    FailureReason.ALERT: "the client refused; often it does not trust the broker's certificate",
    FailureReason.STALE: "the TLS settings or files changed meanwhile; the client may try again",
    FailureReason.PROTOCOL: "the client broke the TLS protocol",
    FailureReason.REFUSED: "too many handshakes at once, most of them of this source",
    FailureReason.STOPPED: "the listener stopped",
}
"""An explanation of each reason, for operators."""

BY_OPENSSL: Final = {
    "WRONG_VERSION_NUMBER": FailureReason.NOT_TLS,
    "HTTP_REQUEST": FailureReason.NOT_TLS,
    "HTTPS_PROXY_REQUEST": FailureReason.NOT_TLS,
    "UNKNOWN_PROTOCOL": FailureReason.NOT_TLS,
    "UNSUPPORTED_PROTOCOL": FailureReason.VERSION,
    "VERSION_TOO_LOW": FailureReason.VERSION,
    "NO_SHARED_CIPHER": FailureReason.CIPHER,
    "NO_SUITABLE_SIGNATURE_ALGORITHM": FailureReason.CIPHER,
    "NO_SUITABLE_KEY_SHARE": FailureReason.CIPHER,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": FailureReason.NO_CERTIFICATE,
    # the callback of `TlsContexts` has refused
    "CALLBACK_FAILED": FailureReason.STALE,
    "CERTIFICATE_VERIFY_FAILED": FailureReason.CERTIFICATE,
    "UNEXPECTED_EOF_WHILE_READING": FailureReason.CLOSED,
}
"""OpenSSL's reasons of a server's failed handshakes; others are of the protocol."""


@dataclass(frozen=True)
class HandshakeFailure:
    """A connection from `host` that ended before its handshake did; `detail` may be empty."""

    reason: FailureReason
    host: str
    detail: str = ""

    def text(self) -> str:
        """Return what happened and what to do, for the log."""
        said = f" ({self.detail})" if self.detail else ""
        return f"TLS handshake with {self.host} failed: {ADVICE[self.reason]}{said}"


def failure_of(error: OSError, host: str) -> HandshakeFailure:
    """Return the failure that the event loop reported as `error`."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _failure(FailureReason.CERTIFICATE, host, error.verify_message)
    if isinstance(error, ssl.SSLError):
        # the type says str, but errors outside OpenSSL have none
        name: str | None = error.reason
        if name is not None and "_ALERT_" in name:
            return _failure(FailureReason.ALERT, host, _words(name.partition("_ALERT_")[2]))
        reason = BY_OPENSSL.get(name or "", FailureReason.PROTOCOL)
        return _failure(reason, host, _words(name or str(error)))
    if isinstance(error, ConnectionAbortedError):  # how both loops report their time-out
        return HandshakeFailure(FailureReason.TIMEOUT, host)
    return _failure(FailureReason.CLOSED, host, error.strerror or "")


def _failure(reason: FailureReason, host: str, detail: str) -> HandshakeFailure:
    return HandshakeFailure(reason, host, detail[:DETAIL_MAX])


def _words(name: str) -> str:
    return name.replace("_", " ").lower()
