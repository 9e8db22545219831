"""Logins by tokens on a real socket: OAUTHBEARER, XOAUTH2, and a token as PLAIN's password."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.amqp.errors import CONNECTION_FORCED
from broker.amqp.frames import SASL_HEADER
from broker.amqp.limits import FRAME_BEFORE_OPEN
from broker.amqp.sasl_frames import (
    SASL_AUTH,
    SASL_OK,
    SASL_SYS_TEMP,
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
)
from broker.app import App
from broker.links.login_expiries import EXPIRED
from broker.links.peer import Peer
from broker.net.login import Login
from broker.oauth_settings import OAUTHBEARER, XOAUTH2
from broker.security.throttle import FAILURES_PER_MINUTE
from broker.security.tokens import TokenClaims
from broker.security.users import Users
from broker.settings import MEMORY, given_settings
from tests.support.broker import RecordingWatcher
from tests.support.clock import SimulatedClock
from tests.support.socket_client import SocketClient
from tests.support.tokens import TokenIssuer, oauth

pytestmark = pytest.mark.requirement("SEC-07")

ISSUER = TokenIssuer()

INVALID_TOKEN = {
    OAUTHBEARER: b'{"status":"invalid_token"}',
    XOAUTH2: b'{"status":"400","schemes":"bearer"}',
}


@pytest.fixture
def users(tmp_path: Path) -> Users:
    made = Users(tmp_path / "users")
    made.add("olga", "engine", administrator=True, scram=False)
    return made


@pytest.fixture
async def app(users: Users, tmp_path: Path) -> AsyncIterator[App]:
    """Start a broker that takes tokens. The first of them waits for the issuer's keys."""
    table = oauth(tmp_path, ISSUER, leeway_s=0)
    running = App(given_settings(port=0, users_file=users.file, store=MEMORY, oauth=table))
    await running.start()
    yield running
    await running.stop()


def first_message(mechanism: str, token: str, user: str = "") -> bytes:
    """Return the client's message, as Qpid JMS and RFC 7628 write it."""
    if mechanism == "PLAIN":
        return f"\0{user or 'ada'}\0{token}".encode()
    if mechanism == XOAUTH2:
        return f"user={user}\x01auth=Bearer {token}\x01\x01".encode()
    header = f"n,a={user}," if user else "n,,"
    return f"{header}\x01host=here\x01auth=Bearer {token}\x01\x01".encode()


async def outcome(client: SocketClient) -> int:
    told = await client.next()
    assert isinstance(told, SaslOutcome), told
    return told.code


async def begin(client: SocketClient, mechanism: str, first: bytes | None) -> list[str]:
    """Choose a mechanism, and return those that are listed."""
    client.login(mechanism, first)
    assert await client.header() == SASL_HEADER
    listed = await client.next()
    assert isinstance(listed, SaslMechanisms)
    return listed.mechanisms


async def attempt(app: App, mechanism: str, message: bytes, local: str = "127.0.0.1") -> int:
    """Log in, answer the error that a refusal begins with, and return the outcome."""
    async with SocketClient(app.port, local=local) as client:
        await begin(client, mechanism, message)
        told = await client.next()
        if isinstance(told, SaslChallenge):
            assert told.challenge == INVALID_TOKEN[mechanism]
            client.respond(b"\x01" if mechanism == OAUTHBEARER else b"")
            told = await client.next()
        assert isinstance(told, SaslOutcome)
        return told.code


def only_peer(app: App) -> Peer:
    (peer,) = app.container.peers()
    return peer


