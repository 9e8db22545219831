"""The name in a client's certificate that stands for a user (setting `user_from`)."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Mapping
from typing import Any, Final, cast

from broker.tls_settings import UserSource

FINGERPRINT: Final = "fingerprint"
COMMON_NAME: Final = "subject:CN"
ALTERNATIVES: Final = {"san:email": "email", "san:uri": "URI", "san:dns": "DNS"}
"""How `ssl` calls the kinds of names in the extension subjectAltName, by `user_from`."""


class CertificateContext(ssl.SSLContext):
    """The context of one certificate, which takes the place of the front in a handshake.

    `user_from` chooses the name in a client's certificate that stands for a user. It belongs to the
    authorities that the client was verified by, and so stays as it was when the settings change.
    """

    user_from: UserSource | None = None


def certificate_name(encrypted: ssl.SSLObject | None) -> str:
    """Return the name that stands for a user; empty without TLS, certificate or such a name.

    Its kind is that of the settings by which the client was verified.

    A certificate with several names of that kind has none: it must not stand for several users.
    The values are those that OpenSSL has decoded, never a printed subject: `/` or `,` in a value
    adds no name.
    """
    context = None if encrypted is None else encrypted.context
    if encrypted is None or not isinstance(context, CertificateContext):
        return ""
    user_from = context.user_from
    if user_from is None:
        return ""
    if user_from == FINGERPRINT:
        der = encrypted.getpeercert(binary_form=True)
        return hashlib.sha256(der).hexdigest() if der else ""
    # names and values are pairs of strings, which the declared type does not say
    shown = cast(Mapping[str, Any], encrypted.getpeercert() or {})
    found = _names(shown, user_from)
    return found[0] if len(found) == 1 else ""


def _names(shown: Mapping[str, Any], kind: str) -> list[str]:
    if kind == COMMON_NAME:
        parts = [pair for attributes in shown.get("subject", ()) for pair in attributes]
        return [value for name, value in parts if name == "commonName"]
    wanted = ALTERNATIVES[kind]
    return [value for name, value in shown.get("subjectAltName", ()) if name == wanted]
