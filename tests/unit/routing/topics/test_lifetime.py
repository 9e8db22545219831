"""Lifetimes: the ends that count by policy, the time until expiry, and cancelling by re-attach."""

from __future__ import annotations

import pytest

from broker.routing.timer_queue import NOTHING, TimerQueue
from broker.routing.topics.lifetime import (
    HORIZON_MS,
    STALE_FREE,
    Ending,
    Expiries,
    Expiring,
    Expiry,
    ExpiryDecision,
    ExpiryPolicy,
    decide_expiry,
    respite_ms,
)
from storage.batch import Batch
from tests.support.clock import SimulatedClock

CLOSED = Ending.LINK_CLOSED
DETACHED = Ending.LINK_DETACHED
ENDED = Ending.SESSION_ENDED
GONE = Ending.CONNECTION_CLOSED
LOST = Ending.CONNECTION_LOST

FATES = [
    ("link-detach", {CLOSED: "ends", DETACHED: "expires", ENDED: "expires", GONE: "expires"}),
    ("session-end", {CLOSED: "ends", DETACHED: "stays", ENDED: "expires", GONE: "expires"}),
    ("connection-close", {CLOSED: "ends", DETACHED: "stays", ENDED: "stays", GONE: "expires"}),
    ("never", {CLOSED: "ends", DETACHED: "stays", ENDED: "stays", GONE: "stays"}),
]


@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize(
    ("policy", "ending", "expected"),
    [
        pytest.param(policy, ending, expected, id=f"{policy}, {ending.value}")
        for policy, row in FATES
        for ending, expected in [*row.items(), (LOST, row[GONE])]
    ],
)
def test_what_an_ending_means(policy: str, ending: Ending, expected: str) -> None:
    assert decide_expiry(policy, ending) is ExpiryDecision[expected.upper()]


RESPITES = [
    pytest.param(ExpiryPolicy("link-detach"), DETACHED, 0, id="no timeout"),
    pytest.param(ExpiryPolicy("link-detach", timeout_s=3), DETACHED, 3000, id="a timeout"),
    pytest.param(ExpiryPolicy("never", timeout_s=2**32 - 1), GONE, 4294967295000, id="the longest"),
    pytest.param(ExpiryPolicy("link-detach", grace_ms=500), GONE, 0, id="no grace for good order"),
    pytest.param(ExpiryPolicy("link-detach", grace_ms=500), LOST, 500, id="grace after a loss"),
    pytest.param(
        ExpiryPolicy("link-detach", timeout_s=3, grace_ms=500),
        LOST,
        3000,
        id="a timeout beyond the grace",
    ),
    pytest.param(
        ExpiryPolicy("link-detach", timeout_s=1, grace_ms=5000),
        LOST,
        5000,
        id="a grace beyond the timeout",
    ),
]


@pytest.mark.requirement("SUB-25", "DST-12")
@pytest.mark.parametrize(("terms", "ending", "expected"), RESPITES)
def test_how_long_something_goes_on(terms: ExpiryPolicy, ending: Ending, expected: int) -> None:
    assert respite_ms(terms, ending) == expected


class Thing(Expiring):
    """An expiring object that counts its ends."""

    def __init__(self) -> None:
        self.ends = 0

    def expired(self, batch: Batch) -> None:  # noqa: ARG002 - nothing here is stored
        self.ends += 1


