"""By when a peer must have done something, and by when we must: the arithmetic, not the deeds."""

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.limits import Limits

NO_DEADLINE: Final[i64] = -1

HEARTBEAT_MIN_MS: Final[i64] = 50
"""However short a peer's idle time-out, we send no empty frames more often than this."""

CLOSE_GRACE_MS: Final[i64] = 2000
"""So long we wait for the answer to our close."""


@final
class Deadlines:
    """Moments on the steady clock, in ms; NO_DEADLINE where there is none.

    `handshake_ms` holds until the peer is let in; between that and open it may
    take its time (client contract 13.10). A frame that has begun to come has a
    deadline of its own, which further pieces do not move. While we do not read, nothing can
    come: `hold` and `release` say so.
    """

    def __init__(self, limits: Limits, now_ms: i64) -> None:
        self.handshake_ms: i64 = now_ms + limits.handshake_timeout_ms
        self.partial_ms: i64 = NO_DEADLINE
        self.close_ms: i64 = NO_DEADLINE
        self.last_input_ms: i64 = now_ms
        self.last_output_ms: i64 = now_ms
        self._is_held = False
        self._limits: Final = limits
        self._heartbeat_ms: i64 = 0
        self._idle_ms: i64 = 0

    def opened(self, peer_idle_time_out: i64) -> None:
        """Both idle time-outs run from now on (2.4.5); the peer's is -1 where it has none."""
        self._idle_ms = self._limits.idle_time_out_ms
        if peer_idle_time_out > 0:
            self._heartbeat_ms = max(HEARTBEAT_MIN_MS, peer_idle_time_out >> 1)

    def frame_begun(self, now_ms: i64) -> None:
        """Part of a frame has come."""
        self.partial_ms = now_ms + self._limits.handshake_timeout_ms

    def hold(self) -> None:
        """Nothing is read from now on."""
        self._is_held = True

    def release(self, now_ms: i64) -> None:
        """The peer is read from again: it has all its time again, too."""
        self._is_held = False
        self.last_input_ms = now_ms
        if self.partial_ms != NO_DEADLINE:
            self.frame_begun(now_ms)

    def is_slow(self, now_ms: i64) -> bool:
        """Whether a frame takes too long to come."""
        return not self._is_held and is_due(self.partial_ms, now_ms)

    def close_written(self, now_ms: i64) -> None:
        """Our close goes out; its answer is waited for, and nothing else."""
        if self.close_ms == NO_DEADLINE:
            self.close_ms = now_ms + CLOSE_GRACE_MS

    def is_idle(self, now_ms: i64) -> bool:
        """Whether the peer has kept silent for longer than we bear."""
        if self._idle_ms == 0 or self._is_held:
            return False
        return now_ms - self.last_input_ms >= self._idle_ms

    def owes_heartbeat(self, now_ms: i64) -> bool:
        """Whether the peer would soon find us silent for too long."""
        return self._heartbeat_ms > 0 and now_ms - self.last_output_ms >= self._heartbeat_ms

    def earliest(self) -> i64:
        """The next of all while the connection lasts, or NO_DEADLINE."""
        found = self.handshake_ms
        if not self._is_held:
            found = earlier(found, self.partial_ms)
        if self._idle_ms > 0 and not self._is_held:
            found = earlier(found, self.last_input_ms + self._idle_ms)
        if self._heartbeat_ms > 0:
            found = earlier(found, self.last_output_ms + self._heartbeat_ms)
        return found


def earlier(one: i64, other: i64) -> i64:
    """The earlier of two deadlines, either of which may be none."""
    if one == NO_DEADLINE:
        return other
    if other == NO_DEADLINE:
        return one
    return min(one, other)


def is_due(deadline_ms: i64, now_ms: i64) -> bool:
    """Whether there is such a deadline, and it has come."""
    return deadline_ms != NO_DEADLINE and now_ms >= deadline_ms
