"""Requests that are carried out now: a limit for all, and one for each user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from broker.http.api.problems import TOO_MANY, Failure
from broker.http.limits import API_REQUESTS_MAX, API_REQUESTS_PER_USER_MAX
from broker.http.user_counts import UserCounts


class RequestSlots:
    """Counts requests."""

    def __init__(self) -> None:
        self._taken: Final = UserCounts()

    @contextmanager
    def taken(self, user: str) -> Iterator[None]:
        """Count a request of a user while it is carried out; Failure if there are too many."""
        if self._taken.total() >= API_REQUESTS_MAX:
            raise Failure(TOO_MANY, f"{API_REQUESTS_MAX} requests are carried out; ask again later")
        if self._taken.of(user) >= API_REQUESTS_PER_USER_MAX:
            text = f"{API_REQUESTS_PER_USER_MAX} requests of this user are carried out"
            raise Failure(TOO_MANY, f"{text}; ask again later")
        with self._taken.one(user):
            yield
