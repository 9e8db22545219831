"""A SCRAM client of our own, after the formulas of RFC 5802 and with nothing but `hashlib`."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Final

from broker.security.scram_verifier import ScramHash


@lru_cache(maxsize=16)
def _salted(digest: str, password: bytes, salt: str, iterations: int) -> bytes:
    """Return the salted password, which takes milliseconds: clients that log in often keep it."""
    return hashlib.pbkdf2_hmac(digest, password, b64decode(salt), iterations)


class FormulaClient:
    """Computes a client's messages. Every part of them can be replaced, to make invalid ones."""

    def __init__(
        self, hash_: ScramHash, user: str, password: str, *, header: str = "n,,", nonce: str = "abc"
    ) -> None:
        self._digest: Final = "sha512" if hash_ is ScramHash.SHA_512 else "sha256"
        self._password: Final = password.encode()
        self._header: Final = header
        self._bare: Final = f"n={user},r={nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        """Return the client's first message."""
        return f"{self._header}{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client's proof, in answer to the server's first message."""
        parts = dict(each.split("=", 1) for each in server_first.decode().split(","))
        assert list(parts) == ["r", "s", "i"], "Qpid JMS reads no other order"
        salted = _salted(self._digest, self._password, parts["s"], int(parts["i"]))
        client_key = hmac.digest(salted, b"Client Key", self._digest)
        stored_key = hashlib.new(self._digest, client_key).digest()
        without_proof = f"c={b64encode(self._header.encode()).decode()},r={parts['r']}"
        message = f"{self._bare},{server_first.decode()},{without_proof}".encode()
        signature = hmac.digest(stored_key, message, self._digest)
        server_key = hmac.digest(salted, b"Server Key", self._digest)
        self._server_signature = hmac.digest(server_key, message, self._digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def knows(self, server_final: bytes) -> bool:
        """Return whether the server's last message proves that it has a verifier."""
        return server_final == b"v=" + b64encode(self._server_signature)
