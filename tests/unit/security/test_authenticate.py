"""Settings: the first user, broken users files, and when anonymous clients may enter."""

from pathlib import Path

import pytest

from broker.security.authenticate import (
    admits_anonymous,
    anonymous_allowed,
    is_loopback,
    open_users,
)
from broker.security.users import Users
from broker.settings import Settings, SettingsError, given_settings

ELSEWHERE = "0.0.0.0"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users"


def opened(settings: Settings) -> tuple[Users, bool]:
    """Return the users of `settings`, and whether clients without a login may enter."""
    users = open_users(settings)
    return users, admits_anonymous(settings, users)


BAD_FILES = [
    pytest.param(b"alice\n", "line 1", id="no hash"),
    pytest.param(b"# fine\nalice:secret\n", "line 2", id="a password in the clear"),
    pytest.param(b":$argon2id$\n", "line 1", id="no name"),
    pytest.param(b"\xff\xfe:x\n", "not UTF-8", id="not text"),
]


@pytest.mark.parametrize(("content", "told"), BAD_FILES)
def test_a_bad_file_stops_the_start(file: Path, content: bytes, told: str) -> None:
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=told):
        opened(Settings(users_file=file))


def test_the_first_user_may_have_the_password_in_a_file(tmp_path: Path, file: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sesame\r\n")
    settings = Settings(users_file=file, user="alice", password_file=secret)
    users, anonymous = opened(settings)
    assert users.check("alice", "sesame")
    assert not anonymous


FIRST_USERS = [
    pytest.param({"user": "a:b", "password": "x"}, "no colon", id="a bad name"),
    pytest.param({"user": "a", "password": ""}, "not empty", id="an empty password"),
    pytest.param({"user": "a", "password_file": "none"}, "No such file", id="no file"),
]


@pytest.mark.parametrize(("given", "told"), FIRST_USERS)
def test_a_wrong_first_user_stops_the_start(file: Path, given: dict[str, str], told: str) -> None:
    settings = Settings.model_validate({"users_file": file, **given})
    with pytest.raises(SettingsError, match=told):
        opened(settings)


BINDS = [
    pytest.param("127.0.0.1", True, id="loopback"),
    pytest.param("127.9.9.9", True, id="all of 127"),
    pytest.param("::1", True, id="loopback of IPv6"),
    pytest.param("localhost", True, id="localhost"),
    pytest.param("0.0.0.0", False, id="every address"),
    pytest.param("::", False, id="every address of IPv6"),
    pytest.param("192.168.0.1", False, id="a network"),
    pytest.param("localhost.example", False, id="a name that looks like it"),
    pytest.param("", False, id="nothing"),
]


@pytest.mark.parametrize(("bind", "own"), BINDS)
def test_what_only_this_machine_reaches(bind: str, own: bool) -> None:
    assert is_loopback(bind) is own


REFUSED = "refused to start"

STRANGERS = [
    # bind, allow_anonymous, users exist, whether anonymous clients may enter
    pytest.param("127.0.0.1", None, False, True, id="here, nobody known: yes"),
    pytest.param("127.0.0.1", None, True, False, id="here, users known: no"),
    pytest.param("127.0.0.1", True, True, True, id="here, users known, opened knowingly: yes"),
    pytest.param("127.0.0.1", False, True, False, id="here, closed: no"),
    pytest.param("127.0.0.1", False, False, REFUSED, id="here, closed, nobody could enter"),
    pytest.param(ELSEWHERE, None, False, REFUSED, id="elsewhere, open by oversight"),
    pytest.param(ELSEWHERE, None, True, False, id="elsewhere, users known: no"),
    pytest.param(ELSEWHERE, True, False, True, id="elsewhere, opened knowingly: yes"),
    pytest.param(ELSEWHERE, False, False, REFUSED, id="elsewhere, closed, nobody could enter"),
]


@pytest.mark.parametrize(("bind", "chosen", "users_exist", "expected"), STRANGERS)
def test_strangers(bind: str, chosen: bool | None, users_exist: bool, expected: object) -> None:
    settings = Settings(bind=bind, allow_anonymous=chosen)
    try:
        answer: object = anonymous_allowed(settings, users_exist=users_exist)
    except SettingsError:
        answer = REFUSED
    assert answer == expected


def test_a_broker_open_by_oversight_is_told_what_to_do(file: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        opened(Settings(bind=ELSEWHERE, users_file=file))
    told = str(caught.value)
    for remedy in ("user add", "JMS_BROKER_USER", "JMS_BROKER_ALLOW_ANONYMOUS=true", ELSEWHERE):
        assert remedy in told


@pytest.mark.requirement("SEC-06")
def test_a_listener_behind_a_proxy_is_reached_from_elsewhere(file: Path) -> None:
    """Clients of other machines come through a proxy on this one."""
    proxied = {
        "name": "behind",
        "kind": "ws",
        "proxy_protocol": "require",
        "proxy_from": ["127.0.0.1"],
    }
    settings = given_settings(users_file=file, listener=[proxied])
    with pytest.raises(SettingsError, match="proxy_protocol = 'require' of listener 'behind' lets"):
        anonymous_allowed(settings, users_exist=False)
