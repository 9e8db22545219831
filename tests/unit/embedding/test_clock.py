"""Virtual time: messages expire, pauses end, and no client is disconnected by a jump."""

import time
from collections.abc import Callable

import pytest

from broker.amqp.outcomes import RELEASED
from broker.amqp.performatives import Close
from broker.embedding import Broker
from broker.embedding.clock import STEPS_MAX, VirtualClock
from broker.routing.timer_queue import TimerCallback
from tests.support.embedded import consume, port_of, put, settle, waiting
from tests.support.socket_client import SocketClient

HOUR_MS = 3_600_000

AMOUNTS: list[tuple[Callable[[VirtualClock], None], int]] = [
    (lambda clock: clock.advance(days=1), 24 * HOUR_MS),
    (lambda clock: clock.advance(hours=1), HOUR_MS),
    (lambda clock: clock.advance(minutes=1.5), 90_000),
    (lambda clock: clock.advance(seconds=2), 2000),
    (lambda clock: clock.advance(milliseconds=7), 7),
    (lambda clock: clock.advance(hours=1, seconds=1), HOUR_MS + 1000),
    (lambda clock: clock.advance(), 0),
]


@pytest.mark.parametrize(
    ("advance", "expected"),
    AMOUNTS,
    ids=["days", "hours", "minutes", "seconds", "milliseconds", "several", "nothing"],
)
def test_time_in_the_units_of_people(
    advance: Callable[[VirtualClock], None], expected: int
) -> None:
    passed: list[int] = []
    advance(VirtualClock(passed.append))
    assert passed == [expected]


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        VirtualClock(lambda _: None).advance(hours=-1)


def test_it_runs_on_between_jumps() -> None:
    clock = VirtualClock(lambda _: None)
    before = clock.now_ms(), clock.wall_ms()
    clock.jump(HOUR_MS)
    assert clock.now_ms() - before[0] >= HOUR_MS
    assert clock.wall_ms() - before[1] >= HOUR_MS
    seen = clock.now_ms()
    while clock.now_ms() == seen:
        pass
    ahead = clock.wall_ms() - time.time_ns() // 1_000_000
    assert HOUR_MS - 1000 < ahead <= HOUR_MS


def test_messages_expire_when_their_time_is_over() -> None:
    with Broker(expiry="expired") as running:
        put(running, "orders", b"a", ttl=HOUR_MS // 2)
        put(running, "orders", b"b", ttl=2 * HOUR_MS)
        put(running, "orders", b"c")
        running.clock.advance(minutes=29)
        assert waiting(running, "orders") == [b"a", b"b", b"c"]
        running.clock.advance(minutes=2)
        assert waiting(running, "orders") == [b"b", b"c"]
        assert waiting(running, "expired") == [b"a"]
        running.clock.advance(days=365)
        assert waiting(running, "orders") == [b"c"]


@pytest.mark.requirement("DLY-01", "DLY-05")
def test_messages_fall_due_when_their_time_has_come() -> None:
    with Broker(expiry="expired") as running:
        put(running, "orders", b"in two hours", delay=2 * HOUR_MS)
        put(running, "orders", b"in an hour", delay=HOUR_MS)
        put(running, "orders", b"too late", delay=HOUR_MS, ttl=HOUR_MS // 2)
        running.clock.advance(minutes=29)
        assert waiting(running, "orders") == []
        scheduled = [each.body for each in running.scheduled("orders")]
        assert scheduled == [b"too late", b"in an hour", b"in two hours"]
        running.clock.advance(minutes=32)
        assert waiting(running, "orders") == [b"in an hour"]
        assert waiting(running, "expired") == [b"too late"]
        running.clock.advance(hours=1)
        assert waiting(running, "orders") == [b"in an hour", b"in two hours"]
        assert running.scheduled("orders") == []


async def test_a_message_falls_due_by_itself_after_a_jump() -> None:
    async with Broker() as running:
        put(running, "orders", b"later", delay=HOUR_MS + 20)
        running.clock.advance(hours=1)
        await running.until(lambda: running.messages("orders"))


async def test_connections_outlive_it() -> None:
    async with Broker() as running, SocketClient(port_of(running)) as client:
        await client.open(idle_time_out=60_000)
        running.clock.advance(days=30)
        client.send(Close())
        found = await client.frame()
        while len(found) == 8:  # heartbeats
            found = await client.frame()
        assert await client.eof()


async def test_pauses_end_by_themselves_after_a_jump() -> None:
    """The timer was set before the jump, for a time that is now nearer."""
    async with Broker() as running, SocketClient(port_of(running)) as client:
        put(running, "orders", b"a")
        await consume(client, "orders", count=1)
        running.clock.advance(hours=1)
        settle(client, 0, RELEASED)
        await running.until(lambda: running.messages("orders"))


class Note(TimerCallback):
    """A timer callback that records the times of its calls."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.called_at: list[int] = []

    def due(self, now_ms: int) -> None:
        self.called_at.append(now_ms)


async def test_what_falls_due_meanwhile_finds_its_own_time() -> None:
    async with Broker() as running:
        timer_queue = running._app().container.router.timer_queue
        note = Note(running.clock)
        start = running.clock.now_ms()
        for minutes in (10, 20, 50):
            timer_queue.at(start + minutes * 60_000, note)
        running.clock.advance(hours=1)
        late = [at - start for at in note.called_at]
        step = HOUR_MS // STEPS_MAX
        assert len(late) == 3
        for at, minutes in zip(late, (10, 20, 50), strict=True):
            assert minutes * 60_000 <= at <= minutes * 60_000 + step + 1000


async def test_the_broker_wakes_in_time_after_a_jump() -> None:
    async with Broker() as running:
        timer_queue = running._app().container.router.timer_queue
        note = Note(running.clock)
        timer_queue.at(running.clock.now_ms() + HOUR_MS, note)
        running.clock.advance(milliseconds=HOUR_MS - 200)
        assert note.called_at == []
        await running.until(lambda: note.called_at)
