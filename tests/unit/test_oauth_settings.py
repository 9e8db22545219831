"""The table `oauth`: what it takes, and errors that name the key and the remedy."""

from __future__ import annotations

from typing import Final

import pytest
from pydantic import ValidationError

from broker.oauth_settings import ALGORITHMS, OauthSettings

pytestmark = pytest.mark.requirement("SEC-07")

LEAST: Final[dict[str, object]] = {"issuer": "i", "audience": "a", "jwks": "keys.json"}
URL: Final = "https://login.example/keys?v=1"


def test_defaults() -> None:
    settings = OauthSettings.model_validate(LEAST)
    assert settings.algorithms == ALGORITHMS
    assert settings.user_claim == ("preferred_username", "sub")
    assert (settings.leeway_s, settings.expired) == (30, "forced")
    assert settings.scope_prefix == "jms-broker"


PLACES = [("https://login.example/keys", True), (URL, True), ("keys.json", False), ("/a/b", False)]


@pytest.mark.parametrize(("jwks", "is_remote"), PLACES)
def test_keys_are_at_a_url_or_in_a_file(jwks: str, is_remote: bool) -> None:
    settings = OauthSettings.model_validate({**LEAST, "jwks": jwks})
    assert settings.is_remote() is is_remote


def test_no_secret_of_the_broker_signs() -> None:
    assert {each[:2] for each in ALGORITHMS} == {"RS", "PS", "ES", "Ed"}


WRONG = [
    # settings; what the error says
    pytest.param({"issuer": ""}, "at least 1 character", id="no issuer"),
    pytest.param({"jwks": "http://login.example/keys"}, "an https URL, or", id="http"),
    pytest.param({"jwks": "file:///keys"}, "an https URL, or", id="another scheme"),
    pytest.param({"jwks": " "}, "an https URL, or", id="no place of keys"),
    pytest.param({"jwks": "https:///keys"}, "the name of a host", id="no host"),
    pytest.param({"jwks": "https://a:b@c/keys"}, "without a user", id="a password"),
    pytest.param({"jwks": "https://c/keys#a"}, "a fragment", id="a fragment"),
    pytest.param({"jwks": "https://c:x/keys"}, "Port could not be cast", id="no port"),
    pytest.param({"jwks": "https://c/a b"}, "without spaces", id="a space"),
    pytest.param({"jwks_ca": "ca.pem"}, "jwks is a file", id="an authority of a file"),
    pytest.param({"algorithms": ["none"]}, "Input should be 'RS256'", id="none"),
    pytest.param({"algorithms": ["HS256"]}, "Input should be 'RS256'", id="HS256"),
    pytest.param({"algorithms": []}, "at least 1 item", id="no algorithm"),
    pytest.param({"scope_prefix": "a b"}, "without spaces", id="a space in a prefix"),
    pytest.param({"scope_prefix": "x" * 256}, "at most 255", id="a long prefix"),
    pytest.param({"user_claim": []}, "at least 1 item", id="no claim"),
    pytest.param({"leeway_s": 301}, "less than or equal to 300", id="a long leeway"),
    pytest.param({"leeway_s": True}, "should be a number", id="a flag as leeway"),
    pytest.param({"expired": "ignored"}, "'forced' or 'kept'", id="another end"),
    pytest.param({"secret": "x"}, "Extra inputs", id="an unknown key"),
]


@pytest.mark.parametrize(("given", "expected"), WRONG)
def test_wrong_settings_are_refused(given: dict[str, object], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        OauthSettings.model_validate({**LEAST, **given})


@pytest.mark.parametrize("missing", LEAST)
def test_these_have_no_default(missing: str) -> None:
    given = {name: value for name, value in LEAST.items() if name != missing}
    with pytest.raises(ValidationError, match=f"(?s){missing}.*Field required"):
        OauthSettings.model_validate(given)
