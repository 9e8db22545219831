"""Who is told what, and when: never before it is durable, never out of order."""

import asyncio
from contextlib import suppress

import pytest

from broker.journal import PAGE_BYTES_MAX, Journal, Waiter
from storage.api import Store, StoreError
from storage.memory import MemoryStore
from storage.records import StoredMessage
from tests.support.clock import SimulatedClock
from tests.support.stored import stored_messages
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("PRD-03")


class Told(Waiter):
    """Notes in `log` that it was told."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name = name
        self._log = log

    def committed(self) -> None:
        self._log.append(self._name)


def append(journal: Journal, position: int, encoded: bytes = b"x") -> None:
    journal.batch.append(
        StoredMessage(
            number=position,
            queue="q",
            position=position,
            encoded=encoded,
            priority=4,
            ttl_ms=-1,
            arrived_ms=0,
            expires_at_ms=0,
            deliver_at_ms=0,
            delivery_count=0,
        )
    )


async def positions(store: Store) -> list[int]:
    return [int(message.position) for message in await stored_messages(store, "q")]


def nothing_follows() -> None:
    """What a journal calls after a commit, where nobody cares."""


async def settle() -> None:
    """Let every task go on as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


# -- a store without I/O


async def test_without_io_everybody_is_told_by_the_end_of_the_round() -> None:
    store, log = MemoryStore(), list[str]()
    journal = Journal(store)
    append(journal, 1)
    journal.submit(Told("a", log))
    journal.submit(Told("b", log))
    assert (log, await positions(store)) == ([], [])
    journal.flush()
    assert (log, await positions(store)) == (["a", "b"], [1])


async def test_without_io_changes_that_nobody_waits_for_are_kept_too() -> None:
    store = MemoryStore()
    journal = Journal(store)
    append(journal, 1)
    journal.flush()
    append(journal, 2)
    assert await positions(store) == [1]


async def test_who_waits_for_nothing_in_particular_is_told_at_the_next_flush() -> None:
    log = list[str]()
    journal = Journal(MemoryStore())
    batch = journal.batch
    journal.flush()
    assert journal.batch is batch, "there was nothing to do"
    journal.submit(Told("a", log))
    journal.flush()
    assert log == ["a"]


async def test_without_io_run_ends_when_the_journal_closes() -> None:
    journal = Journal(MemoryStore())
    running = asyncio.create_task(journal.run(nothing_follows))
    await settle()
    journal.close()
    await running


# -- a store that takes its time


class Awaited:
    """A journal that runs on a store whose commits the test lets through."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.journal = Journal(self.store)
        self.log: list[str] = []
        self.written: list[str] = []
        self.running = asyncio.create_task(self.journal.run(self.after_commit))

    def after_commit(self) -> None:
        """Do what a round would do: write what the told have to say."""
        self.written += self.log[len(self.written) :]

    def submit(self, position: int) -> None:
        """A change, and somebody who waits for it."""
        append(self.journal, position)
        self.journal.submit(Told(str(position), self.log))
        self.journal.flush()


async def test_nobody_is_told_before_the_commit_has_returned() -> None:
    awaited = Awaited()
    awaited.submit(1)
    await settle()
    assert len(awaited.store.commits) == 1
    assert awaited.log == []
    awaited.store.let_through()
    await settle()
    assert (awaited.log, await positions(awaited.store)) == (["1"], [1])
    assert awaited.written == ["1"], "what follows comes after everybody has been told"
    awaited.journal.close()
    await awaited.running


async def test_what_arrives_during_a_commit_gathers_in_one_next_one() -> None:
    awaited = Awaited()
    awaited.submit(1)
    await settle()
    awaited.submit(2)
    awaited.submit(3)
    await settle()
    assert len(awaited.store.commits) == 1, "one after the other"
    awaited.store.let_through()
    await settle()
    assert (len(awaited.store.commits), awaited.log) == (2, ["1"])
    awaited.store.let_through()
    await settle()
    assert awaited.log == ["1", "2", "3"]
    awaited.journal.close()
    await awaited.running


async def test_an_empty_batch_costs_no_commit_but_keeps_its_turn() -> None:
    awaited = Awaited()
    awaited.submit(1)
    await settle()
    awaited.journal.submit(Told("nothing", awaited.log))
    awaited.journal.flush()
    await settle()
    assert awaited.log == []
    awaited.store.let_through()
    await settle()
    assert (awaited.log, len(awaited.store.commits)) == (["1", "nothing"], 1)
    awaited.journal.close()
    await awaited.running


async def test_closing_during_a_commit_commits_what_has_gathered_meanwhile() -> None:
    awaited = Awaited()
    awaited.submit(1)
    await settle()
    awaited.submit(2)
    awaited.journal.close()
    awaited.store.let_through()
    await settle()
    awaited.store.let_through()
    await awaited.running
    assert awaited.log == ["1", "2"]
    assert await positions(awaited.store) == [1, 2]
    await awaited.store.close()


async def test_closing_before_the_first_commit_commits_what_there_is() -> None:
    awaited = Awaited()
    append(awaited.journal, 1)
    awaited.journal.close()
    await settle()
    awaited.store.let_through()
    await awaited.running
    assert await positions(awaited.store) == [1]


async def test_a_failed_commit_ends_it_and_nobody_is_told() -> None:
    awaited = Awaited()
    awaited.submit(1)
    await settle()
    awaited.submit(2)
    awaited.store.let_through(failing=True)
    with pytest.raises(StoreError, match="full"):
        await awaited.running
    assert (awaited.log, await positions(awaited.store)) == ([], [])


# -- what waits for its consumers


HOUR_US = 3_600_000_000
"""So long that no timer of the loop fires in a test: time passes, and `tick` comes, by hand."""


class Holding:
    """A journal that holds messages for an hour, on a clock that stands still."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.clock = SimulatedClock()
        self.journal = Journal(self.store, self.clock, hold_us=HOUR_US)
        self.log: list[str] = []
        self.last = 0
        self.running = asyncio.create_task(self.journal.run(nothing_follows))

    def send(self, name: str, copies: int = 1) -> list[int]:
        """A message for so many queues, and its sender, who waits; its numbers."""
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
        """Half of the hold passes, and the journal looks at what it has."""
        self.clock.advance(HOUR_US // 2000)
        self.journal.tick()
        await settle()

    def commits(self) -> list[list[int]]:
        """The numbers of what each commit writes."""
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
    """It may have moved to another queue: that has to be durable first."""
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


async def test_where_nothing_may_be_held_everything_is_written_at_once() -> None:
    awaited = Awaited()
    append(awaited.journal, 1)
    awaited.journal.submit_receipt(Told("a", awaited.log))
    awaited.journal.flush()
    await settle()
    assert len(awaited.store.commits) == 1
    awaited.store.let_through()
    awaited.journal.close()
    await awaited.running
    assert awaited.log == ["a"]


async def test_without_io_what_comes_and_goes_leaves_nothing_behind() -> None:
    journal = Journal(MemoryStore())
    for number in range(1, 10):
        append(journal, number)
        journal.batch.consume(number)
        journal.flush()
    assert journal.batch.appended == []
