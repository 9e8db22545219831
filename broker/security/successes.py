"""Passwords that were right lately, so that a program that logs in often costs one hash.

HTTP's Basic authentication sends the password with each request. A keyed digest of a right password
is kept for SUCCESS_MS, with the credential that it fitted: a change of that ends it at once.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from dataclasses import dataclass
from secrets import token_bytes
from threading import Lock
from typing import Final

SUCCESS_MS: Final = 5 * 60_000
"""Milliseconds for which a right password is remembered, however often it is used."""

USERS_REMEMBERED_MAX: Final = 10_000
"""Maximum users with a remembered password, 0.4 KiB each; the one used longest ago is dropped."""

PASSWORDS_MAX: Final = 2
"""Remembered passwords of a user: two while a password is replaced by `--keep-old`."""


@dataclass(frozen=True)
class Success:
    """A right password: its digest, the credential that it fitted, and the end in ms."""

    digest: bytes
    credential: str
    until_ms: int


class Successes:
    """The passwords that were right lately. Threads may use it at the same time."""

    def __init__(self) -> None:
        self._key: Final = token_bytes(32)
        self._users: Final[OrderedDict[str, list[Success]]] = OrderedDict()
        self._lock: Final = Lock()

    def __len__(self) -> int:
        return len(self._users)

    def remember(self, user: str, password: str, *, credential: str, until_ms: int) -> None:
        """Remember that `password` is right for `credential`, until `until_ms` at the latest."""
        success = Success(self._digest(password), credential, until_ms)
        with self._lock:
            others = [each for each in self._users.get(user, []) if each.digest != success.digest]
            self._users[user] = [success, *others][:PASSWORDS_MAX]
            self._users.move_to_end(user)
            if len(self._users) > USERS_REMEMBERED_MAX:
                self._users.popitem(last=False)

    def recall(self, user: str, password: str, *, credential: str, now_ms: int) -> bool:
        """Return whether `password` is remembered for `credential`. False says nothing about it.

        Takes microseconds. What has ended, or fitted another credential, is forgotten.
        """
        with self._lock:
            known = self._users.get(user)
            if known is None:
                return False
            left = [each for each in known if each.credential == credential]
            left = [each for each in left if now_ms < each.until_ms]
            if not left:
                del self._users[user]
                return False
            self._users[user] = left
            self._users.move_to_end(user)
        digest = self._digest(password)
        # Every digest is compared, so that the time does not tell which one fits.
        return sum(hmac.compare_digest(each.digest, digest) for each in left) > 0

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode(errors="surrogatepass"), "sha256")
