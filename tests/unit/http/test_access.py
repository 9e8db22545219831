"""Read access over HTTP: the users of AMQP, and a right for each path."""

from base64 import b64encode
from contextlib import suppress
from pathlib import Path

import pytest

from broker.http.access import Access, credentials_in, is_of_this_machine
from broker.management.request import Refused
from broker.net.login import Login
from broker.security.entrance import HTTP, Entrance
from broker.security.identity import ADMIN, Identity
from broker.security.resources import MANAGEMENT, Resource
from broker.security.users import Users
from tests.support.audit import RecordingAudit
from tests.support.broker import Broker, Doorman, RecordingWatcher
from tests.support.http import basic

HERE = Entrance(listener=HTTP, kind=HTTP, host="127.0.0.1")
OWNER = basic("owner", "sesame")["Authorization"]
CLERK = basic("clerk", "pencil")["Authorization"]
USERS = {"owner": "sesame", "clerk": "pencil"}
IN = 200

CASES = [
    # authorization, users, anonymous, administrators, is_local; the decision
    ("an administrator", OWNER, USERS, False, ["owner"], True, IN),
    ("an administrator from elsewhere", OWNER, USERS, False, ["owner"], False, IN),
    ("another user", CLERK, USERS, False, ["owner"], True, 403),
    ("a wrong password", basic("owner", "x")["Authorization"], USERS, False, ["owner"], True, 401),
    ("nobody knows him", basic("eve", "x")["Authorization"], USERS, False, ["owner"], True, 401),
    ("anybody, where there are users", None, USERS, False, ["owner", ""], True, 401),
    ("anybody, where anybody may", None, {}, True, [""], True, IN),
    ("anybody, from elsewhere", None, {}, True, [""], False, 403),
    ("anybody may enter, but not manage", None, {}, True, [], True, 403),
    ("a name where there are no users", OWNER, {}, True, [""], True, 401),
    ("an empty name", basic("", "x")["Authorization"], {}, True, [""], True, 401),
    ("another scheme", "Bearer x", USERS, True, ["owner", ""], True, 401),
]