class World:
    """Expiries on simulated time, and the calls that a container would make."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.timer_queue = TimerQueue()
        self.batch = Batch()
        self.expiries = Expiries(self.timer_queue, self.clock)

    def expiry(self, policy: str, timeout_s: int = 0, grace_ms: int = 0) -> tuple[Expiry, Thing]:
        thing = Thing()
        return Expiry(thing, ExpiryPolicy(policy, timeout_s=timeout_s, grace_ms=grace_ms)), thing

    def link(self, expiry: Expiry, ending: Ending, session: int = 0) -> None:
        """End the link of `expiry`, in the given session of connection 1."""
        self.expiries.link_ended(expiry, ending, self.batch, connection=1, session=session)

    def session(self, session: int = 0, connection: int = 1) -> None:
        self.expiries.session_ended(connection, session, self.batch)

    def connection(self, ending: Ending = GONE, connection: int = 1) -> None:
        self.expiries.connection_ended(connection, ending, self.batch)

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.timer_queue.tick(self.clock.now_ms())
        if self.expiries.any_due:
            self.expiries.collect(self.batch)


@pytest.mark.requirement("SUB-25")
def test_a_link_that_is_closed_ends_it_at_once_whatever_the_policy() -> None:
    world = World()
    for policy in ("link-detach", "session-end", "connection-close", "never"):
        expiry, thing = world.expiry(policy, timeout_s=10)
        world.link(expiry, CLOSED)
        assert thing.ends == 1
    assert world.expiries.waiting() == 0


@pytest.mark.requirement("SUB-25")
def test_a_timeout_counts_from_the_detach() -> None:
    world = World()
    expiry, thing = world.expiry("link-detach", timeout_s=2)
    world.link(expiry, DETACHED)
    world.advance(1999)
    world.connection()
    assert thing.ends == 0
    world.advance(1)
    assert thing.ends == 1
    assert world.timer_queue.next_deadline_ms() == NOTHING


@pytest.mark.requirement("SUB-25")
def test_a_timeout_counts_from_the_end_of_the_session() -> None:
    world = World()
    expiry, thing = world.expiry("session-end", timeout_s=2)
    world.link(expiry, DETACHED, session=7)
    world.advance(10_000)
    world.session(8)
    world.session(7, connection=2)
    world.advance(10_000)
    assert thing.ends == 0
    world.session(7)
    world.advance(1999)
    assert thing.ends == 0
    world.advance(1)
    assert thing.ends == 1


@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize("ending", [DETACHED, ENDED], ids=lambda ending: ending.value)
def test_a_timeout_counts_from_the_end_of_the_connection(ending: Ending) -> None:
    world = World()
    expiry, thing = world.expiry("connection-close", timeout_s=2)
    world.link(expiry, ending)
    world.session()
    world.connection(connection=2)
    world.advance(10_000)
    assert thing.ends == 0
    world.connection()
    world.advance(1999)
    assert thing.ends == 0
    world.advance(1)
    assert thing.ends == 1


@pytest.mark.requirement("SUB-25")
def test_without_a_timeout_the_end_is_the_end() -> None:
    world = World()
    detached, first = world.expiry("link-detach")
    ended, second = world.expiry("session-end")
    gone, third = world.expiry("connection-close")
    for expiry in (detached, ended, gone):
        world.link(expiry, DETACHED)
    assert (first.ends, second.ends, third.ends) == (1, 0, 0)
    world.session()
    assert (first.ends, second.ends, third.ends) == (1, 1, 0)
    world.connection()
    assert (first.ends, second.ends, third.ends) == (1, 1, 1)
    assert world.expiries.waiting() == 0


@pytest.mark.requirement("SUB-25")
def test_what_never_expires_waits_for_nothing() -> None:
    world = World()
    expiry, thing = world.expiry("never", timeout_s=1, grace_ms=1)
    world.link(expiry, DETACHED)
    assert world.expiries.waiting() == 0
    world.session()
    world.connection(LOST)
    world.advance(10**9)
    assert thing.ends == 0


@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize("policy", ["link-detach", "session-end", "connection-close"])
def test_a_re_attach_cancels(policy: str) -> None:
    world = World()
    expiry, thing = world.expiry(policy, timeout_s=2)
    world.link(expiry, DETACHED)
    world.advance(1999)
    world.expiries.resume(expiry)
    assert world.expiries.waiting() == 0
    world.session()
    world.connection(LOST)
    world.advance(10_000)
    assert thing.ends == 0
    world.link(expiry, LOST)
    world.advance(1999)
    assert thing.ends == 0, "the timeout counts anew"
    world.advance(1)
    assert thing.ends == 1


@pytest.mark.requirement("DST-12")
def test_a_lost_connection_leaves_a_grace_and_a_closed_one_does_not() -> None:
    world = World()
    lost, kept = world.expiry("link-detach", grace_ms=300)
    closed, ended = world.expiry("link-detach", grace_ms=300)
    world.link(lost, LOST)
    world.link(closed, GONE)
    assert (kept.ends, ended.ends) == (0, 1)
    world.advance(299)
    assert kept.ends == 0
    world.advance(1)
    assert kept.ends == 1


@pytest.mark.requirement("DST-12")
def test_a_grace_is_given_to_what_waited_for_the_connection() -> None:
    world = World()
    expiry, thing = world.expiry("connection-close", grace_ms=300)
    world.link(expiry, DETACHED)
    world.connection(LOST)
    assert thing.ends == 0
    world.advance(300)
    assert thing.ends == 1


def test_what_has_ended_otherwise_is_not_told() -> None:
    world = World()
    expiry, thing = world.expiry("link-detach", timeout_s=1)
    world.link(expiry, DETACHED)
    world.expiries.end(expiry)
    waiting, other = world.expiry("session-end")
    world.link(waiting, DETACHED)
    world.expiries.end(waiting)
    world.session()
    world.advance(5000)
    assert (thing.ends, other.ends) == (0, 0)
    assert world.expiries.waiting() == 0


def test_each_ends_at_its_own_moment() -> None:
    world = World()
    things = []
    for timeout in (3, 1, 2):
        expiry, thing = world.expiry("link-detach", timeout_s=timeout)
        things.append(thing)
        world.link(expiry, DETACHED)
    seen = []
    for _ in range(3):
        world.advance(1000)
        seen.append([thing.ends for thing in things])
    assert seen == [[0, 1, 0], [0, 1, 1], [1, 1, 1]]


def test_a_far_deadline_is_met_though_the_timer_queue_has_a_nearer_horizon() -> None:
    world = World()
    expiry, thing = world.expiry("link-detach", timeout_s=150)
    world.link(expiry, DETACHED)
    assert world.timer_queue.next_deadline_ms() == world.clock.now_ms() + HORIZON_MS
    for _ in range(149):
        world.advance(1000)
    assert thing.ends == 0
    world.advance(1000)
    assert thing.ends == 1


def test_detaching_and_attaching_over_and_over_leaves_nothing_behind() -> None:
    """A peer chooses the timeout: neither heap may keep an entry for every detach.

    `docs/design/hostile-input.md` R3.
    """
    world = World()
    expiries = [world.expiry("link-detach", timeout_s=2**32 - 1)[0] for _ in range(10)]
    for _ in range(100):
        for expiry in expiries:
            world.link(expiry, DETACHED)
            world.expiries.resume(expiry)
    world.link(expiries[0], DETACHED)
    assert world.expiries.waiting() == 1
    assert world.expiries.deadlines() <= STALE_FREE + 2
    timer_queue = 0
    while world.timer_queue.next_deadline_ms() != NOTHING and timer_queue < 3:
        timer_queue += 1
        world.timer_queue.tick(world.timer_queue.next_deadline_ms())
    assert timer_queue == 1
