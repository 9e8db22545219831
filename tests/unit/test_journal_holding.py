"""Messages that the journal holds for consumers that keep up: how long, and who is told when."""

import asyncio
from contextlib import suppress

import pytest

from broker.journal import PAGE_BYTES_MAX, Journal
from broker.routing.credit.commit_delay import PATIENCE
from tests.support.clock import SimulatedClock
from tests.support.stores import GatedStore
from tests.unit.test_journal import Told, append, nothing_follows, settle

pytestmark = pytest.mark.requirement("PRD-03")


HOUR_US = 3_600_000_000
"""An hour in µs: no timer of the loop fires in a test, which advances time and calls `tick`."""


class Holding:
    """A journal that holds messages for an hour, on a simulated clock."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.clock = SimulatedClock()
        self.journal = Journal(self.store, self.clock, hold_us=HOUR_US // PATIENCE)
        self.log: list[str] = []
        self.last = 0
        self.running = asyncio.create_task(self.journal.run(nothing_follows))

    def send(self, name: str, copies: int = 1) -> list[int]:
        """Append a message for `copies` queues, and its waiting sender; return its numbers."""
        first = self.last + 1
        for _ in range(copies):
            self.last += 1
            append(self.journal, self.last)
        self.journal.submit_receipt(Told(name, self.log))
        return list(range(first, self.last + 1))

    async def flush(self) -> None:
        self.journal.flush()
        await settle()

    async def pass_half(self) -> None:
        """Let half of the hold pass, and the journal look at its pages."""
        self.clock.advance(HOUR_US // 2000)
        self.journal.tick()
        await settle()

    def commits(self) -> list[list[int]]:
        """Return the numbers of the messages that each commit writes."""
        return [
            [int(message.number) for message in batch.appended if message is not None]
            for batch in self.store.commits
        ]

    async def stop(self) -> None:
        self.running.cancel()
        with suppress(asyncio.CancelledError):
            await self.running


async def holding() -> Holding:
    made = Holding()
    await settle()
    return made


async def test_what_is_consumed_before_it_is_written_never_is() -> None:
    held = await holding()
    (number,) = held.send("a")
    await held.flush()
    assert (held.log, held.commits()) == ([], [])
    held.journal.batch.consume(number)
    await held.flush()
    assert held.log == ["a"]
    for _ in range(4):
        await held.pass_half()
    assert held.commits() == []
    await held.stop()


async def test_a_sender_is_told_when_all_subscribers_have_settled() -> None:
    held = await holding()
    one, other, third = held.send("a", copies=3)
    held.send("b")
    for number in (other, one):
        held.journal.batch.consume(number)
        await held.flush()
        assert held.log == []
    held.journal.batch.consume(third)
    await held.flush()
    assert held.log == ["a"]
    await held.stop()


async def test_what_nobody_consumes_is_written_when_its_time_is_over_and_told_once() -> None:
    held = await holding()
    held.send("a")
    await held.flush()
    await held.pass_half()
    assert held.commits() == []
    await held.pass_half()
    assert (held.commits(), held.log) == ([[1]], [])
    held.store.let_through()
    await settle()
    assert held.log == ["a"]
    await held.stop()


async def test_only_what_is_left_is_written() -> None:
    held = await holding()
    for name in "abcd":
        held.send(name)
    held.journal.batch.consume(1)
    held.journal.batch.consume(3)
    await held.flush()
    assert held.log == ["a", "c"]
    await held.pass_half()
    await held.pass_half()
    assert held.commits() == [[2, 4]]
    held.store.let_through()
    await settle()
    assert held.log == ["a", "c", "b", "d"]
    await held.stop()


async def test_a_page_stays_open_as_long_as_all_of_it_is_consumed_in_time() -> None:
    held = await holding()
    for number in range(1, 50):
        held.send(str(number))
        await held.flush()
        if number > 1:
            held.journal.batch.consume(number - 1)
        await held.flush()
        await held.pass_half()
    assert (len(held.log), held.commits()) == (48, [])
    assert len(held.journal.batch.appended) <= 3, "what is over is forgotten"
    await held.stop()


async def test_a_message_that_comes_late_to_a_page_is_not_written_before_its_time() -> None:
    held = await holding()
    held.send("a")
    await held.flush()
    await held.pass_half()
    held.send("b")
    held.journal.batch.consume(1)
    await held.flush()
    await held.pass_half()
    assert held.commits() == [], "what was there before has gone"
    await held.pass_half()
    assert held.commits() == [[2]]
    await held.stop()


async def test_something_urgent_takes_everything_along() -> None:
    held = await holding()
    held.send("a")
    await held.flush()
    held.journal.submit(Told("commit of a transaction", held.log))
    await held.flush()
    assert held.commits() == [[1]]
    held.send("b")
    await held.flush()
    assert held.commits() == [[1]], "what comes later is on another page"
    held.store.let_through()
    await settle()
    assert held.log == ["commit of a transaction", "a"]
    await held.stop()


async def test_a_message_on_its_way_to_the_disk_is_removed_by_the_next_page() -> None:
    held = await holding()
    held.send("a")
    held.journal.batch.is_urgent = True
    await held.flush()
    held.send("b")
    held.journal.batch.consume(1)
    await held.flush()
    assert held.log == [], "the commit is under way"
    held.store.let_through()
    await settle()
    assert held.log == ["a"]
    await held.pass_half()
    await held.pass_half()
    assert held.store.commits[1].removed == [1]
    await held.stop()


async def test_what_was_removed_and_not_consumed_is_told_with_the_page() -> None:
    """The message may have moved to another queue, which must be durable first."""
    held = await holding()
    held.send("a")
    append(held.journal, 2)
    held.last = 2
    held.journal.batch.remove(1)
    await held.flush()
    assert held.log == []
    await held.pass_half()
    await held.pass_half()
    assert (held.commits(), held.log) == ([[2]], [])
    held.store.let_through()
    await settle()
    assert held.log == ["a"]
    await held.stop()


async def test_a_removal_alone_waits_no_longer_than_a_message() -> None:
    held = await holding()
    held.journal.batch.remove(99)
    await held.flush()
    assert held.store.commits == []
    await held.pass_half()
    await held.pass_half()
    assert held.store.commits[0].removed == [99]
    await held.stop()


async def test_a_message_that_nobody_wanted_is_accepted_at_once() -> None:
    held = await holding()
    held.journal.submit_receipt(Told("a", held.log))
    assert held.log == ["a"]
    await held.stop()


async def test_a_full_page_is_written_and_the_next_begun() -> None:
    held = await holding()
    large = b"x" * (int(PAGE_BYTES_MAX) // 2 + 1)
    for _ in range(3):
        held.last += 1
        append(held.journal, held.last, large)
        held.journal.submit_receipt(Told(str(held.last), held.log))
        await held.flush()
    assert held.commits() == [[1, 2]]
    held.store.let_through()
    await settle()
    assert (held.log, held.commits()) == (["1", "2"], [[1, 2]]), "the third is held"
    await held.stop()


async def test_full_pages_are_written_one_after_the_other() -> None:
    held = await holding()
    large = b"x" * (int(PAGE_BYTES_MAX) + 1)
    for _ in range(3):
        held.last += 1
        append(held.journal, held.last, large)
        held.journal.submit_receipt(Told(str(held.last), held.log))
        await held.flush()
    for written in (1, 2, 3):
        assert len(held.store.commits) == written
        held.store.let_through()
        await settle()
        assert len(held.log) == written
    await held.stop()


async def test_closing_writes_what_is_held() -> None:
    held = await holding()
    held.send("a")
    await held.flush()
    held.journal.close()
    await settle()
    assert held.commits() == [[1]]
    held.store.let_through()
    await held.running
    assert held.log == ["a"]
