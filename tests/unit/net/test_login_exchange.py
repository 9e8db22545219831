"""Logins on a real socket: SCRAM, what is offered to whom, and failures in a row (core 5.3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.amqp.frames import SASL_HEADER
from broker.amqp.sasl_frames import (
    SASL_AUTH,
    SASL_OK,
    SASL_SYS_TEMP,
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
)
from broker.app import App
from broker.net.login import Login
from broker.security.entrance import Entrance
from broker.security.scram_verifier import ScramHash
from broker.security.throttle import FAILURES_PER_MINUTE
from broker.security.users import Users
from broker.settings import MEMORY, SettingsError, given_settings
from tests.support.broker import RecordingWatcher
from tests.support.scram_client import FormulaClient
from tests.support.socket_client import SocketClient

pytestmark = pytest.mark.requirement("SEC-02")

SCRAM = ["SCRAM-SHA-512", "SCRAM-SHA-256"]


@pytest.fixture
def users(tmp_path: Path) -> Users:
    made = Users(tmp_path / "users")
    made.add("ada", "engine")
    return made


@pytest.fixture
async def app(users: Users) -> AsyncIterator[App]:
    running = App(given_settings(port=0, users_file=users.file, store=MEMORY))
    await running.start()
    yield running
    await running.stop()


async def challenged(client: SocketClient) -> bytes:
    challenge = await client.next()
    assert isinstance(challenge, SaslChallenge)
    return challenge.challenge


async def outcome(client: SocketClient) -> int:
    told = await client.next()
    assert isinstance(told, SaslOutcome)
    return told.code


async def begin(client: SocketClient, mechanism: str, first: bytes) -> None:
    client.login(mechanism, first)
    assert await client.header() == SASL_HEADER
    assert isinstance(await client.next(), SaslMechanisms)


@pytest.mark.parametrize("hash_", ScramHash, ids=lambda each: each.value)
async def test_a_user_enters_by_scram(app: App, hash_: ScramHash) -> None:
    formulas = FormulaClient(hash_, "ada", "engine")
    async with SocketClient(app.port) as client:
        await begin(client, hash_.value, formulas.first())
        client.respond(formulas.final(await challenged(client)))
        assert formulas.knows(await challenged(client))
        client.respond(b"")
        assert await outcome(client) == SASL_OK
        await client.open("shop")
        (peer,) = app.container.peers()
        assert (peer.identity.user, peer.identity.mechanism) == ("ada", hash_.value)


WRONG = [
    pytest.param("ada", "tulip", id="a wrong password"),
    pytest.param("eve", "engine", id="an unknown user"),
]


@pytest.mark.attack("A5")
@pytest.mark.parametrize(("user", "password"), WRONG)
async def test_wrong_credentials_get_the_frames_that_right_ones_get(
    app: App, user: str, password: str
) -> None:
    formulas = FormulaClient(ScramHash.SHA_256, user, password)
    async with SocketClient(app.port) as client:
        await begin(client, "SCRAM-SHA-256", formulas.first())
        client.respond(formulas.final(await challenged(client)))
        assert await outcome(client) == SASL_AUTH
        assert await client.eof()
    assert app.stats.authentication_failures == 1


@pytest.mark.requirement("SEC-08")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("password", ["engine", "tulip"])
async def test_the_log_says_that_a_user_is_disabled_and_the_client_hears_nothing_of_it(
    app: App, mechanism: str, password: str
) -> None:
    assert app.login is not None
    app.login.users.set_enabled("ada", enabled=False)
    app.container.watcher = watcher = RecordingWatcher()
    async with SocketClient(app.port) as client:
        if mechanism == "PLAIN":
            await begin(client, mechanism, f"\0ada\0{password}".encode())
        else:
            formulas = FormulaClient(ScramHash.SHA_256, "ada", password)
            await begin(client, mechanism, formulas.first())
            client.respond(formulas.final(await challenged(client)))
        assert await outcome(client) == SASL_AUTH, "as with a wrong password"
    assert watcher.events[0] == "refused : user 'ada' is disabled"


async def test_a_client_may_send_its_first_message_after_an_empty_challenge(app: App) -> None:
    """A client that sends no initial response is asked to speak first (RFC 4422 3)."""
    formulas = FormulaClient(ScramHash.SHA_256, "ada", "engine")
    async with SocketClient(app.port) as client:
        await begin(client, "SCRAM-SHA-256", b"")
        assert await outcome(client) == SASL_AUTH, "empty is not absent"
    async with SocketClient(app.port) as client:
        client.login("SCRAM-SHA-256", None)
        assert await client.header() == SASL_HEADER
        await client.next()
        assert await challenged(client) == b""
        client.respond(formulas.first())
        client.respond(formulas.final(await challenged(client)))
        assert formulas.knows(await challenged(client))


async def attempt(app: App, password: str, local: str) -> int:
    async with SocketClient(app.port, local=local) as client:
        await begin(client, "PLAIN", b"\0ada\0" + password.encode())
        return await outcome(client)


@pytest.mark.attack("A5")
async def test_failures_in_a_row_delay_their_source_and_no_other(app: App) -> None:
    """Code 4 makes clients try again later; after code 1 they stop for good."""
    codes = [await attempt(app, "guess", "127.0.0.2") for _ in range(FAILURES_PER_MINUTE + 2)]
    assert codes[0] == SASL_AUTH
    assert codes[-1] == SASL_SYS_TEMP
    assert await attempt(app, "engine", "127.0.0.2") == SASL_SYS_TEMP, "no guess is tried"
    assert await attempt(app, "engine", "127.0.0.3") == SASL_OK
    assert app.stats.logins_throttled > 0


async def test_a_right_plain_password_makes_the_verifiers_for_scram(app: App, users: Users) -> None:
    users.add("bob", "tulip", scram=False)
    assert users.without_scram() == ["bob"]
    async with SocketClient(app.port) as client:
        await begin(client, "PLAIN", b"\0bob\0tulip")
        assert await outcome(client) == SASL_OK
    assert users.without_scram() == []


HOME = Entrance(listener="amqp", kind="amqp", host="127.0.0.1")
AWAY = Entrance(listener="amqp", kind="amqp", host="192.0.2.7")
AWAY_BY_TLS = Entrance(listener="amqps", kind="amqps", host="192.0.2.7", is_tls=True)

OFFERS = [
    # entrance, PLAIN always, a user without SCRAM; the mechanisms
    pytest.param(HOME, False, False, [*SCRAM, "PLAIN"], id="from this machine"),
    pytest.param(AWAY, False, False, SCRAM, id="from elsewhere"),
    pytest.param(AWAY_BY_TLS, False, False, [*SCRAM, "PLAIN"], id="from elsewhere by TLS"),
    pytest.param(AWAY, True, False, [*SCRAM, "PLAIN"], id="from elsewhere, PLAIN always"),
    pytest.param(HOME, False, True, ["PLAIN"], id="a user without verifiers"),
    pytest.param(AWAY, True, True, ["PLAIN"], id="a user without verifiers, PLAIN always"),
    pytest.param(AWAY, False, True, SCRAM, id="nothing else is safe, though one user lacks it"),
]


@pytest.mark.parametrize(("entrance", "plain_always", "lacks_scram", "expected"), OFFERS)
def test_what_is_offered(
    users: Users, entrance: Entrance, plain_always: bool, lacks_scram: bool, expected: list[str]
) -> None:
    if lacks_scram:
        users.add("bob", "tulip", scram=False)
    login = Login(users, anonymous=False, plain_always=plain_always)
    assert login.begin(entrance).mechanisms() == expected


async def test_a_broker_that_would_lock_a_user_out_does_not_start(users: Users) -> None:
    users.add("bob", "tulip", scram=False)
    given = {"bind": "0.0.0.0", "port": 0, "users_file": users.file, "store": MEMORY}
    with pytest.raises(SettingsError, match=r'bob.*plain = "always"'):
        App(given_settings(**given))
    App(given_settings(**given, plain="always"))
