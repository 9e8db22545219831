"""A broker whose clients speak TLS: on a real socket, with certificates made for the test."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from broker.amqp.frames import SASL_HEADER
from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SaslMechanisms, SaslOutcome
from broker.app import App
from broker.reload import apply
from broker.security.users import Users
from broker.serving import ready_line
from broker.settings import MEMORY, SettingsError, given_settings
from tests.support.broker import RecordingWatcher
from tests.support.certificates import Authority
from tests.support.socket_client import SocketClient

pytestmark = pytest.mark.requirement("SEC-01")

SCRAM = ["SCRAM-SHA-512", "SCRAM-SHA-256"]


class Site:
    """The files of a broker with a listener of TLS that asks for certificates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.authority.write(folder)
        self.renew()
        self.users = Users(folder / "users")
        self.users.add("ada", "engine", certificates=["ada.example"])
        self.users.add("bob", "tulip")

    def renew(self) -> bytes:
        """Write a new certificate of the broker; return it as DER."""
        server = self.authority.issue("localhost")
        self.certificate, self.key = server.write(self.folder, "server")
        return server.der

    def app(self, *, kind: str = "amqps", **tls: object) -> App:
        table: dict[str, object] = {
            "certificate": self.certificate,
            "key": self.key,
            "client_ca": self.folder / "ca.pem",
            "client_certificates": "ask",
            "user_from": "san:dns",
            **tls,
        }
        settings = given_settings(
            port=0,
            users_file=self.users.file,
            store=MEMORY,
            listener=[{"name": "secure", "kind": kind, "port": 0, "tls": table}],
        )
        return App(settings, watcher=RecordingWatcher())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
async def app(site: Site) -> AsyncIterator[App]:
    running = site.app()
    await running.start()
    yield running
    await running.stop()


def port_of(app: App) -> int:
    return app.listeners.each[1].port


def reports(app: App) -> list[str]:
    assert isinstance(app.container.watcher, RecordingWatcher)
    return app.container.watcher.events


async def offered(client: SocketClient) -> list[str]:
    client.send_bytes(SASL_HEADER)
    assert await client.header() == SASL_HEADER
    mechanisms = await client.next()
    assert isinstance(mechanisms, SaslMechanisms)
    return mechanisms.mechanisms


async def outcome(app: App, tls: ssl.SSLContext, mechanism: str, response: bytes) -> int:
    async with SocketClient(port_of(app), tls=tls) as client:
        client.login(mechanism, response)
        assert await client.header() == SASL_HEADER
        await client.next()
        told = await client.next()
        assert isinstance(told, SaslOutcome)
        return told.code


async def test_a_client_opens_a_connection_over_tls(site: Site, app: App) -> None:
    url = app.listeners.each[1].url()
    assert url.startswith("amqps://127.0.0.1:")
    assert ready_line(app).endswith(f" secure={url}")
    async with SocketClient(port_of(app), tls=site.authority.client()) as client:
        client.login("PLAIN", b"\0bob\0tulip")
        await client.header()
        for _ in ("mechanisms", "outcome"):
            await client.next()
        await client.open("shop")
        (peer,) = app.container.peers()
        assert (peer.entrance.listener, peer.entrance.is_tls) == ("secure", True)
        assert (peer.identity.user, peer.identity.mechanism) == ("bob", "PLAIN")


async def test_external_is_offered_only_to_a_certificate_of_a_user(site: Site, app: App) -> None:
    ada, stranger = site.authority.issue("ada.example"), site.authority.issue("eve.example")
    for shown, expected in (
        (ada, ["EXTERNAL", *SCRAM, "PLAIN"]),
        (stranger, [*SCRAM, "PLAIN"]),
        (None, [*SCRAM, "PLAIN"]),
    ):
        async with SocketClient(port_of(app), tls=site.authority.client(shown)) as client:
            assert await offered(client) == expected


EXTERNALS = [
    pytest.param("ada.example", b"", SASL_OK, id="the user of the certificate"),
    pytest.param("ada.example", b"ada", SASL_OK, id="the user by its name"),
    pytest.param("ada.example", b"bob", SASL_AUTH, id="as another user"),
    pytest.param("eve.example", b"", SASL_AUTH, id="a certificate of no user"),
    pytest.param("eve.example", b"ada", SASL_AUTH, id="a certificate of no user, with a name"),
]


@pytest.mark.parametrize(("name", "response", "code"), EXTERNALS)
async def test_a_login_by_certificate(
    site: Site, app: App, name: str, response: bytes, code: int
) -> None:
    shown = site.authority.issue(name)
    assert await outcome(app, site.authority.client(shown), "EXTERNAL", response) == code


async def test_a_certificate_with_two_names_stands_for_no_user(site: Site, app: App) -> None:
    shown = site.authority.issue("ada.example", "bob.example")
    assert await outcome(app, site.authority.client(shown), "EXTERNAL", b"") == SASL_AUTH


async def test_a_certificate_that_two_users_claim_stands_for_neither(site: Site, app: App) -> None:
    site.users.add("bob", "tulip", certificates=["ada.example"])
    shown = site.authority.issue("ada.example")
    assert await outcome(app, site.authority.client(shown), "EXTERNAL", b"") == SASL_AUTH


async def shown_by(app: App, tls: ssl.SSLContext) -> bytes:
    """Return the certificate that the broker shows to a new client, as DER."""
    async with SocketClient(port_of(app), tls=tls) as client:
        encrypted = client.writer.get_extra_info("ssl_object")
        return bytes(encrypted.getpeercert(binary_form=True))


async def test_a_new_certificate_is_used_and_open_connections_go_on(site: Site, app: App) -> None:
    async with SocketClient(port_of(app), tls=site.authority.client()) as early:
        before = await shown_by(app, site.authority.client())
        renewed = site.renew()
        assert await shown_by(app, site.authority.client()) == before, (
            "until the files are looked at"
        )
        app.listeners.watch_tls()
        assert await shown_by(app, site.authority.client()) == renewed != before
        assert await offered(early) == [*SCRAM, "PLAIN"]
    told = "noticed listener secure: new certificates are in use: "
    assert any(each.startswith(told) for each in reports(app))


async def test_a_certificate_that_cannot_be_used_leaves_the_former_one(
    site: Site, app: App
) -> None:
    before = await shown_by(app, site.authority.client())
    site.certificate.write_text("no certificate")
    with pytest.raises(SettingsError, match="listener secure: tls"):
        apply(app, app.settings)
    app.listeners.watch_tls()
    assert await shown_by(app, site.authority.client()) == before


async def test_a_client_without_tls_is_cut_off_and_counted(site: Site, app: App) -> None:
    async with SocketClient(port_of(app)) as client:
        client.send_bytes(SASL_HEADER)
        with suppress(ConnectionResetError):
            assert await client.eof()
    assert app.stats.tls_handshakes_failed == 1
    (told,) = [event for event in reports(app) if "TLS handshake" in event]
    assert told.startswith("noticed listener secure: TLS handshake with 127.0.0.1 failed: ")
    async with SocketClient(port_of(app), tls=site.authority.client()) as good:
        assert await offered(good) == [*SCRAM, "PLAIN"]


def test_files_that_cannot_be_used_stop_the_start(site: Site) -> None:
    with pytest.raises(SettingsError, match="listener secure: tls"):
        site.app(key=site.folder / "none.key")
