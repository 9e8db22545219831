"""Checks tokens: signed JWTs (RFC 7519) of one issuer, and what they say of a user.

`joserfc` verifies the signature. This module decides which algorithm and which key may do that, so
that nothing in a token's header can choose: not `alg: none`, no key that the header brings (`jwk`,
`x5c`) or names (`jku`, `x5u`), and no secret in place of a public key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jws import CompactSignature, JWSRegistry

from broker.oauth_settings import TOKEN_BYTES_MAX, OauthSettings
from broker.security.access import OF_CERTIFICATE
from broker.security.account import NAME_BYTES_MAX
from broker.security.identity import FOREVER
from broker.security.scopes import SCOPES_MAX, scopes_with, usable
from broker.security.token_keys import KeyRing, TokenKey

SCOPE_CLAIMS: Final = ("scope", "scp")
"""The claims with scopes (RFC 8693 4.2; Entra ID and Okta have the other). The first counts."""

KID_CHARS_MAX: Final = 256
"""Maximum characters of the id of a key."""

TIME_MAX_S: Final = 2**37
"""Seconds since 1970 that a token may name at most: the year 6325."""

TYPES: Final = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
"""Values of the header's `typ`; other signed tokens of an issuer, such as those of a logout, are
for other purposes (RFC 8725 3.11)."""

UNREADABLE: Final = (
    JoseError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    RecursionError,
)
"""The exceptions of joserfc and JSON for bytes that are no token."""


@dataclass(frozen=True)
class TokenClaims:
    """The claims of a token that was found right. Its login ends at `valid_until_ms`, wall clock.

    `valid_until_ms` is FOREVER if the settings keep connections whose token has expired. `scopes`
    are those of the broker, without the prefix; `problems` says why others of them are no rules.
    """

    issuer: str
    subject: str
    user: str
    roles: frozenset[str]
    valid_until_ms: int
    scopes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class TokenRefused(Exception):  # noqa: N818 - as refusals are named in this project
    """The token does not log in. The message says why, to the operator."""


class UnknownKey(TokenRefused):
    """The token names a key that is not known, or not yet."""


class TokenRegistry(JWSRegistry):
    """The algorithms and sizes that joserfc takes.

    Its own registry warns of EdDSA, under the name that most issuers use, for each token.
    """

    max_header_length = TOKEN_BYTES_MAX
    max_payload_length = TOKEN_BYTES_MAX
    max_signature_length = 4 * 1024

    def get_alg(self, name: str) -> JWSAlgModel:
        """Return the algorithm of that name; UnsupportedAlgorithmError if it is not allowed."""
        if self.allowed is None or name not in self.allowed:
            raise UnsupportedAlgorithmError(f"algorithm {name!r:.20} is not allowed")
        return self.algorithms[name]


class TokenVerifier:
    """Checks the tokens that the settings describe."""

    def __init__(self, settings: OauthSettings) -> None:
        self._settings: Final = settings
        # other header fields are ignored: many issuers have some of their own
        self._registry: Final = TokenRegistry(
            algorithms=settings.algorithms, strict_check_header=False
        )

    def verify(self, token: str, keys: KeyRing, *, now_ms: int, wall_ms: int) -> TokenClaims:
        """Return the claims of `token`. Raise TokenRefused; UnknownKey if its key is not known.

        Takes a core for 0.1 to 1.5 ms, by the algorithm.
        """
        if len(token) > TOKEN_BYTES_MAX:
            raise TokenRefused(f"the token has more than {TOKEN_BYTES_MAX} bytes")
        try:
            found = jws.extract_compact(token.encode("ascii"), registry=self._registry)
            header = found.headers()
            algorithm = _algorithm_of(header)
        except UNREADABLE:
            raise TokenRefused("the token is no signed JWT") from None
        if algorithm not in self._settings.algorithms:
            raise TokenRefused(f"the token's algorithm {algorithm!r:.20} is not allowed")
        _check_header(header)
        kid = _checked_kid(header)
        key = _only_key(algorithm, kid, keys.named(kid, now_ms))
        return self._claims(self._signed(found, key), wall_ms)

    def _signed(self, found: CompactSignature, key: TokenKey) -> Mapping[str, object]:
        """Return the claims. Raise TokenRefused unless `key` has signed them."""
        try:
            is_right = jws.validate_compact(found, key.key, registry=self._registry)
        except UNREADABLE:
            is_right = False
        if not is_right:
            raise TokenRefused(f"the token's signature is not that of key {key.kid!r:.60}")
        try:
            claims = json.loads(found.payload or b"")
        except (ValueError, RecursionError):
            claims = None
        if not isinstance(claims, dict):
            raise TokenRefused("the token's payload is no JSON object")
        return claims

    def _claims(self, claims: Mapping[str, object], wall_ms: int) -> TokenClaims:
        settings = self._settings
        if claims.get("iss") != settings.issuer:
            raise TokenRefused(f"the token's issuer is {claims.get('iss')!r:.100}")
        if not _is_for(settings.audience, claims.get("aud")):
            raise TokenRefused(f"the token's audience is {claims.get('aud')!r:.100}")
        subject = claims.get("sub")
        if not isinstance(subject, str) or not subject:
            raise TokenRefused("the token has no subject (`sub`)")
        scopes, problems = self._scopes(claims)
        return TokenClaims(
            issuer=settings.issuer,
            subject=subject,
            user=self._user(claims),
            roles=self._roles(claims),
            valid_until_ms=self._valid_until_ms(claims, wall_ms),
            scopes=scopes,
            problems=problems,
        )

    def _valid_until_ms(self, claims: Mapping[str, object], wall_ms: int) -> int:
        leeway_ms = self._settings.leeway_s * 1000
        until_ms = _time_ms(claims, "exp")
        if until_ms is None:
            raise TokenRefused("the token has no time of expiry (`exp`)")
        if until_ms + leeway_ms <= wall_ms:
            raise TokenRefused(f"the token expired {(wall_ms - until_ms) // 1000} seconds ago")
        from_ms = _time_ms(claims, "nbf")
        if from_ms is not None and from_ms - leeway_ms > wall_ms:
            raise TokenRefused(f"the token is valid in {(from_ms - wall_ms) // 1000} seconds (nbf)")
        return int(FOREVER) if self._settings.expired == "kept" else until_ms + leeway_ms

    def _user(self, claims: Mapping[str, object]) -> str:
        for name in self._settings.user_claim:
            value = claims.get(name)
            if value is None:
                continue
            refusal = refusal_of_token_user(value)
            if not isinstance(value, str) or refusal is not None:
                raise TokenRefused(f"claim {name}: {refusal}")
            return value
        raise TokenRefused(f"the token has no claim {' or '.join(self._settings.user_claim)}")

    def _roles(self, claims: Mapping[str, object]) -> frozenset[str]:
        name = self._settings.roles_claim
        return frozenset(_texts(name, _member(claims, name)))

    def _scopes(self, claims: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the scopes that are rules, and why others with the prefix are none."""
        prefix = self._settings.scope_prefix
        name = next((each for each in SCOPE_CLAIMS if claims.get(each) is not None), None)
        if not prefix or name is None:
            return (), ()
        scopes = scopes_with(prefix, _texts(name, claims[name]))
        if len(scopes) > SCOPES_MAX:
            raise TokenRefused(f"claim {name} has more than {SCOPES_MAX} scopes of {prefix}")
        return usable(scopes)


