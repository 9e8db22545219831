"""Reads the PEM files that the TLS settings name. Errors name the key, the file and the remedy."""

from __future__ import annotations

import hashlib
import os
import re
import ssl
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from broker.net.certificate_dates import DatedFile, certificate_end_s, crl_end_s
from broker.settings import SettingsError
from broker.tls_settings import TlsSettings

T = TypeVar("T")

CERTIFICATE: Final = "CERTIFICATE"
CRL: Final = "X509 CRL"

PASSWORD_BYTES_MAX: Final = 1023
"""OpenSSL's own limit of the password of a key."""

_KEY: Final = re.compile(rb"-----BEGIN (\w+ )?PRIVATE KEY-----")


class TlsError(SettingsError):
    """Raised for files that TLS cannot work with; the text names the key, the file, the remedy."""


class TlsFile:
    """The file of one setting: its `key`, such as `tls.certificate`, and its path."""

    def __init__(self, key: str, path: Path) -> None:
        self.key: Final = key
        self.path: Final = path

    def read(self) -> bytes:
        """Return the file's content. Raise TlsError if it cannot be read."""
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            raise self.error("there is no such file: create it, or correct the setting") from None
        except PermissionError:
            raise self.error(
                f"the broker's account (uid {os.geteuid()}) may not read it: change its owner or"
                " mode"
            ) from None
        except OSError as error:
            raise self.error(f"it cannot be read: {error.strerror}: give another file") from None

    def error(self, complaint: str) -> TlsError:
        """Return the error of this file."""
        return TlsError(f"{self.key} = '{self.path}': {complaint}")

    def blocks(self, label: str) -> list[bytes]:
        """Return the DER of all PEM blocks of `label`. Raise TlsError if there is none."""
        content = self.read()
        found = re.findall(
            f"-----BEGIN {label}-----(.+?)-----END {label}-----".encode(), content, re.DOTALL
        )
        if not found:
            hint = " It holds a private key." if _KEY.search(content) else ""
            raise self.error(
                f"there is no line -----BEGIN {label}----- in it: give a file in PEM form.{hint}"
            )
        try:
            return [b64decode(b"".join(each.split()), validate=True) for each in found]
        except ValueError:
            raise self.error(f"a {label} in it is damaged: replace the file") from None

    def dated_certificate(self) -> DatedFile:
        """Return the end of the first certificate, which is the server's own."""
        end_s = self._ends(certificate_end_s, CERTIFICATE)[0]
        sha256 = fingerprint(self.blocks(CERTIFICATE)[0])
        return self._dated("the certificate", end_s, sha256=sha256)

    def dated_crls(self) -> DatedFile | None:
        """Return the first end among the revocation lists of the file, None if they have none."""
        known = [end for end in self._ends(crl_end_s, CRL) if end is not None]
        return self._dated("the revocation list", min(known)) if known else None

    def _ends(self, read: Callable[[bytes], T], label: str) -> list[T]:
        found = self.blocks(label)
        try:
            return [read(each) for each in found]
        except ValueError as error:
            raise self.error(f"a {label} in it is damaged ({error}): replace the file") from None

    def _dated(self, content: str, end_s: float, *, sha256: str = "") -> DatedFile:
        return DatedFile(key=self.key, path=self.path, content=content, end_s=end_s, sha256=sha256)


def fingerprint(der: bytes) -> str:
    """Return the SHA-256 of a certificate, written as `openssl x509 -fingerprint` writes it."""
    return hashlib.sha256(der).digest().hex(":").upper()


class KeyPair:
    """A certificate file with its intermediates, and the key file that belongs to it."""

    def __init__(self, certificate: TlsFile, key: TlsFile, password: TlsFile | None) -> None:
        self.certificate: Final = certificate
        self._key: Final = key
        self._password: Final = password

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load both files into `context`. Raise TlsError if they cannot be used."""
        if not _KEY.search(self._key.read()):
            raise self._key.error(
                "there is no private key in it: give the certificate's key in PEM form"
            )
        asked: list[None] = []

        def password() -> bytes:
            # without a function, OpenSSL would ask on the terminal, and the start would hang
            asked.append(None)
            if self._password is None:
                raise self._key.error(
                    "the key has a password: put that into a file, and set key_password_file to it"
                )
            read = self._password.read().rstrip(b"\r\n")
            if len(read) > PASSWORD_BYTES_MAX:
                raise self._password.error(
                    f"it has {len(read)} bytes: give the key a password of at most"
                    f" {PASSWORD_BYTES_MAX}"
                )
            return read

        try:
            context.load_cert_chain(self.certificate.path, self._key.path, password)
        except ssl.SSLError as error:
            raise self._refused(error, password_used=bool(asked)) from None
        except OSError as error:
            raise self.certificate.error(
                f"it, or its key, cannot be read: {error.strerror}: give other files"
            ) from None

    def _refused(self, error: ssl.SSLError, *, password_used: bool) -> TlsError:
        if error.reason == "KEY_VALUES_MISMATCH":
            return self._key.error(
                f"this key does not belong to the certificate '{self.certificate.path}': give the"
                " key that the certificate was made with"
            )
        if password_used and self._password is not None:
            return self._password.error(
                f"not the password of the key '{self._key.path}': correct the file"
            )
        return self._key.error(
            f"OpenSSL refuses it, or its certificate '{self.certificate.path}': {error}: replace"
            " the files"
        )


class TlsFiles:
    """The files of one table of settings. `place` is the table's name, such as `tls`."""

    def __init__(self, settings: TlsSettings, place: str) -> None:
        def file(key: str, path: Path | None) -> TlsFile | None:
            return None if path is None else TlsFile(f"{place}.{key}", path)

        password = file("key_password_file", settings.key_password_file)
        self.pairs: Final = {
            "": KeyPair(
                TlsFile(f"{place}.certificate", settings.certificate),
                TlsFile(f"{place}.key", settings.key),
                password,
            )
        }
        for at, name in enumerate(settings.name):
            self.pairs[name.host] = KeyPair(
                TlsFile(f"{place}.name[{at}].certificate", name.certificate),
                TlsFile(f"{place}.name[{at}].key", name.key),
                password,
            )
        self.client_ca: Final = file("client_ca", settings.client_ca)
        self.crl: Final = file("crl", settings.crl)
        self._paths: Final = list(_paths(settings))

    def load_authorities_into(self, context: ssl.SSLContext) -> None:
        """Load the authorities of clients, and their revocation lists. Raise TlsError."""
        for file in (self.client_ca, self.crl):
            if file is None:
                continue
            if file is self.client_ca:
                file.blocks(CERTIFICATE)
            try:
                context.load_verify_locations(file.path)
            except OSError as error:  # of OpenSSL, too
                raise file.error(f"OpenSSL refuses it: {error}") from None

    def digest(self) -> bytes:
        """Return a hash of the content of all files; unreadable ones count as such."""
        total = hashlib.sha256()
        for path in self._paths:
            try:
                content = path.read_bytes()
            except OSError as error:
                content = f"errno {error.errno}".encode()
            total.update(hashlib.sha256(content).digest())
        return total.digest()


def _paths(settings: TlsSettings) -> Iterator[Path]:
    yield settings.certificate
    yield settings.key
    for name in settings.name:
        yield name.certificate
        yield name.key
    for path in (settings.key_password_file, settings.client_ca, settings.crl):
        if path is not None:
            yield path
