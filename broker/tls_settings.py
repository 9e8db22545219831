"""The settings of TLS: `[tls]`, or the table `tls` of one listener.

They name files and rules. `broker/net/tls.py` reads the files and builds the contexts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

NAMES_MAX: Final = 1000
"""Maximum `[[tls.name]]` of one table; each takes about 30 KiB of memory."""

_LABEL: Final = "[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"
_HOST: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def _file(value: Path) -> Path:
    """Raise ValueError for an empty path, which would be the current folder."""
    if value == Path():
        raise ValueError("Input should be the path of a PEM file")
    return value


def _host(value: str) -> str:
    """Return a host name as clients send it: in lower case, without the dot at its end.

    Raise ValueError for text that a client cannot send as a server name.
    """
    host = value.lower().removesuffix(".")
    if not _HOST.fullmatch(host) or len(host) > 253:
        raise ValueError(
            "Input should be one host name in ASCII (xn--… if it has other letters), without"
            " wildcards and ports"
        )
    return host


PemFile = Annotated[Path, AfterValidator(_file)]
ClientCertificates = Literal["no", "ask", "require"]
UserSource = Literal["san:email", "san:uri", "san:dns", "subject:CN", "fingerprint"]

_WITHOUT_OTHER: Final = {
    "key": (
        "certificate is set, but key is not: set key to the PEM file of the certificate's"
        " private key"
    ),
    "certificate": (
        "key is set, but certificate is not: set certificate to the PEM file of the certificate"
        " of that key, followed by its intermediate certificates"
    ),
}


def _certificate_has_key(given: object) -> object:
    """Raise ValueError if one of `certificate` and `key` is set without the other."""
    if isinstance(given, Mapping):
        for absent, complaint in _WITHOUT_OTHER.items():
            other = "certificate" if absent == "key" else "key"
            if given.get(other) is not None and given.get(absent) is None:
                raise ValueError(complaint)
    return given


class TlsNameSettings(BaseModel):
    """One `[[tls.name]]`: the certificate for clients that ask for `host` by SNI."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: Annotated[str, AfterValidator(_host)]
    certificate: PemFile
    key: PemFile

    _is_whole = model_validator(mode="before")(_certificate_has_key)


class TlsSettings(BaseModel):
    """One table `tls`. `key_password_file` has the password of each key that has one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    certificate: PemFile
    key: PemFile
    key_password_file: PemFile | None = None
    client_certificates: ClientCertificates = "no"
    client_ca: PemFile | None = None
    crl: PemFile | None = None
    minimum: Literal["1.2", "1.3"] = "1.2"
    name: Annotated[tuple[TlsNameSettings, ...], Field(max_length=NAMES_MAX)] = ()
    user_from: UserSource | None = None

    _is_whole = model_validator(mode="before")(_certificate_has_key)

    @model_validator(mode="after")
    def _client_certificates_have_an_authority(self) -> TlsSettings:
        asks = self.client_certificates != "no"
        if asks and self.client_ca is None:
            raise ValueError(
                f"client_certificates = {self.client_certificates!r} needs client_ca: set it to"
                " the PEM file of the authorities that sign the certificates of clients"
            )
        for key, value in (
            ("client_ca", self.client_ca),
            ("crl", self.crl),
            ("user_from", self.user_from),
        ):
            if value is not None and not asks:
                raise ValueError(
                    f"{key} is set, but no client is asked for a certificate: set"
                    f' client_certificates to "ask" or "require", or remove {key}'
                )
        return self

    @model_validator(mode="after")
    def _hosts_are_named_once(self) -> TlsSettings:
        hosts = [each.host for each in self.name]
        twice = sorted({host for host in hosts if hosts.count(host) > 1})
        if twice:
            raise ValueError(
                f"there is more than one [[tls.name]] of the host {twice[0]!r}: remove all but one"
            )
        return self
