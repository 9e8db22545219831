"""Advice for a job that a broker does not let in, which Proton's own words do not give."""

from __future__ import annotations

import re
from typing import Final

from proton import SASL

from pyspark_amqp.options import Options

_REFUSED: Final = re.compile(r"Authentication failed \[mech=(?P<mechanism>[\w-]+)\]")

_NOTHING_IN_COMMON: Final = "none"
"""Proton's name of the mechanism if it knows none of those that the broker lists."""

UNTRUSTED: Final = "certificate verify failed"
"""OpenSSL's words for a server that it does not trust."""

NO_LOGIN: Final = (
    "the broker wants a login: give username and password, username and tokenFile, or a client"
    " certificate (tls.certFile) that stands for a user"
)
NO_MECHANISM: Final = (
    "the broker lists no mechanism that this client knows and has the login for. Without {lacks}it"
    " knows PLAIN (a password or token), EXTERNAL (a client certificate) and ANONYMOUS. jms-broker"
    " lists PLAIN to clients with TLS (amqps://) and on its own machine, to others only with its"
    ' setting plain = "always"; and EXTERNAL if the certificate stands for a user'
)
WRONG_LOGIN: Final = "the {what} is wrong, or has come too soon after failed logins"
NOT_TRUSTED: Final = (
    "the option tls.caFile must name the authority that signed the broker's certificate, and the"
    " url must name the broker as that certificate does: by a host name, not by an address"
)


def hint_on(text: str, options: Options) -> str:
    """Return what to do about the failure `text` of a connection, behind a colon; or nothing."""
    if UNTRUSTED in text:
        return f": {NOT_TRUSTED}"
    refused = _REFUSED.search(text)
    if refused is None:
        return ""
    if refused["mechanism"] != _NOTHING_IN_COMMON:
        return f": {WRONG_LOGIN.format(what=_credential(refused['mechanism'], options))}"
    if not _has_login(options):
        return f": {NO_LOGIN}"
    lacks = "" if SASL.extended() else "SCRAM, which python-qpid-proton from PyPI has not, "
    return f": {NO_MECHANISM.format(lacks=lacks)}"


def _has_login(options: Options) -> bool:
    names = ("username", "tls.certFile", "saslMechanism")
    in_url = any("@" in url for url in options.urls)
    return in_url or any(options.text(name) is not None for name in names)


def _credential(mechanism: str, options: Options) -> str:
    if mechanism == "EXTERNAL":
        return "user of the certificate"
    return "token" if options.text("tokenFile") is not None else "name or the password"
