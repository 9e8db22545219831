"""Tokens: which are taken, what is read from them, and why the others are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.oauth_settings import ALGORITHMS, TOKEN_BYTES_MAX, OauthSettings
from broker.security.identity import FOREVER
from broker.security.scopes import SCOPES_MAX
from broker.security.token_keys import KeyRing, read_keys
from broker.security.tokens import TokenClaims, TokenRefused, TokenVerifier, UnknownKey
from tests.support.tokens import (
    ISSUER,
    TokenIssuer,
    key_for,
    oauth,
    signed,
    signed_by_secret,
    unsigned,
)

pytestmark = pytest.mark.requirement("SEC-07")

NOW_S = 2_000_000_000
LEEWAY_S = 30

EC = TokenIssuer()


def verdict(
    token: str, issuer: TokenIssuer = EC, /, *, folder: Path, **settings: object
) -> TokenClaims:
    """Return the claims of a token at NOW_S, whose issuer published its keys just now."""
    keys = KeyRing()
    keys.adopt(read_keys(issuer.jwks()), 0)
    verifier = TokenVerifier(oauth(folder, issuer, leeway_s=LEEWAY_S, **settings))
    return verifier.verify(token, keys, now_ms=0, wall_ms=NOW_S * 1000)


def token(issuer: TokenIssuer = EC, /, **changed: object) -> str:
    return issuer.token(**{"exp": NOW_S + 60, **changed})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_of_the_settings_is_known(algorithm: str, tmp_path: Path) -> None:
    issuer = TokenIssuer(algorithm)
    found = verdict(token(issuer), issuer, folder=tmp_path)
    assert found == TokenClaims(
        issuer=ISSUER,
        subject="0a1b",
        user="ada",
        roles=frozenset({"application"}),
        valid_until_ms=(NOW_S + 60 + LEEWAY_S) * 1000,
    )


CLAIMS = [
    # claims; why the token is refused
    pytest.param({"iss": "https://evil.example"}, "issuer", id="another issuer"),
    pytest.param({"iss": f"{ISSUER}/"}, "issuer", id="almost the issuer"),
    pytest.param({"iss": None}, "issuer", id="no issuer"),
    pytest.param({"aud": "another"}, "audience", id="another audience"),
    pytest.param({"aud": ["a", "jms-broker-2"]}, "audience", id="other audiences"),
    pytest.param({"aud": {"jms-broker": 1}}, "audience", id="an audience of no kind"),
    pytest.param({"aud": None}, "audience", id="no audience"),
    pytest.param({"exp": None}, "no time of expiry", id="no expiry"),
    pytest.param({"exp": NOW_S - LEEWAY_S}, "expired 30 seconds ago", id="expired"),
    pytest.param({"exp": "2033-01-01"}, "exp is no time", id="a text as expiry"),
    pytest.param({"exp": True}, "exp is no time", id="a boolean as expiry"),
    pytest.param({"exp": float("nan")}, "exp is no time", id="no number as expiry"),
    pytest.param({"exp": float("inf")}, "exp is no time", id="an endless expiry"),
    pytest.param({"exp": 10**400}, "exp is no time", id="a huge expiry"),
    pytest.param({"nbf": NOW_S + LEEWAY_S + 1}, "valid in 31 seconds", id="not yet valid"),
    pytest.param({"sub": None}, "no subject", id="no subject"),
    pytest.param({"sub": 7}, "no subject", id="a number as subject"),
    pytest.param({"preferred_username": 7}, "preferred_username", id="a number as user"),
    pytest.param({"preferred_username": ""}, "preferred_username", id="an empty user"),
    pytest.param({"preferred_username": " ada"}, "preferred_username", id="a space before a user"),
    pytest.param({"preferred_username": "a\nb"}, "preferred_username", id="a line feed in a user"),
    pytest.param({"preferred_username": "x" * 256}, "at most 255 bytes", id="a long user"),
    pytest.param({"preferred_username": "cert:shop"}, "cert:", id="a user as if by certificate"),
    pytest.param({"roles": 7}, "roles is no list", id="a number as roles"),
    pytest.param({"roles": ["a", 7]}, "roles is no list", id="a number among roles"),
    pytest.param({"scope": 7}, "scope is no list", id="a number as scope"),
    pytest.param(
        {"scope": [f"jms-broker.send:queue:q{n}" for n in range(SCOPES_MAX + 1)]},
        "more than 64 scopes",
        id="too many scopes",
    ),
]


@pytest.mark.parametrize(("claims", "reason"), CLAIMS)
def test_wrong_claims_are_refused(claims: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(TokenRefused, match=reason):
        verdict(token(**claims), folder=tmp_path)


TAKEN = [
    pytest.param({"aud": ["other", "jms-broker"]}, id="one audience of several"),
    pytest.param({"exp": NOW_S - LEEWAY_S + 1}, id="expired within the leeway"),
    pytest.param({"nbf": NOW_S + LEEWAY_S}, id="valid soon, within the leeway"),
    pytest.param({"exp": NOW_S + 0.5}, id="a fraction of a second"),
]


@pytest.mark.parametrize("claims", TAKEN)
def test_these_claims_are_taken(claims: dict[str, object], tmp_path: Path) -> None:
    assert verdict(token(**claims), folder=tmp_path).user == "ada"


SCOPES = [
    # claims, settings; the scopes of the broker
    pytest.param({"scope": "openid jms-broker.send:queue:a"}, {}, ("send:queue:a",), id="a text"),
    pytest.param({"scope": ["jms-broker.send:queue:a b"]}, {}, ("send:queue:a b",), id="a list"),
    pytest.param({"scp": ["jms-broker.view:queue:a"]}, {}, ("view:queue:a",), id="the other claim"),
    pytest.param(
        {"scope": "", "scp": "jms-broker.send:queue:a"}, {}, (), id="the first claim counts"
    ),
    pytest.param({"scope": "jms-broker.send:queue:a"}, {"scope_prefix": ""}, (), id="switched off"),
    pytest.param(
        {"scope": "shop.send:queue:a jms-broker.send:queue:b"},
        {"scope_prefix": "shop"},
        ("send:queue:a",),
        id="another prefix",
    ),
    pytest.param({"scope": "jms-brokers.send:queue:a"}, {}, (), id="almost the prefix"),
    pytest.param(
        {"scope": " ".join(f"x{n}" for n in range(SCOPES_MAX + 1))}, {}, (), id="scopes of others"
    ),
]


@pytest.mark.parametrize(("claims", "settings", "scopes"), SCOPES)
def test_scopes_of_the_broker(
    claims: dict[str, object],
    settings: dict[str, object],
    scopes: tuple[str, ...],
    tmp_path: Path,
) -> None:
    found = verdict(token(**claims), folder=tmp_path, **settings)
    assert (found.scopes, found.problems) == (scopes, ())


def test_a_scope_that_is_no_rule_gives_no_right(tmp_path: Path) -> None:
    claimed = "jms-broker.snd:queue:a jms-broker.send:queue:b"
    found = verdict(token(scope=claimed), folder=tmp_path)
    assert found.scopes == ("send:queue:b",)
    (problem,) = found.problems
    assert problem.startswith("snd:queue:a: can: 'snd' is no verb")


def none_algorithm() -> str:
    return unsigned(EC.claims(exp=NOW_S + 60), {"alg": "none", "kid": EC.key.kid})


def public_key_as_secret() -> str:
    """Sign with HS256 and the public key, as if that were the broker's secret."""
    public = EC.key.as_pem(private=False)  # type: ignore[union-attr]
    header = {"alg": "HS256", "kid": EC.key.kid}
    return signed_by_secret(public, EC.claims(exp=NOW_S + 60), header)