@pytest.mark.requirement("PIP-20")
@pytest.mark.parametrize(
    ("authorization", "users", "anonymous", "administrators", "is_local", "expected"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
async def test_who_is_let_in(
    authorization: str | None,
    users: dict[str, str],
    anonymous: bool,
    administrators: list[str],
    is_local: bool,
    expected: int,
) -> None:
    doorman = Doorman(users, anonymous=anonymous, administrators=administrators)
    status = IN
    try:
        container = Broker(authenticator=doorman).container
        visitor = await Access(container, is_local=is_local).check(
            authorization, "127.0.0.1:8161", HERE
        )
        visitor.demand("view", Resource(MANAGEMENT, "events"))
    except Refused as refused:
        status = refused.status
    assert status == expected


HOSTS = [
    pytest.param("localhost:8161", True, id="a name"),
    pytest.param("127.0.0.1", True, id="an address"),
    pytest.param("127.0.0.2:8161", True, id="another"),
    pytest.param("[::1]:8161", True, id="one of IPv6"),
    pytest.param("evil.example:8161", False, id="somebody else's name"),
    pytest.param("localhost.evil.example", False, id="one that begins well"),
    pytest.param("localhost@evil.example", False, id="one that seems to begin well"),
    pytest.param("10.0.0.1:8161", False, id="another machine's"),
    pytest.param("", False, id="none"),
    pytest.param("[::1", False, id="half of one"),
]


@pytest.mark.requirement("PIP-20")
@pytest.mark.parametrize(("host", "expected"), HOSTS)
async def test_a_page_in_a_browser_is_not_taken_for_this_machine(host: str, expected: bool) -> None:
    assert is_of_this_machine(host) is expected
    owned = Broker(authenticator=Doorman(USERS, administrators=["owner"])).container
    await Access(owned, is_local=True).check(OWNER, host, HERE)
    anybody = Access(Broker().container, is_local=True)
    if expected:
        await anybody.check(None, host, HERE)
    else:
        with pytest.raises(Refused, match="ask by the name localhost"):
            await anybody.check(None, host, HERE)


class TokenDoorman(Doorman):
    """A doorman who also takes one token."""

    async def identify_by_token(self, token: str, entrance: Entrance) -> Identity | None:  # noqa: ARG002
        return self.identity("owner") if token == "abc.def" else None


TOKENS = [
    pytest.param(TokenDoorman, "Bearer abc.def", IN, id="the token"),
    pytest.param(TokenDoorman, "bearer  abc.def", IN, id="the scheme in lower case"),
    pytest.param(TokenDoorman, "Bearer abc.de", 401, id="another token"),
    pytest.param(TokenDoorman, "Bearer", 401, id="no token"),
    pytest.param(TokenDoorman, OWNER, IN, id="a password"),
    pytest.param(Doorman, "Bearer abc.def", 401, id="where no tokens are taken"),
]


@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize(("doorman", "authorization", "expected"), TOKENS)
async def test_a_token_enters_where_tokens_are_taken(
    doorman: type[Doorman], authorization: str, expected: int
) -> None:
    container = Broker(authenticator=doorman(USERS, administrators=["owner"])).container
    status = IN
    try:
        await Access(container, is_local=True).check(authorization, "localhost", HERE)
    except Refused as refused:
        status = refused.status
    assert status == expected


RECORDED = [
    # Authorization; action, user, roles, mechanism
    pytest.param(OWNER, ("auth.success", "owner", (ADMIN,), "Basic"), id="a password"),
    pytest.param("Bearer abc.def", ("auth.success", "owner", (ADMIN,), "Bearer"), id="a token"),
    pytest.param(
        basic("owner", "x")["Authorization"],
        ("auth.failure", "", (), "Basic"),
        id="a wrong password",
    ),
    pytest.param("Bearer abc.de", ("auth.failure", "", (), "Bearer"), id="a wrong token"),
]


@pytest.mark.requirement("SEC-08")
@pytest.mark.parametrize(("authorization", "expected"), RECORDED)
async def test_a_login_is_recorded_with_its_user_and_mechanism(
    authorization: str, expected: tuple[str, str, tuple[str, ...], str]
) -> None:
    container = Broker(authenticator=TokenDoorman(USERS, administrators=["owner"])).container
    container.audit = audit = RecordingAudit()
    with suppress(Refused):
        await Access(container, is_local=True).check(authorization, "localhost", HERE)
    (event,) = audit.events
    assert event.after is not None
    actor = event.actor
    assert (event.action, actor.user, actor.roles, event.after["mechanism"]) == expected


@pytest.mark.requirement("SEC-08")
async def test_the_audit_says_that_a_user_is_disabled_and_the_client_hears_nothing_of_it(
    tmp_path: Path,
) -> None:
    users = Users(tmp_path / "users")
    users.add("owner", "sesame", roles=["admin"])
    container = Broker(authenticator=Login(users, anonymous=False)).container
    container.audit = audit = RecordingAudit()
    access = Access(container, is_local=True)
    told = []
    for is_disabled in (False, True):
        users.set_enabled("owner", enabled=not is_disabled)
        password = "sesame" if is_disabled else "wrong"
        with pytest.raises(Refused) as refused:
            await access.check(basic("owner", password)["Authorization"], "localhost", HERE)
        told.append(str(refused.value))
    assert told[0] == told[1]
    facts = {"mechanism": "Basic", "listener": HTTP}
    assert [event.after for event in audit.events] == [
        facts,
        {**facts, "reason": "user 'owner' is disabled"},
    ]


CLEAR = 'set http.tls = true, or plain = "always"'

ENTRANCES = [
    # host, TLS, name in the certificate, Authorization, plain = "always"; status, mechanism
    pytest.param("10.0.0.7", False, "", OWNER, False, 403, id="a password in the clear"),
    pytest.param("10.0.0.7", False, "", None, False, 403, id="no invitation to send one"),
    pytest.param("10.0.0.7", False, "", OWNER, True, IN, id="in the clear, which is allowed"),
    pytest.param("10.0.0.7", False, "", None, True, 401, id="an invitation, which is allowed"),
    pytest.param("127.0.0.1", False, "", OWNER, False, IN, id="on this machine"),
    pytest.param("10.0.0.7", True, "", OWNER, False, IN, id="over TLS"),
    pytest.param("10.0.0.7", True, "", None, False, 401, id="over TLS, without a login"),
    pytest.param("10.0.0.7", True, "owner.example", None, False, IN, id="a certificate"),
    pytest.param("10.0.0.7", True, "eve.example", None, False, 401, id="another certificate"),
    pytest.param(
        "10.0.0.7", True, "owner.example", basic("owner", "x")["Authorization"], False, 401,
        id="a certificate does not mend a wrong password",
    ),
]  # fmt: skip


@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize(
    ("host", "is_tls", "name", "authorization", "always", "expected"), ENTRANCES
)
async def test_a_password_must_not_cross_the_network_readable(
    tmp_path: Path,
    host: str,
    is_tls: bool,
    name: str,
    authorization: str | None,
    always: bool,
    expected: int,
) -> None:
    users = Users(tmp_path / "users")
    users.add("owner", "sesame", roles=["admin"], certificates=["owner.example"])
    watcher = RecordingWatcher()
    login = Login(users, anonymous=False, plain_always=always)
    container = Broker(authenticator=login, watcher=watcher).container
    access = Access(container, is_local=False)
    entrance = Entrance(listener=HTTP, kind=HTTP, host=host, is_tls=is_tls, certificate_name=name)
    status = IN
    for _ in range(2):
        try:
            visitor = await access.check(authorization, "broker.example", entrance)
            visitor.demand("view", Resource(MANAGEMENT, "events"))
        except Refused as refused:
            status = refused.status
    assert status == expected
    if expected == 403:
        told = [event for event in watcher.events if CLEAR in event]
        sent = authorization is not None
        assert len(told) == sent, "once a minute, if a password was sent"
        assert container.stats.authentication_failures == 2 * sent


def encoded(text: bytes) -> str:
    return b64encode(text).decode()


READ = [
    pytest.param(f"Basic {encoded(b'a:b')}", ("a", "b"), id="name and password"),
    pytest.param(f"basic {encoded(b'a:b:c')}", ("a", "b:c"), id="a password with a colon"),
    pytest.param(f"Basic {encoded('ä:ö'.encode())}", ("ä", "ö"), id="UTF-8"),
    pytest.param(f"Basic {encoded(b'a:')}", ("a", ""), id="no password"),
]


@pytest.mark.parametrize(("authorization", "expected"), READ)
def test_what_a_header_says(authorization: str, expected: tuple[str, str]) -> None:
    assert credentials_in(authorization) == expected


UNREADABLE = [
    pytest.param(f"Basic {encoded(b'a')}", id="no colon"),
    pytest.param(f"Basic {encoded(b':b')}", id="no name"),
    pytest.param(f"Basic {encoded(bytes([255, 58, 98]))}", id="not UTF-8"),
    pytest.param("Basic a:b", id="not encoded"),
    pytest.param("Basic", id="nothing behind it"),
    pytest.param("", id="nothing at all"),
    pytest.param("Basic ö", id="not ASCII"),
]


@pytest.mark.parametrize("authorization", UNREADABLE)
def test_what_no_header_may_say(authorization: str) -> None:
    with pytest.raises(Refused) as caught:
        credentials_in(authorization)
    assert caught.value.status == 401
