"""Expiry of objects that a link made or kept (core 3.5.6): at which end, and how long after it.

One mechanism for dynamic nodes, subscriptions and the grace period after a lost
connection. The owner of an `Expiry` reports the ends of its link, and a
re-attach; `Expiring.expired` is then called once, now or later, or never.
"""

from __future__ import annotations

from abc import abstractmethod
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.terminus import CONNECTION_CLOSE, LINK_DETACH, NEVER, SESSION_END
from broker.clock import Clock
from broker.routing.timer_queue import TimerCallback, TimerQueue
from storage.batch import Batch

NEVER_ENDS: Final[i64] = -1
HORIZON_MS: Final[i64] = 60_000
"""Farthest moment, in ms from now, entered in the timer queue, so that no client fills it."""
STALE_FREE: Final[i64] = 64
"""Maximum deadlines of resumed expiries in the heap, besides one for each running expiry."""


class Ending(Enum):
    """The end of a link, or later of its session or connection: the outermost one counts."""

    LINK_CLOSED = "detached with closed=true"
    LINK_DETACHED = "detached, or stolen"
    SESSION_ENDED = "session ended"
    CONNECTION_CLOSED = "connection closed in good order"
    CONNECTION_LOST = "connection lost, or ended by a fault"


class ExpiryDecision(Enum):
    """Effect of an ending on an expiry."""

    ENDS = "it is over now"
    EXPIRES = "its timeout counts from now"
    STAYS = "the end that its policy names has not come"


@final
class ExpiryPolicy:
    """An expiry-policy, its timeout, and the minimum time left after a connection was lost."""

    def __init__(self, policy: str, *, timeout_s: i64 = 0, grace_ms: i64 = 0) -> None:
        self.policy: Final = policy
        self.timeout_s: Final[i64] = timeout_s
        self.grace_ms: Final[i64] = grace_ms


def decide_expiry(policy: str, ending: Ending) -> ExpiryDecision:
    """Return the effect of `ending` under `policy`; a closed link ends its terminus (2.6.4)."""
    if ending is Ending.LINK_CLOSED:
        return ExpiryDecision.ENDS
    if policy == LINK_DETACH:
        return ExpiryDecision.EXPIRES
    if policy == SESSION_END:
        return ExpiryDecision.STAYS if ending is Ending.LINK_DETACHED else ExpiryDecision.EXPIRES
    over = ending is Ending.CONNECTION_CLOSED or ending is Ending.CONNECTION_LOST
    if policy == CONNECTION_CLOSE and over:
        return ExpiryDecision.EXPIRES
    return ExpiryDecision.STAYS


def respite_ms(terms: ExpiryPolicy, ending: Ending) -> i64:
    """Return how many ms the object lasts after `ending`, at which its timeout begins to count."""
    timeout_ms = terms.timeout_s * 1000
    if ending is Ending.CONNECTION_LOST:
        return max(timeout_ms, terms.grace_ms)
    return timeout_ms


@mypyc_attr(allow_interpreted_subclasses=True)
class Expiring:
    """An object whose life an `Expiry` decides."""

    @abstractmethod
    def expired(self, batch: Batch) -> None:
        """End this object: its time is over, and no link has come back for it."""


@final
class Expiry:
    """The life of one `Expiring` by its expiry-policy.

    It is held while a link is attached; else it waits for the end of its session
    or connection, or for its deadline, or for nothing at all.
    """

    def __init__(self, expiring: Expiring, terms: ExpiryPolicy) -> None:
        self.terms = terms
        self.expiring: Expiring | None = expiring
        self.connection: i64 = -1
        self.session: i64 = -1
        self.deadline_ms: i64 = NEVER_ENDS


