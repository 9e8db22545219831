"""HTTP over TLS: on real sockets, with certificates made for the test."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from broker.app import App
from broker.http import events
from broker.reload import apply
from broker.security.users import Users
from broker.serving import ready_line
from broker.settings import MEMORY, SettingsError, given_settings
from storage.batch import Batch
from tests.support.broker import RecordingWatcher
from tests.support.certificates import Authority
from tests.support.http import PATIENCE_S, Answer, ask, basic, event
from tests.support.tls_listening import HALF, turn, until

pytestmark = pytest.mark.requirement("SEC-09")

BOB = basic("bob", "tulip")
BOUNDS = "/events/bounds"
STREAM = f"GET /arrow/events HTTP/1.1\r\nHost: x\r\nAuthorization: {BOB['Authorization']}\r\n\r\n"


class Site:
    """The files of a broker with HTTPS, and its users: ada by certificate, bob by password."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.authority.write(folder)
        self.renew()
        self.users = Users(folder / "users")
        self.users.add("ada", "engine", roles=["admin"], certificates=["ada.example"])
        self.users.add("bob", "tulip", roles=["pipeline"])
        self.users.add("carl", "daisy", roles=["application"], certificates=["carl.example"])

    def renew(self) -> bytes:
        """Write a new certificate of the broker; return it as DER."""
        server = self.authority.issue("localhost")
        self.certificate, self.key = server.write(self.folder, "server")
        return server.der

    def app(self, http: dict[str, int] | None = None, **tls: object) -> App:
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
            http={"port": 0, "tls": True, **(http or {})},
            tls=table,
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
    assert app.http is not None
    return app.http.port


def url_of(app: App) -> str:
    return f"https://localhost:{port_of(app)}"


async def status(app: App, tls: ssl.SSLContext, headers: dict[str, str] | None = None) -> int:
    return (await ask(url_of(app) + BOUNDS, headers, tls=tls)).status


async def test_a_user_reads_over_tls(site: Site, app: App) -> None:
    assert app.http is not None
    assert app.http.url() == f"https://127.0.0.1:{port_of(app)}"
    assert ready_line(app).endswith(f" http={app.http.url()}")
    assert (await ask(f"{url_of(app)}/livez", tls=site.authority.client())).body == b"ok\n"
    answer = await ask(url_of(app) + BOUNDS, BOB, tls=site.authority.client())
    assert json.loads(answer.body) == {"first": 0, "last": 0}


@pytest.mark.requirement("OPS-04")
async def test_metrics_say_when_the_certificate_ends(site: Site, app: App) -> None:
    answer = await ask(f"{url_of(app)}/metrics", BOB, tls=site.authority.client())
    assert answer.status == 403, "bob's role is for pipelines"
    shown = site.authority.issue("ada.example")
    answer = await ask(f"{url_of(app)}/metrics", tls=site.authority.client(shown))
    lines = dict(line.rsplit(" ", 1) for line in answer.body.decode().splitlines())
    left_s = float(lines['jms_broker_certificate_expiry_seconds{listener="http"}'])
    assert left_s > 0
    assert abs(left_s + time.time() - app.stats.listeners["http"].certificate_end_s) < 60
    assert lines["jms_broker_handshake_duration_seconds_count"] == "2"
    assert 'jms_broker_connections{listener="http"}' not in lines


LOGINS = [
    pytest.param("ada.example", None, 200, id="the certificate of a user"),
    pytest.param("eve.example", None, 401, id="a certificate of no user"),
    pytest.param(None, None, 401, id="no certificate"),
    pytest.param("carl.example", None, 403, id="the certificate of a user without the right"),
    pytest.param("carl.example", BOB, 200, id="a password beside a certificate"),
    pytest.param("ada.example", basic("bob", "x"), 401, id="a wrong one beside a certificate"),
]


@pytest.mark.parametrize(("name", "headers", "expected"), LOGINS)
async def test_a_login_by_certificate(
    site: Site, app: App, name: str | None, headers: dict[str, str] | None, expected: int
) -> None:
    shown = None if name is None else site.authority.issue(name)
    assert await status(app, site.authority.client(shown), headers) == expected


async def test_a_disabled_user_does_not_enter_by_certificate(site: Site, app: App) -> None:
    tls = site.authority.client(site.authority.issue("ada.example"))
    assert await status(app, tls) == 200
    site.users.set_enabled("ada", enabled=False)
    assert await status(app, tls) == 401


async def test_a_client_without_the_required_certificate_does_not_get_in(site: Site) -> None:
    app = site.app(client_certificates="require")
    await app.start()
    assert await status(app, site.authority.client(site.authority.issue("ada.example"))) == 200
    stranger = Authority().issue("ada.example")
    for shown in (None, stranger):
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            await status(app, site.authority.client(shown))
    assert app.stats.tls_handshakes_failed == 2
    await app.stop()


async def test_a_client_without_tls_is_cut_off_and_counted(app: App) -> None:
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        await ask(f"http://127.0.0.1:{port_of(app)}/livez")
    assert app.stats.tls_handshakes_failed == 1
    assert isinstance(app.container.watcher, RecordingWatcher)
    (told,) = app.container.watcher.events
    assert told.startswith("noticed listener http: TLS handshake with 127.0.0.1 failed: ")


