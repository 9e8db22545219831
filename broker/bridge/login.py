"""The client's side of logins: which mechanism is used, and the messages of SCRAM (RFC 5802)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes
from typing import Final

from broker.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN
from broker.bridge.failure import BridgeError

SCRAMS: Final = {"SCRAM-SHA-512": "sha512", "SCRAM-SHA-256": "sha256"}

CREDENTIALS_BYTES_MAX: Final = 4096

ITERATIONS_MIN: Final = 4096
"""Fewer would let whoever answers find the password by trying; RFC 7677 demands as many."""

ITERATIONS_MAX: Final = 1_000_000
"""More would keep a core busy for more than a second: the other broker states the number."""

NONCE_BYTES: Final = 18


@dataclass(frozen=True)
class Credentials:
    """A user of the other broker."""

    user: str
    password: str = field(repr=False)


def read_credentials(file: Path) -> Credentials:
    """Return the user and the password in `file`, one line USER:PASSWORD; else BridgeError."""
    try:
        with file.open("rb") as opened:
            text = opened.read(CREDENTIALS_BYTES_MAX + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BridgeError(f"credentials_file {file}: it cannot be read: {error}") from None
    user, colon, password = text.removesuffix("\n").removesuffix("\r").partition(":")
    if len(text) > CREDENTIALS_BYTES_MAX or not colon or not user or not password:
        raise BridgeError(f"credentials_file {file}: it should be one line, USER:PASSWORD")
    return Credentials(user, password)


def chosen_mechanism(
    offered: list[str],
    credentials: Credentials | None,
    *,
    host: str,
    is_encrypted: bool,
    has_certificate: bool,
) -> str:
    """Return the mechanism for the login, the strongest that fits; BridgeError if none does.

    A password is sent only over TLS, or to this machine.
    """
    if credentials is None:
        wanted = [EXTERNAL, ANONYMOUS] if has_certificate else [ANONYMOUS]
    elif is_encrypted or is_loopback(host):
        wanted = [*SCRAMS, PLAIN]
    else:
        wanted = list(SCRAMS)
    for mechanism in wanted:
        if mechanism in offered:
            return mechanism
    listed = ", ".join(offered)[:200]
    hint = "" if credentials is not None else ": set credentials_file"
    if credentials is not None and PLAIN in offered:
        hint = ": a password is sent only over TLS, so set url to amqps://"
    raise BridgeError(f"the other broker offers only the logins {listed}{hint}")


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def plain_response(credentials: Credentials) -> bytes:
    """Return the response of PLAIN (RFC 4616)."""
    return b"\0".join([b"", credentials.user.encode(), credentials.password.encode()])


class ScramLogin:
    """The client's messages of one SCRAM exchange, without channel binding."""

    def __init__(self, mechanism: str, credentials: Credentials) -> None:
        name = credentials.user.replace("=", "=3D").replace(",", "=2C")
        self._digest: Final = SCRAMS[mechanism]
        self._password: Final = credentials.password.encode()
        self._nonce: Final = b64encode(token_bytes(NONCE_BYTES)).decode()
        self._bare: Final = f"n={name},r={self._nonce}"
        self._signature: bytes = b""

    def first(self) -> bytes:
        """Return the client's first message."""
        return f"n,,{self._bare}".encode()

    async def final(self, challenge: bytes) -> bytes:
        """Return the client's proof, computed in a thread; BridgeError for a wrong challenge."""
        try:
            told = challenge.decode()
            parts = dict(each.split("=", 1) for each in told.split(","))
            nonce, salt, iterations = parts["r"], b64decode(parts["s"]), int(parts["i"])
        except (KeyError, ValueError):
            raise BridgeError("the other broker's SCRAM challenge is malformed") from None
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise BridgeError("the other broker's SCRAM challenge has another nonce")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise BridgeError(
                f"the other broker asks for {iterations} iterations of SCRAM;"
                f" {ITERATIONS_MIN} to {ITERATIONS_MAX} are allowed"
            )
        salted = await asyncio.to_thread(
            hashlib.pbkdf2_hmac, self._digest, self._password, salt, iterations
        )
        client_key = hmac.digest(salted, b"Client Key", self._digest)
        stored_key = hashlib.new(self._digest, client_key).digest()
        without_proof = f"c={b64encode(b'n,,').decode()},r={nonce}"
        message = f"{self._bare},{told},{without_proof}".encode()
        signature = hmac.digest(stored_key, message, self._digest)
        server_key = hmac.digest(salted, b"Server Key", self._digest)
        self._signature = hmac.digest(server_key, message, self._digest)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def check(self, final: bytes) -> None:
        """Raise BridgeError unless the server's last message proves that it knows the password."""
        expected = b"v=" + b64encode(self._signature)
        if not self._signature or not hmac.compare_digest(final, expected):
            raise BridgeError("the other broker does not prove that it knows the password")