def refusal_of_token_user(name: object) -> str | None:
    """Return why a token may not name a user so, or None.

    Other than in the users file, a colon is allowed: subjects often are URNs.
    """
    if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable():
        return "the name of a user is a text without control characters and space around it"
    if len(name.encode()) > NAME_BYTES_MAX:
        return f"the name of a user has at most {NAME_BYTES_MAX} bytes"
    if name.startswith(OF_CERTIFICATE):
        return f"the name of a user does not begin with {OF_CERTIFICATE}"
    return None


def _algorithm_of(header: object) -> str:
    if not isinstance(header, dict):
        raise TypeError("a header is a JSON object")
    return str(header["alg"])


def _check_header(header: Mapping[str, object]) -> None:
    """Raise TokenRefused for a header that changes what the token means."""
    if "crit" in header or "b64" in header:
        raise TokenRefused("the token's header demands extensions, which the broker has not")
    kind = header.get("typ")
    if kind is not None and str(kind).lower() not in TYPES:
        raise TokenRefused(f"the token is of another type: {kind!r:.40}")


def _checked_kid(header: Mapping[str, object]) -> str | None:
    kid = header.get("kid")
    if kid is not None and (not isinstance(kid, str) or len(kid) > KID_CHARS_MAX):
        raise TokenRefused("the token's key id (`kid`) is no short text")
    return kid


def _only_key(algorithm: str, kid: str | None, named: Sequence[TokenKey]) -> TokenKey:
    """Return the key that may have signed a token, of those with the id that it names."""
    if not named:
        raise UnknownKey(f"the token's key {kid!r:.60} is none of the issuer's")
    fitting = [key for key in named if key.fits(algorithm)]
    if not fitting:
        raise TokenRefused(f"the token's key {kid!r:.60} is not for algorithm {algorithm}")
    if len(fitting) > 1:
        raise TokenRefused(f"the token does not say which of {len(fitting)} keys signed it (`kid`)")
    return fitting[0]


def _is_for(audience: str, claimed: object) -> bool:
    if isinstance(claimed, list):
        return audience in [each for each in claimed if isinstance(each, str)]
    return isinstance(claimed, str) and claimed == audience


def _time_ms(claims: Mapping[str, object], name: str) -> int | None:
    """Return a time in ms since 1970, None if there is none; TokenRefused if it is no time."""
    value = claims.get(name)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not isinstance(value, int | float) or not is_number or not 0 <= value <= TIME_MAX_S:
        raise TokenRefused(f"claim {name} is no time")
    return int(value * 1000)


def _texts(name: str, value: object) -> list[str]:
    """Return the texts of a claim, a list or a text with spaces; TokenRefused if it is neither."""
    if value is None:
        return []
    listed = value.split() if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise TokenRefused(f"claim {name} is no list of strings")
    return listed


def _member(claims: Mapping[str, object], name: str) -> object:
    """Return the claim `name`, or else the member of members whose names its dots separate."""
    if name in claims:
        return claims[name]
    value: object = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
