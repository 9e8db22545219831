"""Requests that are carried out now: a limit for all, and one for each user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from broker.http.api.problems import TOO_MANY, Failure
from broker.http.limits import API_REQUESTS_MAX, API_REQUESTS_PER_USER_MAX


class RequestSlots:
    """Counts requests."""

    def __init__(self) -> None:
        self._by_user: Final[Counter[str]] = Counter()

    @contextmanager
    def taken(self, user: str) -> Iterator[None]:
        """Count a request of a user while it is carried out; Failure if there are too many."""
        if self._by_user.total() >= API_REQUESTS_MAX:
            raise Failure(TOO_MANY, f"{API_REQUESTS_MAX} requests are carried out; ask again later")
        if self._by_user[user] >= API_REQUESTS_PER_USER_MAX:
            text = f"{API_REQUESTS_PER_USER_MAX} requests of this user are carried out"
            raise Failure(TOO_MANY, f"{text}; ask again later")
        self._by_user[user] += 1
        try:
            yield
        finally:
            self._by_user[user] -= 1
            if not self._by_user[user]:
                del self._by_user[user]
