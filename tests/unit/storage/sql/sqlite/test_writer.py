"""The thread that owns a store's connection, and runs all work on it in order."""

import asyncio
import threading

import pytest

from storage.sql.sqlite.writer import Writer


async def test_everything_is_done_in_one_thread_and_in_order() -> None:
    writer = Writer("test")
    seen: list[tuple[int, int]] = []

    def note(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number

    results = await asyncio.gather(*(writer.do(lambda n=n: note(n)) for n in range(5)))  # type: ignore[misc]
    await writer.close()
    assert results == [0, 1, 2, 3, 4]
    assert [number for number, _ in seen] == results
    assert len({thread for _, thread in seen} | {threading.get_ident()}) == 2


async def test_one_that_is_closed_twice_is_closed() -> None:
    writer = Writer("test")
    await writer.close()
    await writer.close()
    assert writer.is_closed


async def test_an_error_reaches_whoever_waits_and_nobody_else() -> None:
    writer = Writer("test")

    def fail() -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        await writer.do(fail)
    assert await writer.do(lambda: 1) == 1
    await writer.close()


async def test_whoever_gives_up_waiting_does_no_harm() -> None:
    writer = Writer("test")
    gate = threading.Event()
    waiting = asyncio.ensure_future(writer.do(gate.wait))
    await asyncio.sleep(0)
    waiting.cancel()
    gate.set()
    assert await writer.do(lambda: 2) == 2
    await writer.close()