MECHANISMS = [OAUTHBEARER, XOAUTH2, "PLAIN"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_token_logs_its_user_in(app: App, mechanism: str) -> None:
    token = ISSUER.token(roles=["application", "monitor"])
    async with SocketClient(app.port) as client:
        listed = await begin(client, mechanism, first_message(mechanism, token))
        assert listed == [OAUTHBEARER, XOAUTH2, "PLAIN"]
        assert await outcome(client) == SASL_OK
        await client.open("shop")
        identity = only_peer(app).identity
        assert (identity.user, identity.mechanism) == ("ada", mechanism)
        assert identity.roles == {"application", "monitor"}


async def test_a_client_may_speak_after_an_empty_challenge(app: App) -> None:
    """A client that sends no initial response is asked to speak first (RFC 4422 3)."""
    async with SocketClient(app.port) as client:
        await begin(client, OAUTHBEARER, None)
        asked = await client.next()
        assert isinstance(asked, SaslChallenge)
        assert asked.challenge == b""
        client.respond(first_message(OAUTHBEARER, ISSUER.token()))
        assert await outcome(client) == SASL_OK


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_bad_token_is_refused(app: App, mechanism: str) -> None:
    """The client of a token learns only that it is refused, the operator in the log why."""
    message = first_message(mechanism, ISSUER.token(aud="another"), "ada")
    assert await attempt(app, mechanism, message) == SASL_AUTH
    assert app.stats.authentication_failures == 1
    assert await attempt(app, mechanism, first_message(mechanism, ISSUER.token())) == SASL_OK


NAMES = [
    pytest.param("ada", SASL_OK, id="that of the token"),
    pytest.param("", SASL_OK, id="none"),
    pytest.param("eve", SASL_AUTH, id="another one"),
]


@pytest.mark.parametrize(("user", "expected"), NAMES)
@pytest.mark.parametrize("mechanism", [OAUTHBEARER, XOAUTH2])
async def test_a_client_that_gives_itself_a_name(
    app: App, mechanism: str, user: str, expected: int
) -> None:
    message = first_message(mechanism, ISSUER.token(), user)
    assert await attempt(app, mechanism, message) == expected


MALFORMED = [
    pytest.param(OAUTHBEARER, b"", id="nothing"),
    pytest.param(XOAUTH2, b"user=ada", id="no token"),
    pytest.param(XOAUTH2, b"\xff\x01\x01", id="no UTF-8"),
]


@pytest.mark.parametrize(("mechanism", "message"), MALFORMED)
async def test_a_malformed_message_is_refused(app: App, mechanism: str, message: bytes) -> None:
    assert await attempt(app, mechanism, message) == SASL_AUTH


async def test_a_token_of_the_largest_size_fits_into_a_frame(app: App) -> None:
    """Without tokens a frame before open has 8 KiB (A2)."""
    token = ISSUER.token(groups="x" * 11_000)
    assert FRAME_BEFORE_OPEN < len(token) < 16 * 1024
    assert await attempt(app, OAUTHBEARER, first_message(OAUTHBEARER, token)) == SASL_OK


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_huge_token_is_refused(app: App, mechanism: str) -> None:
    token = ISSUER.token(groups="x" * 16 * 1024)
    assert await attempt(app, mechanism, first_message(mechanism, token)) == SASL_AUTH


async def test_bad_tokens_delay_their_source_and_no_other(app: App) -> None:
    bad = [first_message(OAUTHBEARER, ISSUER.token(aud=f"a{n}")) for n in range(12)]
    codes = [await attempt(app, OAUTHBEARER, each, "127.0.0.2") for each in bad]
    assert codes[:FAILURES_PER_MINUTE] == [SASL_AUTH] * FAILURES_PER_MINUTE
    assert codes[-1] == SASL_SYS_TEMP
    good = first_message(OAUTHBEARER, ISSUER.token())
    assert await attempt(app, OAUTHBEARER, good, "127.0.0.2") == SASL_SYS_TEMP
    assert await attempt(app, OAUTHBEARER, good, "127.0.0.3") == SASL_OK


async def test_a_bad_token_does_not_delay_another_of_its_source(app: App) -> None:
    bad = first_message(OAUTHBEARER, ISSUER.token(aud="another"))
    codes = [await attempt(app, OAUTHBEARER, bad) for _ in range(3)]
    assert codes == [SASL_AUTH, SASL_AUTH, SASL_SYS_TEMP], "the third comes too soon"
    good = first_message(OAUTHBEARER, ISSUER.token())
    assert await attempt(app, OAUTHBEARER, good) == SASL_OK


# -- users of the users file


def let_in_by(users: Users, *mechanisms: str) -> None:
    """Let `olga` log in only by these mechanisms, as an operator writes it into the file."""
    listed = ", ".join(f'"{each}"' for each in mechanisms)
    text = users.file.read_text().replace(
        "enabled = true", f"enabled = true\nmechanisms = [{listed}]"
    )
    users.file.write_text(text)


LOCAL_USERS = [
    pytest.param((), OAUTHBEARER, SASL_AUTH, id="no mechanisms are named"),
    pytest.param(("PLAIN",), "PLAIN", SASL_AUTH, id="PLAIN is for its password"),
    pytest.param((OAUTHBEARER,), OAUTHBEARER, SASL_OK, id="tokens are named"),
    pytest.param((OAUTHBEARER,), XOAUTH2, SASL_AUTH, id="the other mechanism is named"),
    pytest.param((OAUTHBEARER, "PLAIN"), "PLAIN", SASL_OK, id="tokens and PLAIN are named"),
]


@pytest.mark.parametrize(("named", "mechanism", "expected"), LOCAL_USERS)
async def test_a_token_with_the_name_of_a_local_user(
    app: App, users: Users, named: tuple[str, ...], mechanism: str, expected: int
) -> None:
    """The issuer must not be able to give out the name of an administrator of the users file."""
    if named:
        let_in_by(users, *named)
    token = ISSUER.token(preferred_username="olga", roles=[])
    message = first_message(mechanism, token, "olga")
    assert await attempt(app, mechanism, message) == expected


@pytest.mark.requirement("SEC-08")
async def test_the_log_says_that_the_user_of_a_token_is_disabled(app: App, users: Users) -> None:
    let_in_by(users, OAUTHBEARER)
    users.set_enabled("olga", enabled=False)
    app.container.watcher = watcher = RecordingWatcher()
    message = first_message(OAUTHBEARER, ISSUER.token(preferred_username="olga", roles=[]))
    assert await attempt(app, OAUTHBEARER, message) == SASL_AUTH
    assert watcher.events[0] == "refused : the token is of user 'olga', who is disabled"


async def test_a_local_user_has_the_roles_of_the_file(app: App, users: Users) -> None:
    let_in_by(users, OAUTHBEARER)
    token = ISSUER.token(preferred_username="olga", roles=["monitor"])
    async with SocketClient(app.port) as client:
        await begin(client, OAUTHBEARER, first_message(OAUTHBEARER, token))
        assert await outcome(client) == SASL_OK
        await client.open("shop")
        assert only_peer(app).identity.roles == {"admin"}


async def test_a_local_user_has_no_rights_by_scopes(app: App, users: Users) -> None:
    let_in_by(users, OAUTHBEARER)
    token = ISSUER.token(preferred_username="olga", scope="jms-broker.send:queue:a")
    async with SocketClient(app.port) as client:
        await logged_in(client, token)
        assert only_peer(app).identity.scopes == ()


async def logged_in(client: SocketClient, token: str) -> None:
    await begin(client, OAUTHBEARER, first_message(OAUTHBEARER, token))
    assert await outcome(client) == SASL_OK
    await client.open("shop")


async def test_a_change_of_the_users_file_leaves_users_of_tokens_alone(
    app: App, users: Users
) -> None:
    async with SocketClient(app.port) as client:
        await logged_in(client, ISSUER.token())
        users.add("bob", "tulip")
        app.container.rights_review.begin()
        app.container.tick()
        await client.begin()
        assert app.stats.connections_revoked == 0


async def test_a_user_of_a_token_that_becomes_a_local_one_must_log_in_again(
    app: App, users: Users
) -> None:
    async with SocketClient(app.port) as client:
        await logged_in(client, ISSUER.token())
        users.add("ada", "tulip")
        app.container.rights_review.begin()
        app.container.tick()
        close = await client.closed()
        assert close.error is not None
        assert close.error.condition == CONNECTION_FORCED


# -- the end of a token


async def test_a_connection_ends_when_its_token_expires(app: App) -> None:
    async with SocketClient(app.port) as client:
        began_s = time.time()
        await logged_in(client, ISSUER.token(exp=began_s + 0.7))
        close = await client.closed()
        assert close.error is not None
        assert close.error.condition == CONNECTION_FORCED
        assert close.error.description == EXPIRED
        assert time.time() - began_s >= 0.7
        assert app.stats.logins_expired == 1


def test_a_login_is_over_when_its_token_has_expired(users: Users) -> None:
    """A client may take any time between its login and its open, which asks for this."""
    clock = SimulatedClock()
    login = Login(users, anonymous=False, clock=clock)
    claims = TokenClaims(
        issuer="i",
        subject="s",
        user="ada",
        roles=frozenset(),
        valid_until_ms=int(clock.wall_ms()) + 1000,
    )
    identity = login.identity_by_token(claims, OAUTHBEARER)
    assert identity is not None
    clock.advance(999)
    assert login.current(identity) is identity
    clock.advance(1)
    assert login.current(identity) is None


RULES = """
[[rule]]
id = "shops"
who = ["role:shop"]
can = ["connect", "send", "create"]
on = ["connection:*", "queue:orders.#"]

[[rule]]
id = "not-eve"
effect = "deny"
who = ["user:eve"]
can = ["connect"]
on = ["connection:*"]
"""

RIGHTS = [
    # claims; whether the client may open its connection
    pytest.param({"roles": ["shop"]}, True, id="a role of the rules"),
    pytest.param({"roles": []}, False, id="no role"),
    pytest.param({"roles": ["other"]}, False, id="a role that no rule names"),
    pytest.param(
        {"roles": ["shop"], "preferred_username": "eve"}, False, id="a user that is denied"
    ),
    pytest.param(
        {"roles": [], "scope": "openid jms-broker.connect:connection:*"}, True, id="a scope"
    ),
    pytest.param({"roles": [], "scope": "connect:connection:*"}, False, id="a scope of another"),
    pytest.param(
        {"scope": "jms-broker.connect:connection:*", "preferred_username": "eve"},
        False,
        id="a scope of a user that is denied",
    ),
]


@pytest.mark.parametrize(("claims", "may_open"), RIGHTS)
async def test_rules_are_about_the_roles_of_tokens(
    tmp_path: Path, claims: dict[str, object], may_open: bool
) -> None:
    (tmp_path / "acl.toml").write_text(RULES)
    settings = given_settings(
        port=0,
        users_file=tmp_path / "users",
        store=MEMORY,
        oauth=oauth(tmp_path, ISSUER),
        acl_file=tmp_path / "acl.toml",
    )
    running = App(settings)
    await running.start()
    async with SocketClient(running.port) as client:
        await logged_in(client, ISSUER.token(**claims))
        assert bool(running.container.peers()) is may_open
    await running.stop()
