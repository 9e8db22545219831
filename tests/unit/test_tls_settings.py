"""The table `tls`: what it takes, and errors that name the key and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pydantic import ValidationError

from broker.tls_settings import NAMES_MAX, TlsNameSettings, TlsSettings

LEAST: Final[dict[str, object]] = {"certificate": "a.pem", "key": "a.key"}
ASKS: Final[dict[str, object]] = {
    **LEAST,
    "client_certificates": "require",
    "client_ca": "ca.pem",
}


def name(host: str) -> dict[str, object]:
    return {"host": host, "certificate": "b.pem", "key": "b.key"}


def test_defaults() -> None:
    settings = TlsSettings.model_validate(LEAST)
    assert settings == TlsSettings(certificate=Path("a.pem"), key=Path("a.key"))
    assert settings.client_certificates == "no"
    assert settings.minimum == "1.2"
    assert settings.name == ()


def test_every_key_is_taken() -> None:
    given = {
        **ASKS,
        "key_password_file": "password",
        "crl": "crl.pem",
        "minimum": "1.3",
        "user_from": "san:email",
        "name": [name("Orders.Example.")],
    }
    settings = TlsSettings.model_validate(given)
    assert settings.name[0].host == "orders.example"
    assert set(given) == set(TlsSettings.model_fields)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"certificate": "a.pem"}, "set key to", id="no key"),
        pytest.param({"key": "a.key"}, "set certificate to", id="no certificate"),
        pytest.param({}, "Field required", id="nothing"),
        pytest.param({**LEAST, "certificate": ""}, "path of a PEM file", id="an empty path"),
        pytest.param(
            {**LEAST, "client_certificates": "ask"}, "needs client_ca", id="asks, without CA"
        ),
        pytest.param(
            {**LEAST, "client_certificates": "maybe"}, "'no', 'ask' or 'require'", id="another word"
        ),
        pytest.param({**LEAST, "client_ca": "ca.pem"}, "remove client_ca", id="a useless CA"),
        pytest.param({**LEAST, "crl": "crl.pem"}, "remove crl", id="a useless list"),
        pytest.param(
            {**LEAST, "user_from": "subject:CN"}, "remove user_from", id="users of no certificate"
        ),
        pytest.param(
            {**ASKS, "user_from": "subject:O"}, "'subject:CN'", id="users of another field"
        ),
        pytest.param({**LEAST, "minimum": "1.1"}, "'1.2' or '1.3'", id="an old version"),
        pytest.param({**LEAST, "minimum": 1.3}, "'1.2' or '1.3'", id="a version as a number"),
        pytest.param({**LEAST, "ciphers": "ALL"}, "not permitted", id="an unknown key"),
        pytest.param(
            {**LEAST, "name": [name("a.b"), name("A.b")]}, "the host 'a.b'", id="a host twice"
        ),
        pytest.param({**LEAST, "name": [name("*.b")]}, "without wildcards", id="a wildcard"),
        pytest.param({**LEAST, "name": [name("a:5671")]}, "and ports", id="a port"),
        pytest.param({**LEAST, "name": [name("bücher.de")]}, "xn--", id="letters beyond ASCII"),
        pytest.param({**LEAST, "name": [name("a" * 254)]}, "one host name", id="a long name"),
        pytest.param(
            {**LEAST, "name": [{"host": "a", "certificate": "b.pem"}]},
            "set key to",
            id="a name without key",
        ),
    ],
)
def test_an_error_names_the_key_and_the_remedy(given: dict[str, object], expected: str) -> None:
    with pytest.raises(ValidationError) as raised:
        TlsSettings.model_validate(given)
    assert expected in str(raised.value)


def test_names_are_limited() -> None:
    most = tuple(
        TlsNameSettings(host=f"h{at}", certificate=Path("b"), key=Path("b"))
        for at in range(NAMES_MAX)
    )
    TlsSettings(certificate=Path("a"), key=Path("a"), name=most)
    with pytest.raises(ValidationError, match="at most 1000"):
        TlsSettings.model_validate({**LEAST, "name": [name(f"h{at}") for at in range(1001)]})
