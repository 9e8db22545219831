"""Sessions of the console: a login of a browser, which its cookie names."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Final, final

from broker.http.limits import (
    CONSOLE_IDLE_MS,
    CONSOLE_SESSION_MAX_MS,
    CONSOLE_SESSIONS_MAX,
    CONSOLE_SESSIONS_PER_USER_MAX,
)
from broker.security.identity import Identity

KEY_BYTES: Final = 32
"""Random bytes of the name of a session, and of its token."""


@final
@dataclass(kw_only=True)
class BrowserSession:
    """A login of one browser.

    `token` is in each form that the browser gets, and must be in each that it sends (CSRF).
    `notice` is the result of the last action, which the next page shows. `trial` names the action
    that was last tried without effect, empty for none.
    """

    identity: Identity
    token: str
    began_ms: int
    used_ms: int
    notice: str = ""
    trial: str = ""

    def has_token(self, given: str) -> bool:
        """Return whether a form came from a page of this session."""
        return hmac.compare_digest(self.token.encode(), given.encode(errors="replace"))

    def take_notice(self) -> str:
        """Return the notice, which is shown once."""
        notice, self.notice = self.notice, ""
        return notice


@final
class Sessions:
    """The sessions of one broker, in memory, in the order of their last use."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms: Final = now_ms
        self._sessions: Final[OrderedDict[str, BrowserSession]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, identity: Identity) -> tuple[str, BrowserSession]:
        """Begin a session; return its secret key, which the cookie has, and the session."""
        self._end_some(identity.user)
        now_ms = self._now_ms()
        session = BrowserSession(
            identity=identity, token=token_urlsafe(KEY_BYTES), began_ms=now_ms, used_ms=now_ms
        )
        key = token_urlsafe(KEY_BYTES)
        self._sessions[key] = session
        return key, session

    def find(self, key: str) -> BrowserSession | None:
        """Return the session with a key, which counts as used now; None if it has ended."""
        session = self._sessions.get(key)
        if session is None:
            return None
        now_ms = self._now_ms()
        is_idle = now_ms - session.used_ms >= CONSOLE_IDLE_MS
        if is_idle or now_ms - session.began_ms >= CONSOLE_SESSION_MAX_MS:
            self.end(key)
            return None
        session.used_ms = now_ms
        self._sessions.move_to_end(key)
        return session

    def end(self, key: str) -> None:
        """End a session. Idempotent."""
        self._sessions.pop(key, None)

    def _end_some(self, user: str) -> None:
        """Make room for one more session of `user`."""
        of_user = [key for key, each in self._sessions.items() if each.identity.user == user]
        for key in of_user[: max(0, len(of_user) - CONSOLE_SESSIONS_PER_USER_MAX + 1)]:
            self.end(key)
        while len(self._sessions) >= CONSOLE_SESSIONS_MAX:
            self._sessions.popitem(last=False)
