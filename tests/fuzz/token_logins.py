"""Entry point for logins by tokens: messages, tokens, headers and claims of clients, and keys.

The bytes are taken for each of these in turn. Only a header or claims that the issuer has signed
may log a client in.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc.jwk import ECKey, OKPKey

from broker.oauth_settings import OAUTHBEARER, TOKEN_MECHANISMS, OauthSettings
from broker.security.bearer import BearerError, looks_like_token, read_bearer
from broker.security.token_keys import KEYS_MAX, KeyRing, KeysError, TokenKey, read_keys
from broker.security.tokens import (
    TokenClaims,
    TokenRefused,
    TokenVerifier,
    refusal_of_token_user,
)
from tests.support.tokens import ALGORITHMS_BY_NAME, AUDIENCE, ISSUER

NOW_S: Final = 2_000_000_000
ALGORITHM: Final = "Ed25519"

# one key in all processes, so that an input that was found does the same again
KEY: Final = OKPKey.import_key(Ed25519PrivateKey.from_private_bytes(bytes(32)), {"kid": "first"})
CURVE_KEY: Final = ECKey.import_key(derive_private_key(1, SECP256R1()).public_key())
RSA_KEY: Final = {"kty": "RSA", "e": "AQAB", "n": "_" * 342, "use": "sig", "alg": "RS256"}
PUBLIC_KEY: Final = KEY.as_dict(private=False)
KEYS: Final = KeyRing()
KEYS.adopt(read_keys(json.dumps({"keys": [PUBLIC_KEY]}).encode()), 0)
VERIFIER: Final = TokenVerifier(
    OauthSettings(
        issuer=ISSUER, audience=AUDIENCE, jwks="keys.json", roles_claim="realm_access.roles"
    )
)
HEADER: Final = {"alg": ALGORITHM, "kid": "first"}
CLAIMS: Final = {
    "iss": ISSUER,
    "aud": AUDIENCE,
    "sub": "0a1b",
    "preferred_username": "ada",
    "exp": NOW_S + 600,
    "nbf": NOW_S - 1,
    "realm_access": {"roles": ["a", "b"]},
}


def token_login(data: bytes) -> None:
    """Use the bytes as each part of a login by token."""
    text = data.decode("latin-1")
    looks_like_token(text)
    for mechanism in TOKEN_MECHANISMS:
        _read(mechanism, data)
    assert _verified(text) is None or text == GOOD, "a token that the issuer did not sign"
    for header, claims in ((data, _json(CLAIMS)), (_json(HEADER), data)):
        found = _verified(_signed(header, claims))
        if found is not None:
            _check(found)
    _read_keys(data)


def _read(mechanism: str, data: bytes) -> None:
    try:
        message = read_bearer(mechanism, data)
    except BearerError:
        return
    assert "\x01" not in message.user + message.token
    assert mechanism == OAUTHBEARER or data.decode().startswith(f"user={message.user}\x01")


def _verified(token: str) -> TokenClaims | None:
    try:
        return VERIFIER.verify(token, KEYS, now_ms=0, wall_ms=NOW_S * 1000)
    except TokenRefused as refusal:
        reason = str(refusal)
    assert len(reason) < 1000, "a reason that the client writes"
    return None


def _check(claims: TokenClaims) -> None:
    assert claims.issuer == ISSUER
    assert claims.subject
    assert refusal_of_token_user(claims.user) is None
    assert all(isinstance(role, str) for role in claims.roles)
    assert claims.valid_until_ms > NOW_S * 1000


def _read_keys(data: bytes) -> None:
    try:
        found: list[TokenKey] = read_keys(data)
    except KeysError:
        return
    assert 0 < len(found) <= KEYS_MAX
    assert not any(each.key.is_private for each in found)


def _signed(header: bytes, claims: bytes) -> str:
    content = f"{_encoded(header)}.{_encoded(claims)}"
    signature = ALGORITHMS_BY_NAME[ALGORITHM].sign(content.encode(), KEY)
    return f"{content}.{_encoded(signature)}"


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


GOOD: Final = _signed(_json(HEADER), _json(CLAIMS))


def seeds() -> list[bytes]:
    """Return a good token, its parts, the messages that carry it, and the keys."""
    return [
        GOOD.encode(),
        _json({**HEADER, "typ": "JWT", "jku": "https://a/", "crit": ["a"], "a": 1}),
        _json(HEADER),
        _json(CLAIMS),
        _json({**CLAIMS, "aud": ["a", AUDIENCE], "realm_access": {"roles": "a b"}, "exp": 1e300}),
        f"n,a=a=2Cb,\x01host=h\x01auth=Bearer {GOOD}\x01\x01".encode(),
        f"user=ada\x01auth=Bearer {GOOD}\x01\x01".encode(),
        _json({"keys": [PUBLIC_KEY, CURVE_KEY.as_dict(private=False), RSA_KEY]}),
        _json({"keys": [{**PUBLIC_KEY, "use": "enc"}, {**RSA_KEY, "n": "AQAB"}, {"kty": "oct"}]}),
    ]


def extremes() -> list[bytes]:
    """Return texts that are slow to read unless limits hold."""
    return [
        b"[" * 60_000,
        b'{"exp":' + b"9" * 60_000 + b"}",
        b'{"kid":"' + b"a" * 60_000 + b'"}',
        b"." * 60_000,
        b'{"keys":[' + b",".join([b'{"kty":"RSA","n":"' + b"A" * 400 + b'"}'] * 130) + b"]}",
    ]
