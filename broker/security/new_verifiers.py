"""Makes the verifiers of a new password: a hash of argon2, and SCRAM verifiers for all hashes."""

from __future__ import annotations

from collections.abc import Mapping

from broker.security.account import UsersError, Verifiers
from broker.security.passwords import hash_of, refusal_of_password
from broker.security.scram_verifier import (
    ScramHash,
    ScramVerifier,
    make_verifier,
    refusal_of_scram_name,
)


def new_verifiers(
    name: str,
    password: str,
    *,
    scram: bool,
    like: Mapping[ScramHash, ScramVerifier] | None = None,
) -> Verifiers:
    """Return new verifiers of `password`, with those for SCRAM if `scram`. Takes a core for 50 ms.

    `like` is what `new_scram` takes. UsersError if the password is not allowed.
    """
    refusal = refusal_of_password(password)
    if refusal is not None:
        raise UsersError(refusal)
    made = new_scram(name, password, like) if scram else {}
    return Verifiers(password=hash_of(password), scram=made)


def new_scram(
    name: str, password: str, like: Mapping[ScramHash, ScramVerifier] | None = None
) -> Mapping[ScramHash, ScramVerifier]:
    """Return verifiers for all hashes, with the salts and iterations of those in `like`.

    UsersError if SCRAM cannot carry the name or the password.
    """
    refusal = refusal_of_scram_name(name)
    if refusal is not None:
        raise UsersError(f"{refusal}: choose another name, or leave SCRAM out with --no-scram")
    try:
        return {each: _made(each, password, (like or {}).get(each)) for each in ScramHash}
    except ValueError as error:
        raise UsersError(
            f"{error}: choose another password, or leave SCRAM out with --no-scram"
        ) from None


def _made(hash_: ScramHash, password: str, like: ScramVerifier | None) -> ScramVerifier:
    if like is None:
        return make_verifier(hash_, password)
    return make_verifier(hash_, password, salt=like.salt, iterations=like.iterations)