def own_key(**header: object) -> str:
    """Sign with a key of one's own, with the key id of the issuer's."""
    key = key_for("ES256", "first")
    return signed(key, EC.claims(exp=NOW_S + 60), {"alg": "ES256", "kid": "first", **header})


def changed_payload() -> str:
    first, _, last = token().split(".")
    return f"{first}.{token(sub='other').split('.')[1]}.{last}"


FORGED: list[object] = [
    pytest.param(none_algorithm, "algorithm 'none' is not allowed", id="alg: none"),
    pytest.param(public_key_as_secret, "algorithm 'HS256' is not allowed", id="HS256"),
    pytest.param(own_key, "signature is not that of", id="a key of one's own"),
    pytest.param(
        lambda: own_key(jku="https://evil.example/keys"), "signature is not that", id="jku"
    ),
    pytest.param(
        lambda: own_key(x5u="https://evil.example/cert"), "signature is not that", id="x5u"
    ),
    pytest.param(
        lambda: own_key(jwk=key_for("ES256", "x").as_dict(private=False)),
        "signature is not that",
        id="jwk",
    ),
    pytest.param(changed_payload, "signature is not that", id="another payload"),
    pytest.param(lambda: token()[:-4], "signature is not that", id="a cut signature"),
    pytest.param(
        lambda: EC.token({"crit": ["a"], "a": 1}, exp=NOW_S + 60), "demands extensions", id="crit"
    ),
    pytest.param(
        lambda: EC.token({"b64": False, "crit": ["b64"]}, exp=NOW_S + 60),
        "no signed JWT|demands",
        id="b64",
    ),
    pytest.param(
        lambda: EC.token({"typ": "logout+jwt"}, exp=NOW_S + 60), "another type", id="a logout"
    ),
    pytest.param(
        lambda: EC.token({"kid": "x" * 300}), "no short text|no signed", id="a long key id"
    ),
    pytest.param(lambda: "", "no signed JWT", id="nothing"),
    pytest.param(lambda: "a.b", "no signed JWT", id="two parts"),
    pytest.param(lambda: "eyJhIjoxfQ.e30.AA", "no signed JWT", id="no algorithm"),
    pytest.param(lambda: "WyJhbGciXQ.e30.AA", "no signed JWT", id="a header that is a list"),
    pytest.param(lambda: "ü.e30.AA", "no signed JWT", id="not ASCII"),
    pytest.param(lambda: "x" * (TOKEN_BYTES_MAX + 1), "more than 16384 bytes", id="too long"),
    pytest.param(lambda: "W1tb" * 3000 + ".e30.AA", "no signed JWT", id="a deep header"),
]


