"""The reason why python-qpid-proton could not connect, found by a connection without it.

Proton tells neither why a certificate is refused nor which mechanisms the broker offers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.amqp.errors import ConnectionFault
from broker.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN
from broker.cli.broker_url import split_url
from broker.cli.client_tls import handshake_failure
from broker.cli.wire import Unhealthy, Wire

if TYPE_CHECKING:
    from urllib.parse import SplitResult

    from broker.cli.client_tls import ClientTls

NO_MECHANISM: Final = "[mech=none]"
"""The part of Proton's text that tells that no offered mechanism fits."""

HANDSHAKE_FAILED: Final = "SSL Failure"
NO_HEADER: Final = "no protocol header found"

PROBE_TIMEOUT_MAX_S: Final = 5.0
"""Maximum seconds that the search for the reason adds to a failed command."""


def why_refused(url: str, told: str, timeout_s: float, *, tls: ClientTls | None) -> str | None:
    """Return why a connection to `url` failed with Proton's text `told`, and what to do.

    None if nothing more is known. `tls` is None for amqp://. Takes at most `timeout_s` seconds.
    """
    parts = split_url(url)
    if tls is None and NO_HEADER in told:
        return f"{told}. If TLS is spoken at this port, write amqps://"
    if NO_MECHANISM not in told and HANDSHAKE_FAILED not in told:
        return None
    try:
        with Wire.to(url, min(timeout_s, PROBE_TIMEOUT_MAX_S), tls) as wire:
            offered = wire.mechanisms()
    except (OSError, ConnectionFault, Unhealthy) as error:
        return _of_handshake(error, parts, tls)
    if NO_MECHANISM in told:
        return f"amqp:unauthorized-access: {_of_login(parts, offered, tls)}"
    return (
        f"python-qpid-proton compares the certificate with host names only, and {parts.hostname}"
        " is none: connect by a name that is in the certificate"
    )


def _of_handshake(error: Exception, parts: SplitResult, tls: ClientTls | None) -> str | None:
    """Return what an error of TLS means, None for another error."""
    import ssl

    if tls is None or not isinstance(error, ssl.SSLError):
        return None
    return handshake_failure(error, parts.hostname or "", tls)


def _of_login(parts: SplitResult, offered: list[str], tls: ClientTls | None) -> str:
    """Return why no mechanism of `offered` fits, and what to do."""
    names = ", ".join(offered)
    if not parts.username and tls is not None and tls.cert is not None:
        return (
            f"the broker knows no user for the certificate {tls.cert} (it offers {names}): an"
            " administrator gives the name in the certificate to one with"
            " `jms-broker user add NAME --certificate`"
        )
    if not parts.username and ANONYMOUS not in offered:
        return f"the broker demands a login (it offers {names}): name a user and its password"
    if parts.username and PLAIN not in offered:
        return (
            f"the broker offers {names} here, and python-qpid-proton can only do {PLAIN},"
            f" {EXTERNAL} and {ANONYMOUS}: use amqps://, where brokers offer {PLAIN}, or log in"
            ' with a certificate (--cert), or set plain = "always" in the broker, which lets the'
            " passwords cross the network"
        )
    return f"no mechanism of the broker fits (it offers {names})"
