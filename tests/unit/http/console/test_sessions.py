"""Sessions end by time, by number, and when they are ended."""

from __future__ import annotations

import pytest

from broker.http.console.sessions import Sessions
from broker.http.limits import (
    CONSOLE_IDLE_MS,
    CONSOLE_SESSION_MAX_MS,
    CONSOLE_SESSIONS_MAX,
    CONSOLE_SESSIONS_PER_USER_MAX,
)
from broker.security.identity import Identity

pytestmark = pytest.mark.requirement("OPS-07")


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def user(name: str) -> Identity:
    return Identity(name, roles=frozenset())


def test_a_session_is_found_by_its_key_alone() -> None:
    sessions = Sessions(Clock())
    key, session = sessions.begin(user("ada"))
    assert sessions.find(key) is session
    assert sessions.find(key + "x") is None
    assert sessions.find("") is None
    assert session.has_token(session.token)
    assert not session.has_token(key)
    sessions.end(key)
    sessions.end(key)
    assert sessions.find(key) is None


def test_keys_and_tokens_differ() -> None:
    sessions = Sessions(Clock())
    begun = [sessions.begin(user("ada")) for _ in range(20)]
    assert len({key for key, _ in begun} | {session.token for _, session in begun}) == 40


def test_a_session_ends_when_it_is_not_used() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    key, _ = sessions.begin(user("ada"))
    clock.now_ms = CONSOLE_IDLE_MS - 1
    assert sessions.find(key) is not None
    clock.now_ms += CONSOLE_IDLE_MS - 1
    assert sessions.find(key) is not None
    clock.now_ms += CONSOLE_IDLE_MS
    assert sessions.find(key) is None
    assert len(sessions) == 0


def test_a_session_ends_however_much_it_is_used() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    key, _ = sessions.begin(user("ada"))
    while clock.now_ms + CONSOLE_IDLE_MS // 2 < CONSOLE_SESSION_MAX_MS:
        clock.now_ms += CONSOLE_IDLE_MS // 2
        assert sessions.find(key) is not None
    clock.now_ms = CONSOLE_SESSION_MAX_MS
    assert sessions.find(key) is None


def test_a_user_has_a_limited_number() -> None:
    sessions = Sessions(Clock())
    other, _ = sessions.begin(user("bob"))
    keys = [sessions.begin(user("ada"))[0] for _ in range(CONSOLE_SESSIONS_PER_USER_MAX + 1)]
    assert sessions.find(keys[0]) is None, "the one that was used longest ago"
    assert all(sessions.find(key) is not None for key in (*keys[1:], other))


def test_all_users_have_a_limited_number() -> None:
    sessions = Sessions(Clock())
    keys = [sessions.begin(user(f"user {number}"))[0] for number in range(CONSOLE_SESSIONS_MAX + 1)]
    assert len(sessions) == CONSOLE_SESSIONS_MAX
    assert sessions.find(keys[0]) is None
    assert sessions.find(keys[1]) is not None


def test_a_notice_is_taken_once() -> None:
    _, session = Sessions(Clock()).begin(user("ada"))
    session.notice = "done"
    assert (session.take_notice(), session.take_notice()) == ("done", "")