def answered(kept: http.client.HTTPSConnection) -> int:
    """Return the status of a request on a connection that stays open."""
    kept.request("GET", BOUNDS, headers=BOB)
    response = kept.getresponse()
    response.read()
    return response.status


def shown_on(connection: http.client.HTTPSConnection) -> bytes | None:
    assert isinstance(connection.sock, ssl.SSLSocket)
    return connection.sock.getpeercert(binary_form=True)


async def test_new_certificates_are_used_and_open_connections_go_on(site: Site, app: App) -> None:
    def connection() -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "localhost", port_of(app), timeout=PATIENCE_S, context=site.authority.client()
        )

    early, late = connection(), connection()
    assert await asyncio.to_thread(answered, early) == 200
    before = shown_on(early)
    renewed = site.renew()
    apply(app, app.settings)
    assert await asyncio.to_thread(answered, late) == 200
    assert shown_on(late) == renewed != before
    assert await asyncio.to_thread(answered, early) == 200, "on its own connection"
    assert shown_on(early) == before
    early.close()
    late.close()


async def test_no_request_is_lost_while_certificates_change(site: Site, app: App) -> None:
    async def requests() -> list[int]:
        return [await status(app, site.authority.client(), BOB) for _ in range(15)]

    running = [asyncio.create_task(requests()) for _ in range(4)]
    reloads = 0
    while not all(task.done() for task in running):
        site.renew()
        apply(app, app.settings)
        reloads += 1
        await turn()
    assert [await task for task in running] == [[200] * 15] * 4
    assert reloads > 5


async def test_a_certificate_that_cannot_be_used_leaves_the_former_one(
    site: Site, app: App
) -> None:
    site.certificate.write_text("no certificate")
    with pytest.raises(SettingsError, match=r"^tls\.certificate = "):
        apply(app, app.settings)
    assert await status(app, site.authority.client(), BOB) == 200


async def filled(app: App, rows: int, address: str = "a") -> None:
    """Fill the event log."""
    batch = Batch()
    for number in range(1, rows + 1):
        batch.note_event(event(number, address=address))
    await app.store.commit(batch)


async def test_a_large_stream_arrives_whole(site: Site, app: App) -> None:
    await filled(app, 40_000)
    answer = await ask(f"{url_of(app)}/arrow/events", BOB, tls=site.authority.client())
    assert answer.table().num_rows == 40_000


async def test_a_stream_that_the_stop_cuts_off_is_not_whole(site: Site) -> None:
    app = site.app()
    await app.start()
    await filled(app, 40_000)
    reader, writer = await asyncio.open_connection(
        "localhost", port_of(app), ssl=site.authority.client(), limit=4096
    )
    writer.write(STREAM.encode())
    assert (await reader.readline()).split()[1] == b"200"
    await app.stop()
    body = b""
    with suppress(ConnectionError, ssl.SSLError):
        while some := await asyncio.wait_for(reader.read(65_536), PATIENCE_S):
            body += some
    assert not body.endswith(b"0\r\n\r\n")
    writer.transport.abort()


async def test_a_client_that_does_not_read_is_dropped(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is the setting silence_max_ms; encryption adds a buffer of its own."""
    monkeypatch.setattr(events, "ROWS_AT_ONCE", 1000)
    app = site.app(http={"silence_max_ms": 100, "streams_max": 1})
    await app.start()
    await filled(app, 60_000, address="a" * 200)
    reader, writer = await asyncio.open_connection(
        "localhost", port_of(app), ssl=site.authority.client(), limit=4096
    )
    writer.write(STREAM.encode())
    assert (await reader.readline()).split()[1] == b"200"
    refused = 503
    while refused == 503:
        answer = await ask(
            f"{url_of(app)}/arrow/events?behind=60000", BOB, tls=site.authority.client()
        )
        refused = answer.status
    assert refused == 200, "the first stream has ended"
    writer.transport.abort()
    await app.stop()


async def test_handshakes_that_do_not_go_on_keep_nobody_out(site: Site, app: App) -> None:
    """The limit is the handshakes of one source: of 40 connections 32 may begin theirs."""
    with ExitStack() as opened:
        for _ in range(40):
            each = socket.create_connection(
                ("127.0.0.1", port_of(app)), source_address=("127.0.0.2", 0)
            )
            opened.enter_context(each).send(HALF)
        answer: Answer = await ask(f"{url_of(app)}/livez", tls=site.authority.client())
        assert answer.status == 200
        assert app.stats.tls_handshakes_failed == 0
    await until(lambda: app.stats.tls_handshakes_failed == 40)


async def test_clients_that_hold_their_connection_do_not_hold_up_the_stop(site: Site) -> None:
    app = site.app()
    await app.start()
    opened = await asyncio.open_connection("localhost", port_of(app), ssl=site.authority.client())
    with socket.create_connection(("127.0.0.1", port_of(app))) as half:
        half.send(HALF)
        before = asyncio.get_running_loop().time()
        await app.stop()
        assert asyncio.get_running_loop().time() - before < PATIENCE_S / 2
    opened[1].transport.abort()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param({}, "http.tls = true, and there is no table tls", id="no certificate"),
        pytest.param(
            {"tls": {"certificate": "no.pem", "key": "no.key"}},
            "tls.certificate = 'no.pem': there is no such file",
            id="no such file",
        ),
    ],
)
def test_what_cannot_work_stops_the_start(given: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        App(given_settings(store=MEMORY, http={"port": 0, "tls": True}, **given))
