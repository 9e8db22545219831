"""Read access over HTTP: the users of AMQP, and a right for each path."""

from base64 import b64encode

import pytest

from broker.http.access import Access, credentials_in, is_of_this_machine
from broker.management.request import Refused
from broker.security.resources import MANAGEMENT, Resource
from tests.support.broker import Broker, Doorman
from tests.support.http import basic

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
            authorization, "127.0.0.1:8161", peer="127.0.0.1"
        )
        visitor.demand("view", Resource(MANAGEMENT, "journal"))
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
    await Access(owned, is_local=True).check(OWNER, host, peer="127.0.0.1")
    anybody = Access(Broker().container, is_local=True)
    if expected:
        await anybody.check(None, host, peer="127.0.0.1")
    else:
        with pytest.raises(Refused, match="ask by the name localhost"):
            await anybody.check(None, host, peer="127.0.0.1")


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
