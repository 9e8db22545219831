"""TLS of commands that connect to a broker: --ca, --cert and --key, and why a handshake failed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.broker_url import MANAGEMENT_SCHEMES, split_url

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

AMQPS: Final = "amqps"
AMQPS_PORT: Final = 5671

TLS_SCHEMES: Final = (AMQPS, "https")

CA_VARIABLE: Final = "JMS_BROKER_CA"
CERT_VARIABLE: Final = "JMS_BROKER_CERT"
KEY_VARIABLE: Final = "JMS_BROKER_KEY"

# typer does not tell a typed option from a variable, and `chosen_tls` must
Ca = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        help="With TLS: the PEM file of the authorities that the broker's certificate may be"
        f" signed by. [env var: {CA_VARIABLE}; default: those that this machine trusts]",
        show_default=False,
    ),
]
Cert = Annotated[
    Path | None,
    typer.Option(
        "--cert",
        help="With TLS: the PEM file of the certificate to show. Without a user it also logs"
        f" in (EXTERNAL). [env var: {CERT_VARIABLE}]",
        show_default=False,
    ),
]
Key = Annotated[
    Path | None,
    typer.Option(
        "--key",
        help="The PEM file of the private key of --cert."
        f" [env var: {KEY_VARIABLE}; default: the file of --cert]",
        show_default=False,
    ),
]

CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
KEY_END: Final = b"PRIVATE KEY-----"

UNTRUSTED: Final = frozenset({2, 18, 19, 20, 21})
"""OpenSSL's codes for a chain that ends at no trusted authority (X509_V_ERR_…)."""

NOT_YET_VALID: Final = 9
EXPIRED: Final = 10
WRONG_NAME: Final = frozenset({62, 64})

NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"})
"""OpenSSL's reasons for a first answer that is no TLS record."""

ALERTS: Final = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": (
        "the broker demands a certificate of the client: give --cert and --key"
    ),
    "TLSV1_ALERT_UNKNOWN_CA": (
        "the broker does not trust the authority that signed the certificate {cert}: its setting"
        " client_ca names the file of those that it trusts"
    ),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the certificate {cert} has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the certificate {cert} has been revoked",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the broker demands a newer version of TLS",
}
"""The meaning of a broker's alert, by OpenSSL's name of it."""


class ClientTlsError(ValueError):
    """An error of the options --ca, --cert and --key; the text names the option and the file."""


@dataclass(frozen=True)
class ClientTls:
    """The files of a client: trusted authorities, its certificate, and the certificate's key."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if self.key is not None and self.cert is None:
            raise ClientTlsError(f"--key {self.key} needs --cert, the certificate of that key")

    def key_file(self) -> Path | None:
        """Return the file of the private key: the certificate's own if there is no other."""
        return self.cert if self.key is None else self.key

    def context(self) -> ssl.SSLContext:
        """Return a context with the files. Raise ClientTlsError if one of them cannot be used."""
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.ca is None:
            context.load_default_certs()
        else:
            _opened("--ca", self.ca)
            try:
                context.load_verify_locations(self.ca)
            except ssl.SSLError:
                raise ClientTlsError(
                    f"--ca {self.ca}: there is no certificate in PEM form in it"
                ) from None
        self.show_in(context)
        return context

    def show_in(self, context: ssl.SSLContext) -> None:
        """Load the certificate and its key, if any, into `context`. Raise ClientTlsError."""
        import ssl

        cert = self.cert
        if cert is None:
            return
        _opened("--cert", cert)
        option, key = ("--cert", cert) if self.key is None else ("--key", self.key)
        _opened(option, key)
        if CERTIFICATE not in cert.read_bytes():
            raise ClientTlsError(f"--cert {cert}: there is no certificate in PEM form in it")
        if KEY_END not in key.read_bytes():
            raise ClientTlsError(
                f"{option} {key}: there is no private key in PEM form in it: give the file of the"
                " certificate's key by --key"
            )
        try:
            context.load_cert_chain(cert, key, _no_password(option, key))
        except ssl.SSLError as error:
            mismatch = error.reason == "KEY_VALUES_MISMATCH"
            complaint = (
                f"the key does not belong to the certificate {cert}"
                if mismatch
                else f"OpenSSL refuses it: {error}"
            )
            raise ClientTlsError(f"{option} {key}: {complaint}") from None


