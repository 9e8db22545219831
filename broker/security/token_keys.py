"""The public keys of the issuer of tokens: read from a JWK set (RFC 7517), kept while they are new.

An issuer changes its keys, and goes on to publish an old one for a while. A key that it publishes
no longer is kept for a day: tokens that it signed may still be in use.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

KEYS_BYTES_MAX: Final = 256 * 1024
"""Maximum bytes of a JWK set; a key with its certificates takes about 4 KiB."""

KEYS_MAX: Final = 100
"""Maximum keys of a JWK set; issuers publish two or three."""

KEPT_MS: Final = 24 * 3_600_000
"""Milliseconds for which a key is used after it was last published."""

RSA_BITS_MIN: Final = 2048
"""Minimum bits of an RSA key; shorter ones count as broken (RFC 7518 3.3)."""

RSA_BITS_MAX: Final = 16_384
"""Maximum bits of an RSA key: a signature of this one takes a core for 1 ms."""

SIGNING_CURVES: Final = ("Ed25519",)
"""The curves of keys of the kind OKP that sign; the others agree on secrets."""

KINDS: Final[Mapping[str, type[Key]]] = {
    "RS": RSAKey,
    "PS": RSAKey,
    "ES": ECKey,
    "Ed": OKPKey,
}
"""The kind of key by the first two letters of an algorithm's name."""


class KeysError(ValueError):
    """The text is no set of keys with which tokens can be checked. The message says why."""


@dataclass(frozen=True)
class TokenKey:
    """A public key. `algorithm` is the only one that it may be used with; None if any will do."""

    kid: str
    key: Key
    algorithm: str | None

    def fits(self, algorithm: str) -> bool:
        """Return whether the key may check a signature of that algorithm."""
        return isinstance(self.key, KINDS[algorithm[:2]]) and self.algorithm in (None, algorithm)


def read_keys(data: bytes) -> list[TokenKey]:
    """Return the keys of a JWK set that check signatures. KeysError if there is none, or too many.

    Keys of other kinds and uses are left out, as RFC 7517 5 demands.
    """
    if len(data) > KEYS_BYTES_MAX:
        raise KeysError(f"it has more than {KEYS_BYTES_MAX} bytes")
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        raise KeysError("it is not JSON") from None
    listed = parsed.get("keys") if isinstance(parsed, dict) else None
    if not isinstance(listed, list):
        raise KeysError("it is no JWK set: that is a JSON object with a list `keys`")
    if len(listed) > KEYS_MAX:
        raise KeysError(f"it has more than {KEYS_MAX} keys")
    found = [key for each in listed if (key := _read_key(each)) is not None]
    if not found:
        raise KeysError("none of its keys is a public key that checks signatures (RSA, EC, OKP)")
    return found


def _read_key(record: object) -> TokenKey | None:
    """Return the key of one record; None if it is no public key that checks signatures."""
    if not isinstance(record, dict) or record.get("use", "sig") != "sig":
        return None
    kid, algorithm = record.get("kid", ""), record.get("alg")
    if not isinstance(kid, str) or not isinstance(algorithm, str | None):
        return None
    try:
        key = _public_key(record)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    return None if key is None else TokenKey(kid, key, algorithm)


def _public_key(record: Mapping[str, object]) -> Key | None:
    kind = record.get("kty")
    if kind == "RSA":
        public = {name: str(record[name]) for name in ("n", "e")}
        modulus = urlsafe_b64decode(public["n"] + "==")
        if not RSA_BITS_MIN <= int.from_bytes(modulus).bit_length() <= RSA_BITS_MAX:
            return None
        return RSAKey.import_key({"kty": kind, **public})
    if kind == "EC":
        return ECKey.import_key({"kty": kind, **{n: str(record[n]) for n in ("crv", "x", "y")}})
    if kind == "OKP" and record.get("crv") in SIGNING_CURVES:
        return OKPKey.import_key({"kty": kind, **{n: str(record[n]) for n in ("crv", "x")}})
    return None


class KeyRing:
    """The keys with which tokens are checked. Times are steady ms."""

    def __init__(self) -> None:
        self._keys: list[TokenKey] = []
        self._seen_ms: dict[tuple[str, str], int] = {}

    def adopt(self, keys: Iterable[TokenKey], now_ms: int, *, forget: bool = False) -> None:
        """Use `keys`, which were just published, and earlier ones for KEPT_MS, or not (`forget`).

        A key takes the place of one with the same id and kind.
        """
        published = {_name_of(key): key for key in keys}
        kept = [] if forget else [key for key in self._keys if _name_of(key) not in published]
        self._seen_ms = {
            **{_name_of(key): self._seen_ms[_name_of(key)] for key in kept},
            **dict.fromkeys(published, now_ms),
        }
        self._keys = [*published.values(), *kept]
        self._drop_old(now_ms)

    def _drop_old(self, now_ms: int) -> None:
        self._keys = [key for key in self._keys if now_ms - self._seen_ms[_name_of(key)] <= KEPT_MS]

    def named(self, kid: str | None, now_ms: int) -> list[TokenKey]:
        """Return the keys with the id `kid`; all keys for None."""
        self._drop_old(now_ms)
        return [key for key in self._keys if kid is None or key.kid == kid]


def _name_of(key: TokenKey) -> tuple[str, str]:
    return key.kid, key.key.key_type
