"""Changes that take several turns of the loop are written together, and delay no other for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from broker.journal import FREED_AT_ONCE, HOLDS_MAX, Journal
from storage.api import StoreError
from tests.support.stores import GatedStore
from tests.unit.test_journal import Awaited, Told, append, positions, settle

pytestmark = pytest.mark.requirement("PRD-03")


async def test_nothing_is_written_until_a_long_change_ends() -> None:
    awaited = Awaited()
    journal = awaited.journal
    assert journal.hold_now()
    for number in (1, 2, 3):
        awaited.submit(number)
        await settle()
    assert (awaited.store.commits, awaited.log) == ([], [])
    journal.release()
    await settle()
    assert len(awaited.store.commits) == 1
    awaited.store.let_through()
    await settle()
    assert (awaited.log, await positions(awaited.store)) == (["1", "2", "3"], [1, 2, 3])
    journal.close()
    await awaited.running


async def test_the_page_before_is_written_meanwhile() -> None:
    awaited = Awaited()
    awaited.submit(1)
    await settle()
    assert awaited.journal.hold_now()
    awaited.submit(2)
    awaited.store.let_through()
    await settle()
    assert awaited.log == ["1"]
    awaited.journal.release()
    await settle()
    awaited.store.let_through()
    await settle()
    assert awaited.log == ["1", "2"]
    awaited.journal.close()
    await awaited.running


async def test_long_changes_that_overlap_are_written_together() -> None:
    awaited = Awaited()
    journal = awaited.journal
    await journal.hold()
    await journal.hold()
    awaited.submit(1)
    journal.release()
    await settle()
    assert awaited.store.commits == []
    awaited.submit(2)
    journal.release()
    await settle()
    awaited.store.let_through()
    await settle()
    assert awaited.log == ["1", "2"]
    journal.close()
    await awaited.running


async def test_a_page_is_written_though_long_changes_begin_all_the_time() -> None:
    awaited = Awaited()
    journal = awaited.journal
    for _ in range(HOLDS_MAX):
        assert journal.hold_now()
    assert not journal.hold_now()
    later = asyncio.ensure_future(journal.hold())
    awaited.submit(1)
    for _ in range(HOLDS_MAX):
        await settle()
        assert (awaited.store.commits, later.done()) == ([], False)
        journal.release()
    await settle()
    assert (len(awaited.store.commits), later.done()) == (1, True)
    awaited.store.let_through()
    await settle()
    assert awaited.log == ["1"]
    journal.release()
    journal.close()
    await awaited.running


async def test_closing_waits_for_the_end_of_a_long_change() -> None:
    awaited = Awaited()
    awaited.journal.hold_now()
    awaited.journal.close()
    await settle()
    awaited.submit(1)
    await settle()
    assert not awaited.running.done()
    awaited.journal.release()
    await settle()
    awaited.store.let_through()
    await awaited.running
    assert (awaited.log, await positions(awaited.store)) == (["1"], [1])


async def test_a_long_change_that_fails_half_way_is_not_written() -> None:
    awaited = Awaited()
    journal = awaited.journal
    awaited.submit(1)
    await settle()
    assert journal.hold_now()
    awaited.submit(2)
    journal.fail(ValueError("half-way"))
    awaited.store.let_through()
    with pytest.raises(StoreError, match="half-way"):
        await awaited.running
    assert (awaited.log, await positions(awaited.store)) == (["1"], [1])


async def test_a_receipt_does_not_wait_for_messages_that_need_none() -> None:
    awaited = Awaited()
    journal = awaited.journal
    journal.hold_now()
    append(journal, 1)
    journal.expect_no_receipt()
    append(journal, 2)
    journal.submit_receipt(Told("2", awaited.log))
    journal.batch.consume(2)
    journal.flush()
    assert awaited.log == ["2"]
    journal.release()
    await settle()
    awaited.store.let_through()
    await settle()
    assert await positions(awaited.store) == [1]
    journal.close()
    await awaited.running


async def test_a_large_batch_is_freed_in_parts() -> None:
    awaited = Awaited()
    for number in range(2 * FREED_AT_ONCE + 1):
        append(awaited.journal, number)
    awaited.journal.submit(Told("all", awaited.log))
    awaited.journal.flush()
    await settle()
    [batch] = awaited.store.commits
    awaited.store.let_through()
    left = []
    while batch.appended:
        left.append(len(batch.appended))
        await asyncio.sleep(0)
    assert {2 * FREED_AT_ONCE + 1, FREED_AT_ONCE + 1, 1} <= set(left)
    assert awaited.log == ["all"]
    awaited.journal.close()
    await awaited.running


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1000):
        if is_so():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never happens")


async def test_the_next_page_is_written_while_a_large_batch_is_freed() -> None:
    awaited = Awaited()
    journal = awaited.journal
    journal.hold_now()
    for number in range(20 * FREED_AT_ONCE):
        append(journal, number)
    journal.release()
    await settle()
    large = awaited.store.commits[0]
    awaited.submit(20 * FREED_AT_ONCE)
    awaited.store.let_through()
    await until(lambda: len(awaited.store.commits) == 2)
    assert len(large.appended) > 10 * FREED_AT_ONCE
    awaited.store.let_through()
    await until(lambda: len(awaited.log) > 0)
    assert large.appended, "its waiter waits for no more than its page"
    journal.close()
    await awaited.running
    assert not large.appended


async def test_an_error_while_a_large_batch_is_freed_ends_the_journal() -> None:
    store, left = GatedStore(), []

    def round_() -> None:
        left.append(len(store.commits[0].appended))
        if len(left) == 3:
            raise ValueError("a bug")

    journal = Journal(store)
    running = asyncio.ensure_future(journal.run(round_))
    for number in range(4 * FREED_AT_ONCE):
        append(journal, number)
    journal.flush()
    await settle()
    store.let_through()
    with pytest.raises(ValueError, match="a bug"):
        await asyncio.wait_for(running, 10)
    assert left == [4 * FREED_AT_ONCE, 3 * FREED_AT_ONCE, 2 * FREED_AT_ONCE]
