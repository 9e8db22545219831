"""Password hashes: argon2id, which takes a core and 19 MiB for tens of milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argon2 import PasswordHasher

# OWASP's minimum for argon2id. RFC 9106 asks for 64 MiB, which each of two logins at a time would
# add to a broker that otherwise runs in 30 MiB.
MEMORY_KIB: Final = 19_456
PASSES: Final = 2
LANES: Final = 1

HASH_PREFIX: Final = "$argon2"

HASH_CHARS_MAX: Final = 1_024
"""Maximum characters of a hash in the users file. Ours have 97."""

NOBODY: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1$"
    "g43qHeIl5uJANlzJXapyIw$SXXeivewY13A+m+qnQosAvXZ9C1aa5lElUEM2wdqUCk"
)
"""The hash that is checked for unknown users, so that they take as long as known ones."""


def hash_of(password: str) -> str:
    """Return a new hash of `password`, with a random salt."""
    return _hasher().hash(password)


def matches(known: str, password: str) -> bool:
    """Return whether the hash `known` is one of `password`; False if argon2 cannot read it."""
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(known, password)
    except (VerificationError, InvalidHashError):
        return False


def refusal_of_hash(text: str) -> str | None:
    """Return why `text` is no hash of a password, or None. The parameters are not read."""
    if not text.startswith(HASH_PREFIX) or len(text) > HASH_CHARS_MAX or not text.isascii():
        return f"not a hash of argon2, which begins with {HASH_PREFIX}"
    return None


def refusal_of_password(password: str) -> str | None:
    """Return why `password` is not allowed, or None."""
    if not password:
        return "a password is not empty"
    if "\0" in password or any("\ud800" <= character <= "\udfff" for character in password):
        return "a password is UTF-8 without NUL: SASL PLAIN could not carry it otherwise"
    return None


def _hasher() -> PasswordHasher:
    # Imported here, so that a broker without logins does not load argon2.
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES)
