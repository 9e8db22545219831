"""Sets of public keys: which keys are taken, and how long."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping

import pytest
from joserfc.jwk import ECKey, OKPKey

from broker.security.token_keys import (
    KEPT_MS,
    KEYS_BYTES_MAX,
    KEYS_MAX,
    RSA_BITS_MAX,
    RSA_BITS_MIN,
    KeyRing,
    KeysError,
    TokenKey,
    read_keys,
)
from tests.support.tokens import key_for

pytestmark = pytest.mark.requirement("SEC-07")

EC = key_for("ES256", "a").as_dict(private=False)
RSA = key_for("RS256", "b").as_dict(private=False)


def jwks(*keys: object) -> bytes:
    return json.dumps({"keys": keys}).encode()


def ids(data: bytes) -> list[str]:
    return [each.kid for each in read_keys(data)]


def rsa(bits: int) -> Mapping[str, object]:
    """Return an RSA key whose modulus has so many bits; only its length matters here."""
    modulus = ((1 << bits) - 1).to_bytes((bits + 7) // 8)
    return {**RSA, "n": urlsafe_b64encode(modulus).rstrip(b"=").decode()}


LEFT_OUT = [
    pytest.param("text", id="no object"),
    pytest.param({"kty": "oct", "k": "AAAA", "kid": "a"}, id="a secret"),
    pytest.param({**EC, "use": "enc"}, id="a key that encrypts"),
    pytest.param({**EC, "kid": 7}, id="a number as id"),
    pytest.param({**EC, "alg": 7}, id="a number as algorithm"),
    pytest.param({**EC, "x": "AA"}, id="no point of the curve"),
    pytest.param({**EC, "crv": "P-0"}, id="an unknown curve"),
    pytest.param({"kty": "EC", "kid": "a"}, id="an empty key"),
    pytest.param({"kty": ["EC"], "kid": "a"}, id="a list as kind"),
    pytest.param({"kty": "AKP", "alg": "ML-DSA-44", "kid": "a"}, id="an unknown kind"),
    pytest.param(OKPKey.generate_key("X25519").as_dict(private=False), id="a key that agrees"),
    pytest.param(rsa(RSA_BITS_MIN - 1), id="a short RSA key"),
    pytest.param(rsa(RSA_BITS_MAX + 1), id="a very long RSA key"),
]


@pytest.mark.parametrize("record", LEFT_OUT)
def test_a_key_that_checks_no_signature_is_left_out(record: object) -> None:
    assert ids(jwks(record, {**EC, "kid": "good"})) == ["good"]


def test_a_private_key_counts_as_public() -> None:
    private = ECKey.generate_key("P-256", {"kid": "p"}).as_dict(private=True)
    (found,) = read_keys(jwks(private))
    assert not found.key.is_private


WRONG = [
    pytest.param(b"[", "not JSON", id="no JSON"),
    pytest.param(b"[" * 100_000, "not JSON", id="deep JSON"),
    pytest.param(b"[]", "no JWK set", id="a list"),
    pytest.param(b'{"keys": 7}', "no JWK set", id="no list"),
    pytest.param(jwks(), "none of its keys", id="no key"),
    pytest.param(jwks(*[EC] * (KEYS_MAX + 1)), "more than 100 keys", id="many keys"),
    pytest.param(b" " * (KEYS_BYTES_MAX + 1), "more than 262144 bytes", id="much"),
]


@pytest.mark.parametrize(("data", "reason"), WRONG)
def test_what_is_no_set_of_keys_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(KeysError, match=reason):
        read_keys(data)


FITTING = [
    ("its kind", EC, "ES256", True),
    ("another kind", EC, "RS256", False),
    ("the algorithm of the key", {**RSA, "alg": "RS256"}, "RS256", True),
    ("not the algorithm of the key", {**RSA, "alg": "RS256"}, "PS256", False),
]


@pytest.mark.parametrize(
    ("record", "algorithm", "expected"),
    [case[1:] for case in FITTING],
    ids=[case[0] for case in FITTING],
)
def test_a_key_fits(record: Mapping[str, object], algorithm: str, expected: bool) -> None:
    (key,) = read_keys(jwks(record))
    assert key.fits(algorithm) is expected


def keys(*kids: str) -> list[TokenKey]:
    return read_keys(jwks(*({**EC, "kid": kid} for kid in kids)))


def known(ring: KeyRing, now_ms: int) -> list[str]:
    return [each.kid for each in ring.named(None, now_ms)]


def test_a_key_that_is_no_longer_published_is_kept_for_a_day() -> None:
    ring = KeyRing()
    ring.adopt(keys("old"), 0)
    ring.adopt(keys("new"), 1000)
    assert known(ring, KEPT_MS) == ["new", "old"]
    assert [each.kid for each in ring.named("old", KEPT_MS)] == ["old"]
    assert known(ring, KEPT_MS + 1) == ["new"], "counted from when it was last published"
    assert known(ring, KEPT_MS + 1001) == []


def test_an_operator_can_forget_keys_at_once() -> None:
    ring = KeyRing()
    ring.adopt(keys("stolen", "good"), 0)
    ring.adopt(keys("good"), 1, forget=True)
    assert known(ring, 1) == ["good"]


def test_a_key_takes_the_place_of_one_with_its_id() -> None:
    ring = KeyRing()
    ring.adopt(keys("a"), 0)
    (other,) = read_keys(jwks({**key_for("ES256", "a").as_dict(private=False)}))
    ring.adopt([other], 1)
    assert ring.named("a", 1) == [other]
