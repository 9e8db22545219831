"""Reloaded TLS and tokens: all of the new settings are in force for new connections, or none."""

from __future__ import annotations

import hashlib
import io
import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SaslOutcome
from broker.app import App
from broker.audit.record import BROKER
from broker.log_lines import configure_logging
from broker.management.configuration import APPLIED, NEEDS_RESTART, UNCHANGED, WrongSettings
from broker.reload import Reloading, apply, plan, reload
from broker.security.users import Users
from broker.settings import MEMORY, Settings, SettingsError, given_settings
from tests.support.certificates import Authority
from tests.support.socket_client import SocketClient
from tests.support.tokens import TokenIssuer, oauth

pytestmark = [pytest.mark.requirement("SEC-01"), pytest.mark.requirement("SEC-07")]


class Site:
    """The files of a broker with a listener of TLS, and of one that takes tokens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.authority.write(folder)
        self.authority.issue("localhost").write(folder, "server")
        self.issuer = TokenIssuer()
        users = Users(folder / "users")
        users.add("ada", "engine", certificates=["ada.example"], roles=["admin"])

    def settings(self, tls: Mapping[str, object] | None = None, /, **given: object) -> Settings:
        return given_settings(
            **{
                "port": 0,
                "users_file": self.folder / "users",
                "store": MEMORY,
                "listener": [{"name": "secure", "kind": "amqps", "port": 0}],
                "tls": {**self.tls(), **(tls or {})},
                "oauth": oauth(self.folder, self.issuer).model_dump(),
                **given,
            }
        )

    def tls(self) -> dict[str, object]:
        return {
            "certificate": self.folder / "server.pem",
            "key": self.folder / "server.key",
            "client_ca": self.folder / "ca.pem",
            "client_certificates": "ask",
        }


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
async def app(site: Site) -> AsyncIterator[App]:
    running = App(site.settings())
    await running.start()
    yield running
    await running.stop()


async def shown_by(app: App, tls: ssl.SSLContext) -> ssl.SSLObject:
    """Return the state of TLS of a new connection, which has ended."""
    async with SocketClient(app.listeners.each[1].port, tls=tls) as client:
        found = client.writer.get_extra_info("ssl_object")
        assert isinstance(found, ssl.SSLObject)
        return found


async def outcome(app: App, tls: ssl.SSLContext, mechanism: str, response: bytes) -> int:
    async with SocketClient(app.listeners.each[1].port, tls=tls) as client:
        client.login(mechanism, response)
        await client.header()
        await client.next()
        told = await client.next()
        assert isinstance(told, SaslOutcome)
        return told.code


async def test_a_certificate_of_another_file_is_used(site: Site, app: App) -> None:
    other = site.authority.issue("localhost")
    certificate, key = other.write(site.folder, "other")
    wanted = site.settings({"certificate": certificate, "key": key})
    assert plan(app, wanted).result.applied == ["tls"], "a dry run"
    before = await shown_by(app, site.authority.client())
    assert before.getpeercert(binary_form=True) != other.der
    assert apply(app, wanted).applied == ["tls"]
    after = await shown_by(app, site.authority.client())
    assert after.getpeercert(binary_form=True) == other.der


async def test_a_reload_tells_which_certificate_is_new(
    site: Site, app: App, capsys: pytest.CaptureFixture[str]
) -> None:
    reloading = Reloading(app, site.settings)

    def told(*, dry_run: bool = False) -> str:
        effects = reloading.reload(dry_run=dry_run, actor=BROKER, request_id=None)
        assert list(effects.certificates) == ["secure"], "a listener without TLS has none"
        return effects.certificates["secure"]

    first = told()
    assert re.fullmatch(r"unchanged: SHA-256 [0-9A-F:]{95}, ends .* UTC, .*server\.pem", first)
    renewed = site.authority.issue("localhost")
    renewed.write(site.folder, "server")
    sha256 = hashlib.sha256(renewed.der).digest().hex(":").upper()
    for dry_run in (True, False):
        assert told(dry_run=dry_run).startswith("new certificate: ")
    assert told().startswith(f"unchanged: SHA-256 {sha256}, ends ")
    Authority().write(site.folder)
    assert told().startswith("other files or settings, the certificate is the same: ")
    used = [line for line in capsys.readouterr().err.splitlines() if "TLS-001" in line]
    assert [sha256 in line for line in used] == [True, True], "a dry run logs nothing"


async def test_a_table_of_the_listener_takes_the_place_of_the_common_one(
    site: Site, app: App
) -> None:
    table = {**site.tls(), "minimum": "1.3"}
    listener = {"name": "secure", "kind": "amqps", "port": 0, "tls": table}
    old = site.authority.client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert (await shown_by(app, old)).version() == "TLSv1.2"
    assert apply(app, site.settings(listener=[listener])).applied == ["listener"]
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
        await shown_by(app, old)
    assert apply(app, site.settings()).applied == ["listener"]
    assert (await shown_by(app, old)).version() == "TLSv1.2"


async def test_certificates_of_clients_name_users_after_a_reload(site: Site, app: App) -> None:
    ada = site.authority.client(site.authority.issue("ada.example"))
    assert await outcome(app, ada, "EXTERNAL", b"") == SASL_AUTH
    assert apply(app, site.settings({"user_from": "san:dns"})).applied == ["tls"]
    assert await outcome(app, ada, "EXTERNAL", b"") == SASL_OK
    none = {"client_certificates": "no", "client_ca": None}
    apply(app, site.settings(none))
    assert await outcome(app, ada, "EXTERNAL", b"") == SASL_AUTH


async def test_tokens_are_judged_by_the_new_table(site: Site, app: App) -> None:
    named = site.issuer.token(aud="web", preferred_username="ada-by-token")
    response = f"\0ada-by-token\0{named}".encode()
    assert await outcome(app, site.authority.client(), "PLAIN", response) == SASL_AUTH
    changed = oauth(site.folder, site.issuer, audience="web").model_dump()
    assert apply(app, site.settings(oauth=changed)).applied == ["oauth"]
    assert await outcome(app, site.authority.client(), "PLAIN", response) == SASL_OK


def stranger(site: Site) -> dict[str, object]:
    Authority().issue("localhost").write(site.folder, "stranger")
    return {"tls": {**site.tls(), "key": site.folder / "stranger.key"}}


BROKEN = [
    pytest.param(lambda _site: {}, "server.pem", "nothing", id="the file of the certificate"),
    pytest.param(stranger, "", "does not belong to the certificate", id="the key of another"),
    pytest.param(lambda _site: {}, "jwks.json", "it is not JSON", id="the keys of tokens"),
]


@pytest.mark.parametrize(("change", "file", "told"), BROKEN)
async def test_what_cannot_be_used_refuses_the_whole_reload(
    site: Site, app: App, change: object, file: str, told: str
) -> None:
    assert callable(change)
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    before, shown = app.settings, await shown_by(app, site.authority.client())
    wanted = site.settings(**{"credit": 7, **change(site)})
    if file:
        (site.folder / file).write_text("nothing")
        told = "there is no line" if file.endswith(".pem") else told
    reloading = Reloading(app, lambda: wanted)
    for dry_run in (True, False):
        with pytest.raises(WrongSettings, match=told):
            reloading.reload(dry_run=dry_run, actor=BROKER, request_id=None)
    assert reload(app, lambda: wanted) is None
    assert (app.settings, app.container.credit) == (before, before.credit)
    again = await shown_by(app, site.authority.client())
    assert again.getpeercert(binary_form=True) == shown.getpeercert(binary_form=True)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    reasons = [line["reason"] for line in lines if line["event"].startswith("settings not")]
    assert len(reasons) == 2, "a dry run logs nothing"
    assert all(told in reason for reason in reasons)


def secure(**given: object) -> dict[str, object]:
    return {"name": "secure", "kind": "amqps", "port": 0, **given}


HTTP_TABLE = {"port": 0, "tls": True}

RESTARTS = [
    # name, settings at the start, changed settings, effects
    pytest.param(
        {},
        {"listener": [secure(), {"name": "more", "port": 0}], "tls": {"minimum": "1.3"}},
        {"listener": NEEDS_RESTART, "tls": APPLIED},
        id="another listener",
    ),
    pytest.param(
        {}, {"listener": [secure(kind="amqp")]}, {"listener": NEEDS_RESTART}, id="no TLS any more"
    ),
    pytest.param({}, {"oauth": None}, {"oauth": NEEDS_RESTART}, id="no tokens any more"),
    pytest.param({"oauth": None}, {}, {"oauth": NEEDS_RESTART}, id="tokens for the first time"),
    pytest.param(
        {"listener": [], "http": HTTP_TABLE},
        {"listener": [], "tls": None, "http": {"port": 0}},
        {"tls": NEEDS_RESTART, "http": NEEDS_RESTART},
        id="no table for HTTP, which needs it until a restart",
    ),
    pytest.param(
        {},
        {"listener": [], "tls": None},
        {"listener": NEEDS_RESTART, "tls": NEEDS_RESTART},
        id="neither table nor listener",
    ),
    pytest.param(
        {"listener": [], "tls": None}, {"listener": []}, {"tls": APPLIED}, id="a table for nobody"
    ),
]


@pytest.mark.parametrize(("start", "changed", "effects"), RESTARTS)
def test_what_needs_a_restart(
    site: Site,
    start: dict[str, object],
    changed: dict[str, object],
    effects: dict[str, str],
) -> None:
    def settings(given: dict[str, object]) -> Settings:
        changed = given.get("tls", {})
        assert isinstance(changed, dict | None)
        tls = None if changed is None else site.tls() | changed
        return site.settings(**{**given, "tls": tls})

    app = App(settings(start))
    told = plan(app, settings(changed)).result.effects()
    assert {name: effect for name, effect in told.items() if effect != UNCHANGED} == effects


def test_a_listener_keeps_its_table_while_it_waits_for_a_restart(site: Site) -> None:
    app = App(site.settings())
    wanted = site.settings(listener=[secure(), {"name": "more", "port": 0}])
    apply(app, wanted)
    assert [each.name for each in app.settings.listeners()] == ["amqp", "secure"]
    with pytest.raises(SettingsError, match="no such file"):
        apply(app, site.settings({"certificate": site.folder / "none.pem"}))
