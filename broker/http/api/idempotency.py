"""Idempotency keys: a POST that is sent again gets the response of the first.

The responses are in memory: a broker that has started again remembers none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from broker.http.api.endpoint import CallResult
from broker.http.api.json_values import encoded_in_portions
from broker.http.api.problems import UNPROCESSABLE, Failure
from broker.management.request import BAD_REQUEST, CONFLICT
from broker.security.identity import Identity

KEY_CHARACTERS_MAX: Final = 255

KEPT_MAX: Final = 1000
"""Responses that are remembered; the oldest are forgotten first."""

KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Maximum bytes of their bodies together: one of a list may have a megabyte."""

KEPT_MS: Final = 24 * 3_600_000
"""Milliseconds for which a response is remembered."""

REPLAYED: Final = "idempotency-replayed"
"""The header of a response that is that of an earlier request."""


@dataclass(frozen=True)
class Purpose:
    """A key: of one user, for one path.

    `limited_to` and `scopes` are those of the login: one that is limited must not get the response
    to a request with more rights.
    """

    user: str
    path: str
    key: str
    limited_to: frozenset[str] | None = None
    scopes: tuple[str, ...] = ()


@dataclass
class KeyedRequest:
    """The request that came with a key, and its response once there is one."""

    digest: bytes
    until_ms: int
    answer: CallResult | None = None

    def size(self) -> int:
        """Return the bytes of the body of the response."""
        body = None if self.answer is None else self.answer.body
        return len(body) if isinstance(body, bytes) else 0


def purpose_of(identity: Identity, path: str, key: str) -> Purpose:
    """Return the purpose of a request with a key; Failure if the key is malformed."""
    if not key or len(key) > KEY_CHARACTERS_MAX or not (key.isascii() and key.isprintable()):
        text = f"Idempotency-Key must have 1 to {KEY_CHARACTERS_MAX} printable characters of ASCII"
        raise Failure(BAD_REQUEST, text)
    return Purpose(identity.user, path, key, identity.limited_to, identity.scopes)


class Idempotency:
    """The requests with a key and their responses. `now_ms` returns the time."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms: Final = now_ms
        self._outcomes: Final[dict[Purpose, KeyedRequest]] = {}
        self._bytes = 0

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
        self._make_room(KEPT_MAX - 1)
        outcome = KeyedRequest(digest, self._now_ms() + KEPT_MS)
        self._outcomes[purpose] = outcome
        try:
            outcome.answer = await _as_sent(await work())
        finally:
            if outcome.answer is None:
                self._outcomes.pop(purpose, None)
        self._bytes += outcome.size()
        self._make_room(KEPT_MAX)
        return outcome.answer

    def _known(self, purpose: Purpose) -> KeyedRequest | None:
        known = self._outcomes.get(purpose)
        if known is None or known.answer is None or known.until_ms > self._now_ms():
            return known
        self._forget(purpose)
        return None

    def _make_room(self, at_most: int) -> None:
        """Forget the oldest responses beyond `at_most` requests, and beyond KEPT_BYTES_MAX."""
        if len(self._outcomes) <= at_most and self._bytes <= KEPT_BYTES_MAX:
            return
        # in the order in which they came
        finished = [each for each, known in self._outcomes.items() if known.answer is not None]
        for oldest in finished:
            if len(self._outcomes) <= at_most and self._bytes <= KEPT_BYTES_MAX:
                return
            self._forget(oldest)

    def _forget(self, purpose: Purpose) -> None:
        self._bytes -= self._outcomes.pop(purpose).size()


async def _as_sent(answer: CallResult) -> CallResult:
    """Return a response whose body is encoded, so that its size is known."""
    if answer.body is None or isinstance(answer.body, bytes):
        return answer
    return replace(answer, body=await encoded_in_portions(answer.body))
