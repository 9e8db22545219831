"""Idempotency keys: a POST that is sent again gets the response of the first.

The responses are in memory: a broker that has started again remembers none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from broker.http.api.endpoint import CallResult
from broker.http.api.problems import UNPROCESSABLE, Failure
from broker.management.request import BAD_REQUEST, CONFLICT

KEY_CHARACTERS_MAX: Final = 255

KEPT_MAX: Final = 1000
"""Responses that are remembered; the oldest are forgotten first."""

KEPT_MS: Final = 24 * 3_600_000
"""Milliseconds for which a response is remembered."""

REPLAYED: Final = "idempotency-replayed"
"""The header of a response that is that of an earlier request."""


@dataclass(frozen=True)
class Purpose:
    """A key: of one user, for one path."""

    user: str
    path: str
    key: str


@dataclass
class KeyedRequest:
    """The request that came with a key, and its response once there is one."""

    digest: bytes
    until_ms: int
    answer: CallResult | None = None


def purpose_of(user: str, path: str, key: str) -> Purpose:
    """Return the purpose of a request with a key; Failure if the key is malformed."""
    if not key or len(key) > KEY_CHARACTERS_MAX or not (key.isascii() and key.isprintable()):
        text = f"Idempotency-Key must have 1 to {KEY_CHARACTERS_MAX} printable characters of ASCII"
        raise Failure(BAD_REQUEST, text)
    return Purpose(user, path, key)


class Idempotency:
    """The requests with a key and their responses. `now_ms` returns the time."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms: Final = now_ms
        self._outcomes: Final[dict[Purpose, KeyedRequest]] = {}

    async def answer(
        self, purpose: Purpose, body: bytes, work: Callable[[], Awaitable[CallResult]]
    ) -> CallResult:
        """Return the response of the first request of this purpose, else that of `work`.

        A request that fails is not remembered. Raise Failure if the first one had another body, or
        is being carried out.
        """
        digest = hashlib.sha256(body).digest()
        known = self._known(purpose)
        if known is not None:
            if known.digest != digest:
                text = "this Idempotency-Key came with another body before"
                raise Failure(UNPROCESSABLE, text)
            if known.answer is None:
                raise Failure(CONFLICT, "the request with this Idempotency-Key is carried out now")
            headers = {**known.answer.headers, REPLAYED: "true"}
            return replace(known.answer, headers=headers)
        self._make_room()
        outcome = KeyedRequest(digest, self._now_ms() + KEPT_MS)
        self._outcomes[purpose] = outcome
        try:
            outcome.answer = await work()
        finally:
            if outcome.answer is None:
                self._outcomes.pop(purpose, None)
        return outcome.answer

    def _known(self, purpose: Purpose) -> KeyedRequest | None:
        known = self._outcomes.get(purpose)
        if known is not None and known.until_ms <= self._now_ms():
            del self._outcomes[purpose]
            return None
        return known

    def _make_room(self) -> None:
        if len(self._outcomes) >= KEPT_MAX:
            # in the order in which they came
            finished = (each for each, known in self._outcomes.items() if known.answer is not None)
            oldest = next(finished, None)
            if oldest is not None:
                del self._outcomes[oldest]
