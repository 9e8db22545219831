"""A reading that viewers share is made again as soon as that costs little."""

from __future__ import annotations

import asyncio

import pytest

from broker.http.shared_reading import SHARE, VALID_S_MAX, SharedReading

pytestmark = pytest.mark.requirement("OPS-06")


class Reader:
    """Makes readings, the numbers 1, 2, …; each takes `seconds` of the time `now_s`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now_s = 100.0
        self.made = 0

    async def make(self) -> int:
        await asyncio.sleep(0)
        self.now_s += self.seconds
        self.made += 1
        return self.made


async def test_a_long_reading_serves_for_a_long_time() -> None:
    reader = Reader(0.1)
    shared = SharedReading[int](lambda: reader.now_s)
    assert await asyncio.gather(*(shared.get(reader.make) for _ in range(10))) == [1] * 10
    reader.now_s += 0.1 / SHARE - 0.01
    assert await shared.get(reader.make) == 1
    reader.now_s += 0.02
    assert await shared.get(reader.make) == 2


async def test_a_reading_that_lasted_is_not_shown_for_minutes() -> None:
    """Between two turns of the loop, a machine can be away for seconds."""
    reader = Reader(2.0)
    shared = SharedReading[int](lambda: reader.now_s)
    assert await shared.get(reader.make) == 1
    reader.now_s += VALID_S_MAX - 0.01
    assert await shared.get(reader.make) == 1
    reader.now_s += 0.02
    assert await shared.get(reader.make) == 2


async def test_a_quick_reading_is_always_fresh() -> None:
    reader = Reader(0.0)
    shared = SharedReading[int](lambda: reader.now_s)
    assert [await shared.get(reader.make) for _ in range(3)] == [1, 2, 3]


async def test_a_failure_is_not_kept() -> None:
    reader = Reader(0.1)
    shared = SharedReading[int](lambda: reader.now_s)

    async def fail() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        await shared.get(fail)
    assert await shared.get(reader.make) == 1
