"""The facts of a certificate for people: names, issuer, dates; and a client that reads them.

The standard library shows the fields of verified certificates only. So the client trusts the one
certificate that it wants to read.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from broker.net.certificate_dates import DAY_S

NO_CHECK_TIME: Final = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which `ssl` does not name."""

WARNING_DAYS: Final = 30
"""With fewer days of validity left, there is a warning."""

SHORT: Final = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "stateOrProvinceName": "ST",
    "localityName": "L",
}
"""The usual short names of the attributes of a subject."""


@dataclass(frozen=True, kw_only=True)
class CertificateFacts:
    """A certificate: `names` are host names and addresses, times are in s since 1970."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    begin_s: float
    end_s: float

    def days_left(self, now_s: float) -> int:
        """Return the whole days of validity that are left; less than 0 past the end."""
        return days_left(self.end_s, now_s)


def days_left(end_s: float, now_s: float) -> int:
    """Return the whole days from one time to another, both in s since 1970."""
    return int((end_s - now_s) // DAY_S)


def time_text(at_s: float) -> str:
    """Return a time in s since 1970 for people to read."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def client_trusting(anchor_der: bytes) -> ssl.SSLContext:
    """Return a client that trusts one certificate alone, at any time; it compares no host name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags = ssl.VerifyFlags(context.verify_flags | NO_CHECK_TIME)
    context.load_verify_locations(cadata=anchor_der)
    return context


def facts_of(connection: ssl.SSLObject | ssl.SSLSocket) -> CertificateFacts:
    """Return the facts of the certificate of the other side, which must have been verified."""
    # names and values are pairs of strings, which the declared type does not say
    shown = cast(Mapping[str, Any], connection.getpeercert() or {})
    return CertificateFacts(
        subject=_text(shown["subject"]),
        issuer=_text(shown["issuer"]),
        names=tuple(
            value
            for kind, value in shown.get("subjectAltName", ())
            if kind in ("DNS", "IP Address")
        ),
        begin_s=ssl.cert_time_to_seconds(shown["notBefore"]),
        end_s=ssl.cert_time_to_seconds(shown["notAfter"]),
    )


def _text(name: tuple[tuple[tuple[str, str], ...], ...]) -> str:
    pairs = [pair for attributes in name for pair in attributes]
    return ", ".join(f"{SHORT.get(kind, kind)}={value}" for kind, value in pairs)
