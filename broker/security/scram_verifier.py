"""SCRAM verifiers: what the broker stores of a password for SCRAM (RFC 5802, 7677).

The text of a verifier is PostgreSQL's, `SCRAM-SHA-256$ITERATIONS:SALT$STOREDKEY:SERVERKEY`, with
salt and keys in base64. The password cannot be computed from it, and logging in takes the password:
StoredKey is a hash of the key that a client proves to have.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from enum import Enum
from secrets import token_bytes
from typing import Final

ITERATIONS: Final = 32_768
"""Iterations of new verifiers. The client computes them: 8 ms with SHA-256, 18 with SHA-512.

4,096, the least that RFC 7677 allows, would make a stolen file cheaper to attack by SCRAM verifiers
than by the argon2 hashes beside them.
"""

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 10_000_000
"""Limits of the iterations of a verifier that another program has made; scramp has the same."""

SALT_BYTES: Final = 16
SALT_BYTES_MIN: Final = 12
SALT_BYTES_MAX: Final = 64
"""Sizes of a salt: that of new verifiers, and the limits for those that others have made.

Longer ones would not fit into a SASL frame of 512 bytes, the largest that Qpid JMS reads.
"""

TEXT: Final = re.compile(
    r"(?P<mechanism>SCRAM-SHA-(?:256|512))\$(?P<iterations>[1-9][0-9]{0,9}):(?P<salt>[^$:]+)"
    r"\$(?P<stored_key>[^$:]+):(?P<server_key>[^$:]+)",
)


class ScramHash(Enum):
    """A hash that SCRAM is offered with. The value is the name of the SASL mechanism."""

    SHA_512 = "SCRAM-SHA-512"
    SHA_256 = "SCRAM-SHA-256"

    @property
    def key_bytes(self) -> int:
        """The size of the hash's digests, which is that of the keys."""
        return 64 if self is ScramHash.SHA_512 else 32


@dataclass(frozen=True, kw_only=True)
class ScramVerifier:
    """The verifier of a password for one hash."""

    hash: ScramHash
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @property
    def text(self) -> str:
        """The text that `read_verifier` reads."""
        salt, stored_key, server_key = (
            b64encode(each).decode() for each in (self.salt, self.stored_key, self.server_key)
        )
        return f"{self.hash.value}${self.iterations}:{salt}${stored_key}:{server_key}"


def read_verifier(text: str, hash_: ScramHash) -> ScramVerifier:
    """Return the verifier that `text` is. ValueError if it is none, or one for another hash."""
    found = TEXT.fullmatch(text)
    if found is None or found["mechanism"] != hash_.value:
        raise ValueError(f"not {hash_.value}$ITERATIONS:SALT$STOREDKEY:SERVERKEY")
    iterations = int(found["iterations"])
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ValueError(f"the iterations are from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    salt, stored_key, server_key = (
        _decoded(found[name], name) for name in ("salt", "stored_key", "server_key")
    )
    if not SALT_BYTES_MIN <= len(salt) <= SALT_BYTES_MAX:
        raise ValueError(f"the salt has {SALT_BYTES_MIN} to {SALT_BYTES_MAX} bytes")
    if not len(stored_key) == len(server_key) == hash_.key_bytes:
        raise ValueError(f"the keys have {hash_.key_bytes} bytes each")
    return ScramVerifier(
        hash=hash_,
        iterations=iterations,
        salt=salt,
        stored_key=stored_key,
        server_key=server_key,
    )


def _decoded(text: str, name: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"the {name.replace('_', ' ')} is not base64") from None


def make_verifier(
    hash_: ScramHash, password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS
) -> ScramVerifier:
    """Return a verifier of `password`, with a random salt if `salt` is None.

    Takes a core for 8 to 18 ms. ValueError if SASLprep, by which clients prepare passwords, allows
    no such password.
    """
    from scramp import ScramException, ScramMechanism

    if not _prepared(password, "password"):
        raise ValueError("SCRAM clients drop every character of this password (SASLprep)")
    salt = token_bytes(SALT_BYTES) if salt is None else salt
    try:
        made = ScramMechanism(hash_.value).make_auth_info(password, iterations, salt)
    except ScramException as error:
        raise ValueError(str(error)) from None
    return ScramVerifier(
        hash=hash_, iterations=iterations, salt=salt, stored_key=made[1], server_key=made[2]
    )


def refusal_of_scram_name(name: str) -> str | None:
    """Return why a user called `name` cannot log in with SCRAM, or None.

    SCRAM clients prepare names by SASLprep, and so does scramp: a name that this changes would
    never be found.
    """
    try:
        prepared = _prepared(name, "name")
    except ValueError as error:
        return str(error)
    if prepared != name:
        return f"SCRAM clients send the name {name!r} as {prepared!r} (SASLprep)"
    return None


def _prepared(text: str, what: str) -> str:
    from scramp import ScramException

    from broker.security.scramp_parts import saslprep

    try:
        prepared = saslprep(text)
    except ScramException as error:
        reason = error.args[0]
        raise ValueError(f"SCRAM cannot carry this {what} (SASLprep: {reason})") from None
    return prepared