def chosen_tls(
    url: str, *, ca: Path | None, cert: Path | None, key: Path | None
) -> ClientTls | None:
    """Return the TLS of a connection to `url`, None without TLS. The arguments are typed options.

    The variables of the environment replace those that were not typed: the key's only together
    with the certificate's. Without TLS they are ignored. Raise ClientTlsError for an option that
    was typed in vain, URLError if `url` names no broker.
    """
    if split_url(url, MANAGEMENT_SCHEMES).scheme not in TLS_SCHEMES:
        for name, file in (("ca", ca), ("cert", cert), ("key", key)):
            if file is not None:
                raise ClientTlsError(f"--{name} is for TLS: write amqps:// or https:// in the URL")
        return None
    if cert is None and key is None:
        cert, key = _path_in(CERT_VARIABLE), _path_in(KEY_VARIABLE)
    return ClientTls(_path_in(CA_VARIABLE) if ca is None else ca, cert, key)


def _path_in(variable: str) -> Path | None:
    """Return the path in a variable of the environment; None if it is empty or not set."""
    value = os.environ.get(variable)
    return Path(value) if value else None


def handshake_failure(error: ssl.SSLError, host: str, tls: ClientTls) -> str:
    """Return why a handshake with `host` failed, and what to do, on one line."""
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return _distrust(error, host, tls)
    if isinstance(error, ssl.SSLEOFError):  # it may have no attribute `reason`
        return "it ended the connection during the TLS handshake"
    reason = error.reason or ""
    if reason in NO_TLS:
        return "it does not speak TLS at this port: use amqp://, or the port of amqps"
    if reason in ALERTS:
        return ALERTS[reason].format(cert=tls.cert)
    return f"the TLS handshake failed: {reason.replace('_', ' ').lower() or error}"


def _distrust(error: ssl.SSLCertVerificationError, host: str, tls: ClientTls) -> str:
    """Return why the broker's certificate was not accepted, and what to do."""
    code = error.verify_code
    if code in UNTRUSTED:
        known = f"in {tls.ca}" if tls.ca is not None else "that this machine trusts"
        return (
            f"its certificate is not signed by an authority {known}: give the authority's"
            " certificate by --ca, or the broker's own if it is self-signed"
        )
    if code in WRONG_NAME:
        return f"its certificate is not for the name {host}: connect by a name that is in it"
    if code == EXPIRED:
        return "its certificate, or one that signed it, has expired: the broker needs a new one"
    if code == NOT_YET_VALID:
        return "its certificate is not valid yet: correct a clock, the broker's or this machine's"
    return f"its certificate is not accepted: {error.verify_message}"


def _opened(option: str, path: Path) -> None:
    """Raise ClientTlsError if the file of an option cannot be read."""
    try:
        with path.open("rb") as file:
            file.read(1)
    except FileNotFoundError:
        raise ClientTlsError(f"{option} {path}: there is no such file") from None
    except OSError as error:
        raise ClientTlsError(f"{option} {path}: it cannot be read: {error.strerror}") from None


def _no_password(option: str, key: Path) -> Callable[[], str]:
    """Return a function for OpenSSL to call for the password of a key; it raises ClientTlsError.

    Without a function, OpenSSL would ask on the terminal, and proton would fail.
    """

    def password() -> str:
        raise ClientTlsError(
            f"{option} {key}: the key has a password. Write it without one to a file that only you"
            f" may read: openssl pkey -in {key} -out NEW"
        )

    return password
