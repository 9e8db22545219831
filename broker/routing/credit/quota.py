"""Holds the producers of one user to a rate of messages and of bytes, and to a backlog, by credit.

A token bucket for each of the two. Messages are paid for when credit is granted, so what producers
send ahead is within the rate. The bytes of a message are not known before it arrives: they are
paid for afterwards, and while the user has a debt, its producers get no credit. Nothing is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from broker.clock import Clock
from broker.routing.credit.blocked_producers import BlockedProducers
from broker.routing.credit.credit_pool import SIZE_GUESSED, UNLIMITED
from broker.routing.entries.participants import Producer
from broker.routing.timer_queue import TimerCallback, TimerQueue

MS_PER_S: Final[i64] = 1000

TURNS_PER_S: Final[i64] = 50
"""Portions of credit in a second: a portion is what the rate allows in 20 ms, at least one."""

LOOK_EVERY_MS: Final[i64] = 20
"""Minimum ms between two sums of a backlog, which may be that of thousands of queues."""

WAIT_MAX_MS: Final[i64] = 1000
"""Maximum ms between two looks at a debt, which may be that of a message of many megabytes."""


@final
class TokenBucket:
    """Tokens that a rate adds up: at most those of one second, and less than 0 after a debt.

    `per_s` is the rate, 0 for none.
    """

    def __init__(self, per_s: i64, now_ms: i64) -> None:
        self.per_s: i64 = per_s
        # in thousandths, of which the rate adds a whole number each millisecond
        self._thousandths: i64 = per_s * MS_PER_S
        self._filled_ms: i64 = now_ms

    def limit(self, per_s: i64, now_ms: i64) -> None:
        """Apply another rate from now on; a debt remains."""
        self.fill(now_ms)
        if self.per_s == 0:
            self._thousandths = per_s * MS_PER_S
        self.per_s = per_s
        self._thousandths = min(self._thousandths, per_s * MS_PER_S)

    def fill(self, now_ms: i64) -> None:
        """Add what the rate allows for the time since the last call."""
        passed_ms = now_ms - self._filled_ms
        self._filled_ms = now_ms
        if self.per_s == 0:
            return
        missing = self.per_s * MS_PER_S - self._thousandths
        if passed_ms > missing // self.per_s:  # not the product: after a day it may be too large
            self._thousandths += missing
        else:
            self._thousandths += self.per_s * passed_ms

    def is_full(self) -> bool:
        """Return whether nothing is missing; a rate of 0 has nothing."""
        return self._thousandths >= self.per_s * MS_PER_S

    def tokens(self) -> i64:
        """Return the whole tokens that are left, 0 or less if there is none."""
        return self._thousandths // MS_PER_S

    def take(self, tokens: i64) -> None:
        """Pay `tokens`, which may leave a debt; a negative number gives some back."""
        if self.per_s > 0:
            self._thousandths = min(self._thousandths - tokens * MS_PER_S, self.per_s * MS_PER_S)

    def portion(self) -> i64:
        """Return the tokens of one turn."""
        return max(1, self.per_s // TURNS_PER_S)

    def wait_ms(self) -> i64:
        """Return the ms until there is a portion."""
        missing = self.portion() * MS_PER_S - self._thousandths
        if self.per_s == 0 or missing <= 0:
            return 0
        return min(WAIT_MAX_MS, missing // self.per_s + 1)


@mypyc_attr(allow_interpreted_subclasses=True)
class BacklogSource:
    """Knows the messages that wait in what one user has created."""

    @abstractmethod
    def backlog_bytes(self) -> i64:
        """Return their bytes."""


@final
class Quota(TimerCallback):
    """The rates of one user over all its connections, and the producers that wait for them.

    They also wait while the backlog of the user is full. `held` counts how often a producer has had
    to wait. `may_trickle`: one producer may send a message despite a full backlog, if its client
    may have to do so before it settles what it holds; else that could wait for itself.
    """

    def __init__(self, clock: Clock, timer_queue: TimerQueue, source: BacklogSource) -> None:
        now_ms = clock.now_ms()
        self.held: i64 = 0
        self.waiting: Final = BlockedProducers()
        self._clock: Final = clock
        self._timer_queue: Final = timer_queue
        self._messages: Final = TokenBucket(0, now_ms)
        self._bytes: Final = TokenBucket(0, now_ms)
        self._is_set = False
        self.may_trickle = False
        self._source: Final = source
        self._backlog_max: i64 = 0
        self._is_over = False
        self._looked_ms: i64 = now_ms
        self._left: i64 = 0  # bytes that the user may send before the next look

    def limit(self, *, messages_per_s: i64, bytes_per_s: i64, backlog_max: i64 = 0) -> None:
        """Apply these rates and this backlog in bytes from now on, 0 for none.

        Waiting producers look again.
        """
        now_ms = self._clock.now_ms()
        if (
            messages_per_s == self._messages.per_s
            and bytes_per_s == self._bytes.per_s
            and backlog_max == self._backlog_max
        ):
            return
        self._backlog_max = backlog_max
        self._is_over = False
        self._left = 0
        self._messages.limit(messages_per_s, now_ms)
        self._bytes.limit(bytes_per_s, now_ms)
        self.waiting.resume()

    def is_full(self) -> bool:
        """Return whether the user owes nothing, and has used nothing of the last second."""
        now_ms = self._clock.now_ms()
        self._messages.fill(now_ms)
        self._bytes.fill(now_ms)
        return self._messages.is_full() and self._bytes.is_full()

    def allowance(self, size: i64) -> i64:
        """Return for how many messages of `size` bytes a producer may get credit now; 0: none."""
        now_ms = self._clock.now_ms()
        allowed = UNLIMITED
        size = max(size, SIZE_GUESSED)
        messages, octets = self._messages, self._bytes
        if messages.per_s > 0:
            messages.fill(now_ms)
            allowed = min(messages.tokens(), messages.portion())
        if octets.per_s > 0:
            octets.fill(now_ms)
            left = min(octets.tokens(), octets.portion())
            if left <= 0:
                return 0
            allowed = min(allowed, max(1, left // size))
        if self._backlog_max > 0:
            allowed = min(allowed, max(1, self._left // size))
        return max(0, allowed)

    def has_allowance(self) -> bool:
        """Return whether the user may send a message now."""
        return not self._update_backlog() and self.allowance(SIZE_GUESSED) > 0

    def hold(self, producer: Producer) -> bool:
        """Hold `producer` until there is credit for it, if there is none; return whether so."""
        if self.has_allowance():
            return False
        self.held += 1
        self.waiting.wait(producer)
        self._look_later()
        return True

    def _update_backlog(self) -> bool:
        """Update what is left of the user's backlog; return whether it is full.

        It is looked at every 20 ms, and once the user has sent as much as was left then.
        """
        if self._backlog_max == 0:
            self._is_over = False
            return False
        now_ms = self._clock.now_ms()
        is_used_up = self._left <= 0 and not self._is_over
        if is_used_up or now_ms - self._looked_ms >= LOOK_EVERY_MS:
            self._looked_ms = now_ms
            self._left = self._backlog_max - self._source.backlog_bytes()
            self._is_over = self._left <= 0
        return self._is_over

    def pay(self, messages: i64) -> None:
        """Note that credit for `messages` was granted; a negative number is credit given back."""
        self._messages.take(messages)

    def received(self, size: i64) -> None:
        """Note that the user has sent `size` bytes."""
        self._bytes.take(size)
        self._left -= size

    def _look_later(self) -> None:
        if not self._is_set:
            self._is_set = True
            wait_ms = max(self._messages.wait_ms(), self._bytes.wait_ms())
            wait_ms = max(wait_ms, LOOK_EVERY_MS if self._is_over else 1)
            self._timer_queue.at(self._clock.now_ms() + wait_ms, self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - those that come too early wait again
        self._is_set = False
        self.may_trickle = self._update_backlog()
        self.waiting.resume()
        self.may_trickle = False
