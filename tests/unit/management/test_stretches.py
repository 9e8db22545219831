"""Long work is divided: the event loop gets its turn within a few milliseconds."""

import asyncio
import time

import pytest

from broker.journal import Journal
from broker.management.stretches import PORTION, STRETCH_S, in_portions, long_change, one_by_one
from storage.api import StoreError
from tests.support.stores import GatedStore


async def portions(items: list[int], cost_s: float = 0) -> list[int]:
    sizes = []
    async for portion in in_portions(items):
        ends_s = time.perf_counter() + cost_s
        while time.perf_counter() < ends_s:
            pass
        sizes.append(len(portion))
    return sizes


def slow(number: int) -> int:
    """Return a number that takes a stretch to make."""
    ends_s = time.perf_counter() + STRETCH_S
    while time.perf_counter() < ends_s:
        pass
    return number


@pytest.mark.parametrize("number", [0, 1, PORTION - 1, PORTION, PORTION + 1, 10 * PORTION])
async def test_every_item_has_its_portion(number: int) -> None:
    seen = [item async for portion in in_portions(range(number)) for item in portion]
    assert seen == list(range(number))


@pytest.mark.requirement("OPS-01")
async def test_others_have_their_turn_after_each_stretch() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.ensure_future(other())
    sizes = await portions(list(range(8 * PORTION)), cost_s=STRETCH_S)
    assert (len(sizes), turns >= 7) == (8, True)
    before = turns
    made = [each async for each in one_by_one(slow(number) for number in range(8))]
    beside.cancel()
    assert (made, turns - before >= 7) == (list(range(8)), True)


@pytest.mark.requirement("PRD-03")
async def test_a_change_that_an_error_ends_half_way_ends_the_broker() -> None:
    store = GatedStore()
    journal = Journal(store)
    running = asyncio.ensure_future(journal.run(lambda: None))
    assert journal.hold_now()
    journal.batch.remove(1)
    with pytest.raises(ValueError, match="wrong"), long_change(journal):
        raise ValueError("wrong")
    journal.flush()
    with pytest.raises(StoreError, match="wrong"):
        await asyncio.wait_for(running, 10)
    assert store.commits == []