@pytest.mark.parametrize(("make", "reason"), FORGED)
def test_forged_tokens_are_refused(make: Callable[[], str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(TokenRefused, match=reason):
        verdict(make(), folder=tmp_path)


def test_an_unknown_key_is_told_apart(tmp_path: Path) -> None:
    """The issuer may have published it after the broker has read its keys."""
    with pytest.raises(UnknownKey):
        verdict(EC.token({"kid": "second"}, exp=NOW_S + 60), folder=tmp_path)


def test_the_settings_allow_algorithms(tmp_path: Path) -> None:
    with pytest.raises(TokenRefused, match="'ES256' is not allowed"):
        verdict(token(), folder=tmp_path, algorithms=["RS256"])


def test_a_key_is_used_with_its_own_kind_of_algorithm(tmp_path: Path) -> None:
    made = EC.token({"alg": "ES256"}, exp=NOW_S + 60)
    rsa = TokenIssuer("RS256")
    with pytest.raises(TokenRefused, match="is not for algorithm ES256"):
        verdict(made, rsa, folder=tmp_path)


def test_a_token_without_a_key_id_needs_an_issuer_with_one_key(tmp_path: Path) -> None:
    issuer = TokenIssuer()
    made = issuer.token({"kid": None}, exp=NOW_S + 60)
    assert verdict(made, issuer, folder=tmp_path).user == "ada"
    issuer.others.append(key_for("ES256", "second"))
    with pytest.raises(TokenRefused, match="does not say which of 2 keys"):
        verdict(made, issuer, folder=tmp_path)


USERS = [
    pytest.param({}, {}, "ada", id="the first claim"),
    pytest.param(
        {"preferred_username": None}, {}, "0a1b", id="the second, if the first is missing"
    ),
    pytest.param({}, {"user_claim": ["sub"]}, "0a1b", id="as the settings say"),
    pytest.param(
        {"sub": "system:account:shop"},
        {"user_claim": ["sub"]},
        "system:account:shop",
        id="with colons",
    ),
]


@pytest.mark.parametrize(("claims", "settings", "user"), USERS)
def test_the_user_is_named_by(
    claims: dict[str, object], settings: dict[str, object], user: str, tmp_path: Path
) -> None:
    assert verdict(token(**claims), folder=tmp_path, **settings).user == user


ROLES = [
    pytest.param({"roles": None}, {}, set(), id="none"),
    pytest.param({"roles": "a b"}, {}, {"a", "b"}, id="a text"),
    pytest.param(
        {"realm_access": {"roles": ["a"]}},
        {"roles_claim": "realm_access.roles"},
        {"a"},
        id="in an object",
    ),
    pytest.param(
        {"https://a.example/r": ["b"]},
        {"roles_claim": "https://a.example/r"},
        {"b"},
        id="in a claim whose name has dots",
    ),
    pytest.param({"realm_access": 7}, {"roles_claim": "realm_access.roles"}, set(), id="nowhere"),
]


@pytest.mark.parametrize(("claims", "settings", "roles"), ROLES)
def test_the_roles_are(
    claims: dict[str, object], settings: dict[str, object], roles: set[str], tmp_path: Path
) -> None:
    assert verdict(token(**claims), folder=tmp_path, **settings).roles == roles


def test_a_login_that_is_kept_has_no_end(tmp_path: Path) -> None:
    assert verdict(token(), folder=tmp_path, expired="kept").valid_until_ms == FOREVER
    with pytest.raises(TokenRefused, match="expired"):
        verdict(token(exp=NOW_S - 60), folder=tmp_path, expired="kept")


def test_settings_of_the_tests_are_sound(tmp_path: Path) -> None:
    assert isinstance(oauth(tmp_path, EC), OauthSettings)
