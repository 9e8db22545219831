"""Notices of commits: none before the commit is durable, and all in order."""

import asyncio

import pytest

from broker.journal import Journal, Waiter
from storage.api import Store, StoreError
from storage.memory import MemoryStore
from storage.records import StoredMessage
from tests.support.stored import stored_messages
from tests.support.stores import GatedStore
from tests.support.threads import lets_another_thread_run

pytestmark = pytest.mark.requirement("PRD-03")


class Told(Waiter):
    """A waiter that writes its name into `log` when its commit is reported."""

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
    """Do nothing after a commit."""


async def settle() -> None:
    """Let every task run until it waits."""
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


# -- a store whose commits take time


class Awaited:
    """A journal that runs on a store whose commits the test lets through."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.journal = Journal(self.store)
        self.log: list[str] = []
        self.written: list[str] = []
        self.running = asyncio.create_task(self.journal.run(self.after_commit))

    def after_commit(self) -> None:
        """Write the output of the waiters that were told, as a round would."""
        self.written += self.log[len(self.written) :]

    def submit(self, position: int) -> None:
        """Note a change, and submit a waiter for it."""
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


async def test_while_a_commit_is_under_way_the_interpreter_is_given_up() -> None:
    """A thread that waits for the interpreter gets it, though no other call gives it up."""
    awaited = Awaited()
    awaited.submit(1)
    await settle()
    assert lets_another_thread_run(awaited.journal.yield_to_writer)
    awaited.store.let_through()
    await settle()
    assert not awaited.journal.is_committing
    awaited.journal.close()
    await awaited.running
