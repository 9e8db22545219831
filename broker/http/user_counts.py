"""Counts of what users have open at a time: requests, waiting requests, streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class UserCounts:
    """Counts by user. A user that has nothing open takes no memory."""

    def __init__(self) -> None:
        self._by_user: Final[Counter[str]] = Counter()

    def total(self) -> int:
        """Return the count of all users together."""
        return self._by_user.total()

    def of(self, user: str) -> int:
        """Return the count of `user`."""
        return self._by_user[user]

    @contextmanager
    def one(self, user: str) -> Iterator[None]:
        """Count one more of `user` during the block."""
        self._by_user[user] += 1
        try:
            yield
        finally:
            self._by_user[user] -= 1
            if not self._by_user[user]:
                del self._by_user[user]
