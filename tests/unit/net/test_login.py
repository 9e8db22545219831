"""Login: SASL on a real socket against a users file (core 5.3)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.performatives import Open
from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SASL_SYS_TEMP, SaslMechanisms, SaslOutcome
from broker.app import App
from broker.http.access import Access
from broker.management.request import Refused
from broker.security.bearer import name_of
from broker.security.entrance import HTTP, Entrance
from broker.security.throttle import SPRAY_FAILURES
from broker.security.users import Users
from broker.settings import MEMORY, Settings
from tests.support.audit import RecordingAudit
from tests.support.broker import RecordingWatcher
from tests.support.http import basic
from tests.support.socket_client import SocketClient
from tests.support.tokens import TokenIssuer, oauth

pytestmark = pytest.mark.requirement("SEC-02")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    users_file = tmp_path / "users"
    Users(users_file).add("ada", "engine")
    # all clients of this test are of this machine
    return Settings(port=0, users_file=users_file, store=MEMORY, limit_loopback=False)


ATTEMPTS = [
    pytest.param("PLAIN", b"\0ada\0engine", SASL_OK, id="name and password"),
    pytest.param("PLAIN", b"ada\0ada\0engine", SASL_OK, id="authorized as oneself"),
    pytest.param("PLAIN", b"bob\0ada\0engine", SASL_AUTH, id="authorized as somebody else"),
    pytest.param("PLAIN", b"\0ada\0wrong", SASL_AUTH, id="wrong password"),
    pytest.param("PLAIN", b"\0bob\0engine", SASL_AUTH, id="unknown user"),
    pytest.param("PLAIN", b"\0ada\0", SASL_AUTH, id="empty password"),
    pytest.param("PLAIN", b"ada", SASL_AUTH, id="no NUL"),
    pytest.param("PLAIN", b"\0a\0b\0c", SASL_AUTH, id="three NULs"),
    pytest.param("PLAIN", b"\0\xff\xfe\0engine", SASL_AUTH, id="not UTF-8"),
    pytest.param("ANONYMOUS", b"", SASL_AUTH, id="anonymous where there are users"),
    pytest.param("SCRAM-SHA-1", b"n,,n=ada,r=x", SASL_AUTH, id="a mechanism not offered"),
]


@pytest.mark.attack("A4")
@pytest.mark.parametrize(("mechanism", "response", "code"), ATTEMPTS)
async def test_the_outcome_tells(app: App, mechanism: str, response: bytes, code: int) -> None:
    async with SocketClient(app.port) as client:
        client.login(mechanism, response)
        assert await client.header() == SASL_HEADER
        offered = await client.next()
        assert isinstance(offered, SaslMechanisms)
        assert offered.mechanisms == ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]
        outcome = await client.next()
        assert isinstance(outcome, SaslOutcome)
        assert outcome.code == code
        if code != SASL_OK:
            assert await client.eof()
            assert app.stats.authentication_failures == 1


async def test_open_may_be_pipelined_behind_the_password(app: App) -> None:
    async with SocketClient(app.port) as client:
        client.login("PLAIN", b"\0ada\0engine")
        client.send_bytes(AMQP_HEADER)
        client.send(Open(container_id="eager"))
        assert await client.header() == SASL_HEADER
        assert isinstance(await client.next(), SaslMechanisms)
        assert isinstance(await client.next(), SaslOutcome)
        assert await client.header() == AMQP_HEADER
        assert isinstance(await client.next(), Open)
    assert app.stats.connections_opened == 1


@pytest.mark.attack("A3")
async def test_leaving_the_sasl_layer_out_does_not_get_around_it(app: App) -> None:
    async with SocketClient(app.port) as client:
        client.send_bytes(AMQP_HEADER)
        assert await client.header() == SASL_HEADER
        assert await client.eof()


async def attempt(app: App, password: str, local: str) -> int:
    """Log in as ada from the address `local`; return the SASL outcome code."""
    async with SocketClient(app.port, local=local, patience_s=30) as client:
        client.login("PLAIN", b"\0ada\0" + password.encode())
        assert await client.header() == SASL_HEADER
        assert isinstance(await client.next(), SaslMechanisms)
        outcome = await client.next()
        assert isinstance(outcome, SaslOutcome)
        return outcome.code


FLOOD = 400


@pytest.mark.attack("A5")
async def test_wrong_passwords_of_one_source_do_not_delay_another(app: App) -> None:
    """Issue: 400 wrong passwords delayed a correct login by seven seconds."""
    flood = [asyncio.create_task(attempt(app, f"{n}", "127.0.0.2")) for n in range(FLOOD)]
    await until_one_is_done(flood)
    assert await attempt(app, "engine", "127.0.0.3") == SASL_OK
    codes = Counter(await asyncio.gather(*flood))
    assert set(codes) == {SASL_AUTH, SASL_SYS_TEMP}
    assert codes[SASL_SYS_TEMP] > 0, "those that lost their place may try again"


async def until_one_is_done(tasks: list[asyncio.Task[int]]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def test_a_password_that_was_right_is_not_hashed_again(app: App, settings: Settings) -> None:
    assert await attempt(app, "engine", "127.0.0.2") == SASL_OK
    flood = [asyncio.create_task(attempt(app, f"{n}", "127.0.0.2")) for n in range(50)]
    await until_one_is_done(flood)
    assert await attempt(app, "engine", "127.0.0.3") == SASL_OK
    assert not all(task.done() for task in flood), "it did not wait for a hash"
    await asyncio.gather(*flood)
    Users(settings.users_file).add("ada", "changed")
    assert await attempt(app, "engine", "127.0.0.3") == SASL_AUTH
    assert await attempt(app, "changed", "127.0.0.3") == SASL_OK


async def over_amqp(app: App) -> None:
    assert await attempt(app, "wrong", "127.0.0.1") == SASL_AUTH


async def over_http(app: App) -> None:
    entrance = Entrance(listener=HTTP, kind=HTTP, host="127.0.0.1")
    authorization = basic("ada", "wrong")["Authorization"]
    with pytest.raises(Refused, match="the password is wrong"):
        await Access(app.container, is_local=True).check(authorization, "localhost", entrance)


@pytest.mark.requirement("SEC-08")
@pytest.mark.parametrize("fail", [over_amqp, over_http])
async def test_a_user_whose_logins_fail_everywhere_is_reported(
    app: App, fail: Callable[[App], Awaitable[None]]
) -> None:
    app.container.audit = audit = RecordingAudit()
    app.container.watcher = watcher = RecordingWatcher()
    assert app.login is not None
    for number in range(SPRAY_FAILURES - 1):
        app.login.note(f"10.0.0.{number}", "ada", success=False)
    assert audit.events == []
    await fail(app)
    (event,) = [event for event in audit.events if event.action == "auth.spray"]
    assert (event.resource, event.result) == ("user:ada", "failed")
    assert event.after == {"failures": SPRAY_FAILURES}
    told = "noticed 100 logins of user 'ada' have failed within an hour: is it attacked?"
    assert watcher.events.count(told) == 1


@pytest.mark.requirement("SEC-08")
async def test_a_token_that_fails_everywhere_is_reported(
    tmp_path: Path, settings: Settings
) -> None:
    with_tokens = settings.model_copy(update={"oauth": oauth(tmp_path, TokenIssuer())})
    app = App(with_tokens)
    await app.start()
    app.container.audit = audit = RecordingAudit()
    assert app.login is not None
    for number in range(SPRAY_FAILURES - 1):
        app.login.note(f"10.0.0.{number}", name_of("x"), success=False)
    entrance = Entrance(listener=HTTP, kind=HTTP, host="127.0.0.1")
    with pytest.raises(Refused, match="the token is not taken"):
        await Access(app.container, is_local=True).check("Bearer x", "localhost", entrance)
    assert ("auth.spray", f"user:{name_of('x')}", "failed") in audit.told()
    await app.stop()


@pytest.fixture
async def open_app(tmp_path: Path) -> AsyncIterator[App]:
    """Start a broker without users, which any client may enter."""
    running = App(Settings(port=0, users_file=tmp_path / "none", store=MEMORY))
    await running.start()
    yield running
    await running.stop()


CLAIMS = [
    pytest.param(b"\0guest\0guest", "guest", id="what clients send by default"),
    pytest.param(b"other\0guest\0x", "guest", id="for somebody else"),
    pytest.param(b"\0guest\0", "guest", id="no password"),
    pytest.param(b"\0\0", "", id="no name"),
]


@pytest.mark.parametrize(("response", "claimed"), CLAIMS)
async def test_where_anybody_may_enter_any_name_does(
    open_app: App, response: bytes, claimed: str
) -> None:
    async with SocketClient(open_app.port) as client:
        client.login("PLAIN", response)
        assert await client.header() == SASL_HEADER
        offered = await client.next()
        assert isinstance(offered, SaslMechanisms)
        assert offered.mechanisms == ["PLAIN", "ANONYMOUS"]
        outcome = await client.next()
        assert isinstance(outcome, SaslOutcome)
        assert outcome.code == SASL_OK
        await client.open("guest's")
        (peer,) = open_app.container.peers()
        assert (peer.identity.user, peer.identity.claimed_user) == ("", claimed)


async def test_what_is_no_plain_response_is_refused_there_too(open_app: App) -> None:
    async with SocketClient(open_app.port) as client:
        client.login("PLAIN", b"guest")
        assert await client.header() == SASL_HEADER
        assert isinstance(await client.next(), SaslMechanisms)
        outcome = await client.next()
        assert isinstance(outcome, SaslOutcome)
        assert outcome.code == SASL_AUTH


@pytest.mark.parametrize(
    "spoilt", [pytest.param(False, id="users"), pytest.param(True, id="a file that is spoilt")]
)
async def test_any_name_enters_only_while_there_are_no_users(
    open_app: App, tmp_path: Path, spoilt: bool
) -> None:
    assert await attempt(open_app, "x", "127.0.0.1") == SASL_OK
    Users(tmp_path / "none").add("ada", "engine")
    if spoilt:
        (tmp_path / "none").write_text("ada\n")
    assert await attempt(open_app, "x", "127.0.0.1") == SASL_AUTH


async def test_users_keep_any_name_out_though_anybody_may_enter_anonymously(
    tmp_path: Path,
) -> None:
    Users(tmp_path / "users").add("ada", "engine")
    settings = Settings(port=0, users_file=tmp_path / "users", store=MEMORY, allow_anonymous=True)
    app = App(settings)
    await app.start()
    assert await attempt(app, "x", "127.0.0.1") == SASL_AUTH
    assert await attempt(app, "engine", "127.0.0.1") == SASL_OK
    await app.stop()
