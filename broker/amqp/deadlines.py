"""The deadlines of a connection, the peer's and the broker's: arithmetic without side effects."""

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.limits import Limits

NO_DEADLINE: Final[i64] = -1

HEARTBEAT_MIN_MS: Final[i64] = 50
"""Minimum ms between empty frames to a peer, however short its idle time-out is."""

CLOSE_GRACE_MS: Final[i64] = 2000
"""Maximum ms that the broker waits for the answer to its close."""


@final
class Deadlines:
    """Moments on the steady clock, in ms; NO_DEADLINE for none.

    `handshake_ms` applies until the peer is authenticated; between that and open it may
    take any time (`docs/design/jms-clients.md` 13.10). `partial_ms` applies to a frame that has
    begun to arrive; further pieces do not move it. While the broker does not read (from `hold` to
    `release`) nothing can arrive, so `partial_ms` and the peer's idle time-out do not apply.
    `heartbeat_ms` is the maximum time between two frames to the peer, 0 if it sets none.
    """

    def __init__(self, limits: Limits, now_ms: i64) -> None:
        self.handshake_ms: i64 = now_ms + limits.handshake_timeout_ms
        self.partial_ms: i64 = NO_DEADLINE
        self.close_ms: i64 = NO_DEADLINE
        self.last_input_ms: i64 = now_ms
        self.last_output_ms: i64 = now_ms
        self._is_held = False
        self._limits: Final = limits
        self.heartbeat_ms: i64 = 0
        self._idle_ms: i64 = 0

    def opened(self, peer_idle_time_out: i64) -> None:
        """Start both idle time-outs (2.4.5); the peer's is in ms, -1 if it has none."""
        self._idle_ms = self._limits.idle_time_out_ms
        if peer_idle_time_out > 0:
            self.heartbeat_ms = max(HEARTBEAT_MIN_MS, peer_idle_time_out >> 1)

    def frame_begun(self, now_ms: i64) -> None:
        """Start the deadline of a frame of which a part has arrived."""
        self.partial_ms = now_ms + self._limits.handshake_timeout_ms

    def hold(self) -> None:
        """Note that the broker does not read from now on."""
        self._is_held = True

    def release(self, now_ms: i64) -> None:
        """Note that the broker reads again, and give the peer its full time again."""
        self._is_held = False
        self.last_input_ms = now_ms
        if self.partial_ms != NO_DEADLINE:
            self.frame_begun(now_ms)

    def is_slow(self, now_ms: i64) -> bool:
        """Return whether a frame takes too long to arrive."""
        return not self._is_held and is_due(self.partial_ms, now_ms)

    def close_written(self, now_ms: i64) -> None:
        """Start the deadline of the answer to the broker's close. Idempotent.

        No other deadline applies after that.
        """
        if self.close_ms == NO_DEADLINE:
            self.close_ms = now_ms + CLOSE_GRACE_MS

    def is_idle(self, now_ms: i64) -> bool:
        """Return whether the peer has sent nothing for the broker's idle time-out."""
        if self._idle_ms == 0 or self._is_held:
            return False
        return now_ms - self.last_input_ms >= self._idle_ms

    def owes_heartbeat(self, now_ms: i64) -> bool:
        """Return whether to send an empty frame, before the peer's idle time-out expires."""
        return self.heartbeat_ms > 0 and now_ms - self.last_output_ms >= self.heartbeat_ms

    def earliest(self) -> i64:
        """Return the earliest deadline of a connection that is not closing, or NO_DEADLINE."""
        found = self.handshake_ms
        if not self._is_held:
            found = earlier(found, self.partial_ms)
        if self._idle_ms > 0 and not self._is_held:
            found = earlier(found, self.last_input_ms + self._idle_ms)
        if self.heartbeat_ms > 0:
            found = earlier(found, self.last_output_ms + self.heartbeat_ms)
        return found


def earlier(one: i64, other: i64) -> i64:
    """Return the earlier of two deadlines, either of which may be NO_DEADLINE."""
    if one == NO_DEADLINE:
        return other
    if other == NO_DEADLINE:
        return one
    return min(one, other)


def is_due(deadline_ms: i64, now_ms: i64) -> bool:
    """Return whether the deadline is set and has been reached."""
    return deadline_ms != NO_DEADLINE and now_ms >= deadline_ms
