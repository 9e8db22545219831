"""Whether clients can log in at every listener, by the settings alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.net.offers import check_offers
from broker.parts import login_of
from broker.security.entrance import Entrance
from broker.security.users import Users
from broker.settings import MEMORY, Settings, SettingsError, given_settings
from tests.support.tokens import TokenIssuer, oauth

pytestmark = pytest.mark.requirement("SEC-07")

TLS = {"certificate": "server.pem", "key": "server.key"}
ASKS = {**TLS, "client_certificates": "ask", "client_ca": "ca.pem"}
SCRAM = ["SCRAM-SHA-512", "SCRAM-SHA-256"]
TOKENS = ["OAUTHBEARER", "XOAUTH2"]
ISSUER = TokenIssuer()


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    """Return a function that makes settings with one more listener and an issuer."""

    def make(listener: dict[str, object], *, users: bool = False, **given: object) -> Settings:
        file = tmp_path / "users"
        if users:
            Users(file).add("ada", "engine")
        each = {"name": "other", "port": 0, **listener}
        known = {"oauth": oauth(tmp_path, ISSUER), "users_file": file, "store": MEMORY}
        return given_settings(port=0, listener=[each], **{**known, **given})

    return make


AWAY = {"bind": "192.0.2.9"}
BY_TLS = {**AWAY, "kind": "amqps", "tls": TLS}

REFUSED = [
    # listener, whether there are users, other settings; what the error says
    pytest.param(
        AWAY, False, {}, "without TLS, and offers none there: set kind", id="tokens alone"
    ),
    pytest.param(
        {**AWAY, "mechanisms": ["PLAIN"]}, True, {}, "offers none of PLAIN there", id="PLAIN alone"
    ),
    pytest.param(
        {**BY_TLS, "mechanisms": ["EXTERNAL"]},
        True,
        {},
        "offers no mechanism of EXTERNAL",
        id="EXTERNAL, and no client is asked for a certificate",
    ),
    pytest.param(
        {"mechanisms": ["SCRAM-SHA-256"]},
        False,
        {},
        "offers no mechanism of SCRAM-SHA-256",
        id="SCRAM without users",
    ),
    pytest.param(
        {"mechanisms": ["ANONYMOUS"]},
        True,
        {},
        "offers no mechanism of ANONYMOUS",
        id="ANONYMOUS where none may enter so",
    ),
]


@pytest.mark.parametrize(("listener", "users", "given", "reason"), REFUSED)
def test_a_listener_without_a_mechanism_stops_the_start(
    settings: Callable[..., Settings],
    listener: dict[str, object],
    users: bool,
    given: dict[str, object],
    reason: str,
) -> None:
    with pytest.raises(SettingsError, match=reason):
        login_of(settings(listener, users=users, **given))


OFFERED = [
    # listener, other settings; the mechanisms for a client of another machine
    pytest.param(BY_TLS, {}, [*SCRAM, *TOKENS, "PLAIN"], id="all"),
    pytest.param({**BY_TLS, "mechanisms": TOKENS}, {}, TOKENS, id="tokens alone"),
    pytest.param({**BY_TLS, "mechanisms": ["PLAIN"]}, {}, ["PLAIN"], id="PLAIN alone"),
    pytest.param(AWAY, {}, SCRAM, id="without TLS no token is asked for"),
    pytest.param(
        AWAY, {"plain": "always"}, [*SCRAM, *TOKENS, "PLAIN"], id="unless the operator does"
    ),
    pytest.param(
        {**BY_TLS, "tls": ASKS, "mechanisms": ["EXTERNAL"]},
        {},
        ["EXTERNAL"],
        id="EXTERNAL, before a certificate is seen",
    ),
]


@pytest.mark.attack("A6")
@pytest.mark.parametrize(("listener", "given", "expected"), OFFERED)
def test_a_listener_offers(
    settings: Callable[..., Settings],
    listener: dict[str, object],
    given: dict[str, object],
    expected: list[str],
) -> None:
    made = settings(listener, users=True, **given)
    login = login_of(made)
    check_offers(made, login)
    is_tls = "tls" in listener
    client = Entrance(listener="other", kind="amqps", host="192.0.2.7", is_tls=is_tls)
    assert login.mechanisms(client) == expected


@pytest.mark.attack("A6")
def test_a_listener_may_keep_anonymous_clients_out(settings: Callable[..., Settings]) -> None:
    """Also those that leave the SASL layer out."""
    made = settings({"mechanisms": TOKENS}, users=True, allow_anonymous=True)
    login = login_of(made)
    for listener, expected in (("amqp", True), ("other", False)):
        client = Entrance(listener=listener, kind="amqp", host="127.0.0.1")
        assert (login.begin(client).anonymous() is not None) is expected
        assert ("ANONYMOUS" in login.mechanisms(client)) is expected


def test_tls_lets_a_user_without_scram_log_in(
    settings: Callable[..., Settings], tmp_path: Path
) -> None:
    Users(tmp_path / "users").add("bob", "tulip", scram=False)
    assert login_of(settings(BY_TLS)).users.without_scram() == ["bob"]
    with pytest.raises(SettingsError, match="no verifier: bob"):
        login_of(settings(AWAY))


def test_an_issuer_counts_as_users(settings: Callable[..., Settings]) -> None:
    """Else a broker that takes tokens would let any client on its machine in."""
    login = login_of(settings({}))
    assert not login.anonymous
    client = Entrance(listener="amqp", kind="amqp", host="127.0.0.1")
    assert login.mechanisms(client) == [*TOKENS, "PLAIN"]


def test_mechanisms_of_tokens_need_an_issuer(settings: Callable[..., Settings]) -> None:
    with pytest.raises(SettingsError, match=r"no table oauth: set issuer, audience and jwks"):
        settings({"mechanisms": ["XOAUTH2"]}, oauth=None)
