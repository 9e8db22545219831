"""The issuer's keys from a file, and by https from a server with a certificate."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.net.key_source import KeySource
from broker.oauth_settings import OauthSettings
from broker.security.token_keys import KEYS_BYTES_MAX, KeysError
from broker.settings import SettingsError
from tests.support.certificates import Authority
from tests.support.tokens import AUDIENCE, ISSUER, KeyServer, TokenIssuer, key_server, oauth

pytestmark = pytest.mark.requirement("SEC-07")

TOKENS = TokenIssuer()
AUTHORITY = Authority()


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with key_server(TOKENS, AUTHORITY) as running:
        yield running


def remote(server: KeyServer, ca: Path, url: str = "") -> OauthSettings:
    return OauthSettings(issuer=ISSUER, audience=AUDIENCE, jwks=url or server.url, jwks_ca=ca)


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    return AUTHORITY.write(tmp_path)


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    source = KeySource(oauth(tmp_path, TOKENS))
    source.check()
    assert [each.kid for each in source.read()] == ["first"]


def test_keys_are_fetched_by_https(server: KeyServer, ca: Path) -> None:
    source = KeySource(remote(server, ca, f"{server.url}?v=1"))
    assert [each.kid for each in source.read()] == ["first"]
    assert server.asked == ["/keys?v=1"]


def test_a_certificate_of_another_authority_is_refused(server: KeyServer, tmp_path: Path) -> None:
    other = Authority().write(tmp_path, "other")
    with pytest.raises(KeysError, match=r"its certificate is not trusted: .*Set jwks_ca"):
        KeySource(remote(server, other)).read()
    assert server.asked == []


def test_a_certificate_of_another_host_is_refused(server: KeyServer, ca: Path) -> None:
    by_address = server.url.replace("localhost", "127.0.0.1")
    with pytest.raises(KeysError, match="its certificate is not trusted"):
        KeySource(remote(server, ca, by_address)).read()


def test_a_redirect_is_not_followed(server: KeyServer, ca: Path) -> None:
    server.status, server.headers = 302, {"location": f"{server.url}/elsewhere"}
    with pytest.raises(KeysError, match="status 302"):
        KeySource(remote(server, ca)).read()
    assert server.asked == ["/keys"]


ANSWERS = [
    pytest.param(500, b"{}", "status 500", id="an error of the server"),
    pytest.param(200, b"<html>", "not JSON", id="a page"),
    pytest.param(200, b"x" * (KEYS_BYTES_MAX + 1), "more than 262144 bytes", id="too much"),
]


@pytest.mark.parametrize(("status", "body", "reason"), ANSWERS)
def test_other_answers_are_errors(
    server: KeyServer, ca: Path, status: int, body: bytes, reason: str
) -> None:
    server.status, server.body = status, body
    with pytest.raises(KeysError, match=reason):
        KeySource(remote(server, ca)).read()


def test_a_server_that_goes_on_sending_is_left_in_time(server: KeyServer, ca: Path) -> None:
    server.goes_on = threading.Event()
    try:
        with pytest.raises(KeysError, match=r"longer than 0\.3 seconds|cannot be fetched"):
            KeySource(remote(server, ca), fetch_s=0.3).read()
    finally:
        server.goes_on.set()


def test_nothing_listens_there(ca: Path) -> None:
    with key_server(TOKENS, AUTHORITY) as server:
        settings = remote(server, ca)
    with pytest.raises(KeysError, match=r"^jwks = 'https://localhost:.*it cannot be fetched"):
        KeySource(settings).read()


BAD_FILES = [
    pytest.param({"jwks": "absent.json"}, "jwks = 'absent.json': it cannot be read", id="no file"),
    pytest.param(
        {"jwks": "https://a.example/", "jwks_ca": "absent.pem"},
        "jwks_ca = 'absent.pem'",
        id="no authority",
    ),
]


@pytest.mark.parametrize(("given", "reason"), BAD_FILES)
def test_a_bad_file_stops_the_start(given: dict[str, object], reason: str) -> None:
    fields = {"issuer": ISSUER, "audience": AUDIENCE, **given}
    with pytest.raises(SettingsError, match=f"oauth: {reason}"):
        KeySource(OauthSettings.model_validate(fields)).check()
