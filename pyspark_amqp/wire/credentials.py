"""How a job proves who it is: names, passwords, tokens, and the files for TLS.

Tokens and the passwords of keys are read from their files when they are used, so that no plan and
no pickled option has them. Errors name the option and the file, never what is in it.
"""

from __future__ import annotations

import base64
import re
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote

from proton import SSLDomain, SSLException

from pyspark_amqp.errors import LoginError
from pyspark_amqp.options import Options

TOKEN_BYTES_MAX: Final = 16 * 1024
"""Maximum bytes of a token, as the broker takes it."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""The characters of a bearer token (RFC 6750 2.1)."""

KEY_PASSWORD_BYTES_MAX: Final = 1023
"""OpenSSL's own limit of the password of a key."""


def login_in(options: Options, parts: SplitResult) -> tuple[str | None, str | None]:
    """Return user and password (or token) for the URL of `parts`; the options win over the URL.

    Raise LoginError if there is a token file, and no token in it.
    """
    user = options.text("username")
    if user is not None:
        return user, token_in(options) or options.text("password")
    if parts.username is not None:
        return unquote(parts.username), unquote(parts.password or "")
    return None, None


def token_in(options: Options) -> str | None:
    """Return the token that the file has now, None without the option tokenFile."""
    path = options.text("tokenFile")
    if path is None:
        return None
    text = _read("tokenFile", path).decode("utf-8", "replace").strip()
    # an invalid one would be shown by the error of the library that refuses it
    if len(text) > TOKEN_BYTES_MAX or not _TOKEN.fullmatch(text):
        raise LoginError(
            f"option tokenFile: {path} has no token; allowed: one line of letters, digits and"
            f" -._~+/=, with at most {TOKEN_BYTES_MAX} bytes"
        )
    return text


def authorization(options: Options, parts: SplitResult) -> dict[str, str]:
    """Return the headers of a login over HTTP. Raise LoginError as `login_in` does."""
    token = token_in(options)
    if token is not None:
        return {"Authorization": f"Bearer {token}"}
    user, password = login_in(options, parts)
    if user is None:
        return {}
    login = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
    return {"Authorization": f"Basic {login}"}


def trusting_context(options: Options) -> ssl.SSLContext:
    """Return the TLS of a client over HTTP. Raise LoginError if a file cannot be used."""
    authorities = options.text("tls.caFile")
    certificate, key = options.text("tls.certFile"), options.text("tls.keyFile")
    _check_readable(options)
    try:
        context = ssl.create_default_context(cafile=authorities)
    except ssl.SSLError as error:
        raise _unusable("tls.caFile", authorities, "no certificate in PEM form", error) from None
    if certificate is not None and key is not None:
        try:
            context.load_cert_chain(certificate, key, lambda: _key_password(options))
        except ssl.SSLError as error:
            why = "no certificate in PEM form, or not that of tls.keyFile, or that needs a password"
            raise _unusable("tls.certFile", certificate, why, error) from None
    return context


def trusting_domain(options: Options) -> SSLDomain:
    """Return the TLS of a client over AMQP. Raise LoginError if a file cannot be used."""
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    authorities = options.text("tls.caFile") or ssl.get_default_verify_paths().cafile
    certificate, key = options.text("tls.certFile"), options.text("tls.keyFile")
    _check_readable(options)
    try:
        if authorities is not None:
            domain.set_trusted_ca_db(authorities)
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        if certificate is not None and key is not None:
            # an empty password, not None: OpenSSL would ask for one on the terminal
            domain.set_credentials(certificate, key, _key_password(options).decode())
    except SSLException:
        trusting_context(options)  # Proton says only that there is an "SSL failure"
        raise
    return domain


def _check_readable(options: Options) -> None:
    for name in ("tls.caFile", "tls.certFile", "tls.keyFile"):
        path = options.text(name)
        if path is not None:
            _read(name, path)


def _key_password(options: Options) -> bytes:
    """Return the password of the key; empty without the option, which opens no key that has one."""
    path = options.text("tls.keyPasswordFile")
    if path is None:
        return b""
    password = _read("tls.keyPasswordFile", path).rstrip(b"\r\n")
    if len(password) > KEY_PASSWORD_BYTES_MAX or b"\0" in password:
        raise LoginError(
            f"option tls.keyPasswordFile: {path} has no password; allowed: at most"
            f" {KEY_PASSWORD_BYTES_MAX} bytes, none of them 0"
        )
    return password


def _read(option: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise LoginError(
            f"option {option}: {path}: {error.strerror}: the driver and every worker need the file"
        ) from None


def _unusable(option: str, path: str | None, why: str, error: ssl.SSLError) -> LoginError:
    return LoginError(f"option {option}: {path} is {why} ({error.reason or 'OpenSSL'})")
