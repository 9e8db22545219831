"""Slows down failed logins: by source, and by source and user. No account is ever locked.

A source has a bucket of FAILURES_PER_MINUTE tokens, of which each failure takes one, and that fills
up again within a minute. Failures with one user name of one source are also followed by a growing
delay. A login that comes too early is not checked: the client is told to try again later, and the
attempt does not count. A flood therefore neither guesses faster nor keeps a user of another source
out. Loopback is a source like any other.

Ask `allowed_at` right before a password is checked, also before a password is recalled: else many
logins at once pass before the first one has failed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

FAILURES_PER_MINUTE: Final = 10
"""Failed logins that a source may have in a minute."""

TOKEN_MS: Final = MINUTE_MS // FAILURES_PER_MINUTE

DEBT_MAX: Final = 10
"""Failures beyond the bucket that a source must wait for: those of checks that ran at once."""

DELAYS_MS: Final = (0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000)
"""Delay behind the first, second … failure in a row of one user from one source; then the last."""

FORGOTTEN_AFTER_MS: Final = 10 * MINUTE_MS
"""Milliseconds without a failure after which the delay of a source and user begins anew."""

SOURCES_MAX: Final = 10_000
"""Maximum sources that are kept, 0.3 KiB each; the one whose last failure is oldest is dropped."""

DELAYS_MAX: Final = 20_000
"""Maximum pairs of source and user whose delays are kept, 0.4 KiB each; the oldest is dropped.
The buckets let one source fill 100 of them before its first are forgotten."""

SPRAY_FAILURES: Final = 100
"""Failed logins of one user within an hour, from whatever sources, that are reported."""

SPRAYED_USERS_MAX: Final = 1_000
"""Maximum users whose failures are counted, 0.5 KiB each; the oldest is dropped."""

SLOTS_PER_HOUR: Final = 12
SLOT_MS: Final = HOUR_MS // SLOTS_PER_HOUR
"""Failures of a user are counted in slots of five minutes: an hour is exact to one of them."""


class FailingSource:
    """The failed logins of one source since the broker's start; times are steady ms.

    `full_at_ms` is when its bucket will be full: each failure moves that by TOKEN_MS.
    """

    __slots__ = ("failures", "full_at_ms", "last_ms")

    def __init__(self) -> None:
        self.full_at_ms = 0
        self.failures = 0
        self.last_ms = 0

    def failed(self, now_ms: int) -> None:
        """Count a failure, which takes a token of the bucket."""
        latest_ms = now_ms + (FAILURES_PER_MINUTE + DEBT_MAX) * TOKEN_MS
        self.full_at_ms = min(max(self.full_at_ms, now_ms) + TOKEN_MS, latest_ms)
        self.failures += 1
        self.last_ms = now_ms

    def allowed_at(self) -> int:
        """Return the ms from which the bucket has a token, which may be past."""
        return self.full_at_ms - (FAILURES_PER_MINUTE - 1) * TOKEN_MS


class FailuresInARow:
    """The failures in a row of one user from one source."""

    __slots__ = ("count", "last_ms")

    def __init__(self) -> None:
        self.count = 0
        self.last_ms = 0

    def failed(self, now_ms: int) -> None:
        """Count a failure; those before a pause of FORGOTTEN_AFTER_MS count no more."""
        if now_ms - self.last_ms >= FORGOTTEN_AFTER_MS:
            self.count = 0
        self.count += 1
        self.last_ms = now_ms

    def allowed_at(self) -> int:
        """Return the ms from which the next login is checked."""
        return self.last_ms + DELAYS_MS[min(self.count, len(DELAYS_MS)) - 1]


class SprayedUser:
    """The failures of one user from all sources within the last hour."""

    __slots__ = ("_reported_ms", "_slot", "_slots")

    def __init__(self) -> None:
        self._slots: Final = [0] * SLOTS_PER_HOUR
        self._slot = 0
        self._reported_ms: int | None = None

    def failed(self, now_ms: int) -> int:
        """Count a failure; return the failures of the hour if they are to be reported, else 0."""
        slot = now_ms // SLOT_MS
        for stale in range(max(self._slot + 1, slot - SLOTS_PER_HOUR + 1), slot + 1):
            self._slots[stale % SLOTS_PER_HOUR] = 0
        self._slot = slot
        self._slots[slot % SLOTS_PER_HOUR] += 1
        count = sum(self._slots)
        if count < SPRAY_FAILURES:
            return 0
        if self._reported_ms is not None and now_ms - self._reported_ms < HOUR_MS:
            return 0
        self._reported_ms = now_ms
        return count


class LoginThrottle:
    """Decides from when a login is checked, by the failures before it. Times are steady ms.

    Names of users are kept as their hashes: a client chooses how long they are.
    """

    def __init__(
        self,
        *,
        sources_max: int = SOURCES_MAX,
        delays_max: int = DELAYS_MAX,
        sprayed_users_max: int = SPRAYED_USERS_MAX,
    ) -> None:
        self._sources_max: Final = sources_max
        self._delays_max: Final = delays_max
        self._sprayed_users_max: Final = sprayed_users_max
        self._sources: Final[OrderedDict[str, FailingSource]] = OrderedDict()
        self._in_a_row: Final[OrderedDict[tuple[str, int], FailuresInARow]] = OrderedDict()
        self._sprayed: Final[OrderedDict[int, SprayedUser]] = OrderedDict()

    @property
    def sources(self) -> Mapping[str, FailingSource]:
        """The sources that are kept, the one whose last failure is oldest first."""
        return self._sources

    def allowed_at(self, source: str, user: str, now_ms: int) -> int:
        """Return the ms from which a login of `user` from `source` is checked: `now_ms` or later.

        `source` is what `turns.source_of` returns for the address of a peer.
        """
        failing = self._sources.get(source)
        allowed_ms = now_ms if failing is None else max(now_ms, failing.allowed_at())
        in_a_row = self._in_a_row.get((source, hash(user)))
        return allowed_ms if in_a_row is None else max(allowed_ms, in_a_row.allowed_at())

    def failed(self, source: str, user: str, now_ms: int) -> int:
        """Count a failed login, of a user that exists or not.

        Return the failures of `user` within the last hour if that is to be reported as a spray, at
        most once an hour for each user; else 0.
        """
        self._sources.setdefault(source, FailingSource()).failed(now_ms)
        self._sources.move_to_end(source)
        if len(self._sources) > self._sources_max:
            self._sources.popitem(last=False)
        pair = (source, hash(user))
        self._in_a_row.setdefault(pair, FailuresInARow()).failed(now_ms)
        self._in_a_row.move_to_end(pair)
        if len(self._in_a_row) > self._delays_max:
            self._in_a_row.popitem(last=False)
        sprayed = self._sprayed.setdefault(hash(user), SprayedUser())
        self._sprayed.move_to_end(hash(user))
        if len(self._sprayed) > self._sprayed_users_max:
            self._sprayed.popitem(last=False)
        return sprayed.failed(now_ms)

    def succeeded(self, source: str, user: str) -> None:
        """Forget the failures in a row of `user` from `source`. The source's bucket stays."""
        self._in_a_row.pop((source, hash(user)), None)

    def forget(self, source: str) -> bool:
        """Forget all failures of `source`: its logins are checked at once. Return if it had any."""
        for pair in [each for each in self._in_a_row if each[0] == source]:
            del self._in_a_row[pair]
        return self._sources.pop(source, None) is not None