@final
class Expiries(TimerCallback):
    """The expiries that no link holds: those that wait for an end, and those with a deadline."""

    def __init__(self, timer_queue: TimerQueue, clock: Clock) -> None:
        self.any_due = False
        self._timer_queue: Final = timer_queue
        self._clock: Final = clock
        self._waiting: Final[dict[int, dict[Expiry, None]]] = {}
        self._deadlines: list[tuple[int, int, Expiry]] = []
        self._running: i64 = 0
        self._order = 0
        self._asked_for_ms: i64 = NEVER_ENDS

    # -- what happens to links

    def link_ended(
        self, expiry: Expiry, ending: Ending, batch: Batch, *, connection: i64, session: i64
    ) -> None:
        """Start `expiry`: its last link, in that session of that connection, has ended.

        The numbers need to be unique only while the connection, or the session in it, lives.
        """
        self.resume(expiry)
        if self._start_expiry(expiry, ending, batch) or expiry.terms.policy == NEVER:
            return
        expiry.connection = connection
        expiry.session = session
        self._waiting.setdefault(int(connection), {})[expiry] = None

    def session_ended(self, connection: i64, session: i64, batch: Batch) -> None:
        """Apply the end of a session whose connection goes on; its links were reported before."""
        for expiry in list(self._waiting.get(int(connection), {})):
            if expiry.session == session:
                self._start_expiry(expiry, Ending.SESSION_ENDED, batch)

    def connection_ended(self, connection: i64, ending: Ending, batch: Batch) -> None:
        """Apply the end of a connection; the ends of its links were reported before."""
        waiting = self._waiting.pop(int(connection), None)
        if waiting is not None:
            for expiry in waiting:
                expiry.connection = -1
                self._start_expiry(expiry, ending, batch)

    def resume(self, expiry: Expiry) -> None:
        """Stop `expiry`: a link holds it again, or its object has ended otherwise."""
        if expiry.connection >= 0:
            self._stop_waiting(expiry)
        if expiry.deadline_ms != NEVER_ENDS:
            expiry.deadline_ms = NEVER_ENDS
            self._running -= 1

    def end(self, expiry: Expiry) -> None:
        """Stop `expiry` for good: its object is gone, and its `expired` is not called any more."""
        self.resume(expiry)
        expiry.expiring = None

    def waiting(self) -> i64:
        """Return the number of expiries that no link holds, except those that never end."""
        count = self._running
        for waiting in self._waiting.values():
            count += len(waiting)
        return count

    def deadlines(self) -> i64:
        """Return the number of deadlines in the heap, those of resumed expiries included."""
        return i64(len(self._deadlines))

    # -- what follows

    def _start_expiry(self, expiry: Expiry, ending: Ending, batch: Batch) -> bool:
        """End the object of `expiry`, or start its timeout, as `ending` says; False if neither."""
        decision = decide_expiry(expiry.terms.policy, ending)
        if decision is ExpiryDecision.STAYS:
            return False
        self._stop_waiting(expiry)
        respite = respite_ms(expiry.terms, ending) if decision is ExpiryDecision.EXPIRES else i64(0)
        if respite <= 0:
            self._finish(expiry, batch)
        else:
            self._run_out(expiry, self._clock.now_ms() + respite)
        return True

    def _finish(self, expiry: Expiry, batch: Batch) -> None:
        expiring = expiry.expiring
        self.end(expiry)
        if expiring is not None:
            expiring.expired(batch)

    def _stop_waiting(self, expiry: Expiry) -> None:
        waiting = self._waiting.get(int(expiry.connection))
        if waiting is not None:
            waiting.pop(expiry, None)
            if not waiting:
                del self._waiting[int(expiry.connection)]
        expiry.connection = -1

    def _run_out(self, expiry: Expiry, deadline_ms: i64) -> None:
        expiry.deadline_ms = deadline_ms
        self._running += 1
        self._order += 1
        heappush(self._deadlines, (int(deadline_ms), self._order, expiry))
        if len(self._deadlines) > 2 * self._running + STALE_FREE:
            self._deadlines = [entry for entry in self._deadlines if is_live(entry)]
            heapify(self._deadlines)
        self._ask()

    def _ask(self) -> None:
        """Have `due` called at the earliest deadline, or at the horizon if that is earlier."""
        if not self._deadlines:
            return
        deadline = i64(self._deadlines[0][0])
        wanted = min(deadline, self._clock.now_ms() + HORIZON_MS)
        if self._asked_for_ms == NEVER_ENDS or wanted < self._asked_for_ms:
            self._asked_for_ms = wanted
            self._timer_queue.at(wanted, self)

    def due(self, now_ms: i64) -> None:
        if now_ms >= self._asked_for_ms:
            self._asked_for_ms = NEVER_ENDS
        self.any_due = True

    def collect(self, batch: Batch) -> None:
        """End all objects whose deadline is over. `due` cannot: it has no batch for the changes."""
        self.any_due = False
        now_ms = self._clock.now_ms()
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            entry = heappop(self._deadlines)
            if is_live(entry):
                self._finish(entry[2], batch)
        self._ask()


def is_live(entry: tuple[int, int, Expiry]) -> bool:
    """Return whether a deadline in the heap still is that of its expiry."""
    return entry[2].deadline_ms == entry[0]
