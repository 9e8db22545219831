"""Reads the issuer's keys: from a file, or from an https URL. Blocks, so it is called in a thread.

The URL is that of the settings, never of a token. A redirect is an error: the operator writes the
address that answers. Proxies of the environment are not used.
"""

from __future__ import annotations

import ssl
import time
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from broker.oauth_settings import OauthSettings
from broker.security.token_keys import KEYS_BYTES_MAX, KeysError, TokenKey, read_keys
from broker.settings import SettingsError

FETCH_S: Final = 5.0
"""Seconds that reading the keys may take, without the look-up of the host's address."""

PIECE: Final = 16 * 1024
OK: Final = 200


class KeySource:
    """The place of the issuer's keys that the settings name."""

    def __init__(self, settings: OauthSettings, *, fetch_s: float = FETCH_S) -> None:
        self._settings: Final = settings
        self._fetch_s: Final = fetch_s

    @property
    def place(self) -> str:
        """The URL or the file, as the settings write it."""
        return self._settings.jwks

    def check(self) -> None:
        """Raise SettingsError if a file of the settings cannot be used. Makes no connection."""
        try:
            if self._settings.is_remote():
                self._context()
            else:
                self.read()
        except KeysError as error:
            raise SettingsError(f"oauth: {error}") from None

    def read(self) -> list[TokenKey]:
        """Return the keys that are published now. KeysError if they cannot be had."""
        try:
            data = self._fetch() if self._settings.is_remote() else self._read_file()
            return read_keys(data)
        except KeysError as error:
            raise KeysError(f"jwks = {self.place!r}: {error}") from None

    def _read_file(self) -> bytes:
        try:
            with Path(self.place).open("rb") as file:
                return file.read(KEYS_BYTES_MAX + 1)
        except OSError as error:
            raise KeysError(f"it cannot be read: {error.strerror}") from None

    def _fetch(self) -> bytes:
        parts = urlsplit(self.place)
        path = parts.path or "/"
        target = f"{path}?{parts.query}" if parts.query else path
        connection = HTTPSConnection(
            parts.hostname or "", parts.port, timeout=self._fetch_s, context=self._context()
        )
        try:
            return self._answer(connection, target)
        except ssl.SSLCertVerificationError as error:
            raise KeysError(
                f"its certificate is not trusted: {error.verify_message}. Set jwks_ca to the PEM"
                " file of the authority that signed it"
            ) from None
        except (OSError, HTTPException) as error:
            raise KeysError(f"it cannot be fetched: {str(error) or type(error).__name__}") from None
        finally:
            connection.close()

    def _answer(self, connection: HTTPSConnection, target: str) -> bytes:
        until_s = time.monotonic() + self._fetch_s
        headers = {"Accept": "application/jwk-set+json, application/json", "Connection": "close"}
        connection.request("GET", target, headers=headers)
        response = connection.getresponse()
        if response.status != OK:
            raise KeysError(f"the answer has status {response.status}, and 200 is needed")
        data = b""
        while len(data) <= KEYS_BYTES_MAX and time.monotonic() < until_s:
            # `read1` returns what is there: a server that sends a byte a second meets the deadline
            piece = response.read1(PIECE)
            if not piece:
                return data
            data += piece
        if len(data) > KEYS_BYTES_MAX:
            return data  # which `read_keys` refuses
        raise KeysError(f"the answer took longer than {self._fetch_s:g} seconds")

    def _context(self) -> ssl.SSLContext:
        """Return a context that checks certificate and host name, by jwks_ca or the system's."""
        authorities = self._settings.jwks_ca
        try:
            return ssl.create_default_context(
                cafile=None if authorities is None else str(authorities)
            )
        except (OSError, ssl.SSLError) as error:
            raise KeysError(f"jwks_ca = '{authorities}': {error.strerror or error}") from None
