"""Tasks that answer requests beside all other work."""

import asyncio

from broker.management.later import SpawnedTasks


async def test_tasks_are_cancelled_and_awaited() -> None:
    ended: list[str] = []

    async def work(name: str, gate: asyncio.Event) -> None:
        try:
            await gate.wait()
        finally:
            ended.append(name)

    tasks, opened, shut = SpawnedTasks(), asyncio.Event(), asyncio.Event()
    opened.set()
    tasks.spawn(work("done", opened))
    tasks.spawn(work("cut", shut))
    await asyncio.sleep(0)
    await tasks.end(cancel=True)
    assert ended == ["done", "cut"]
    await tasks.end(cancel=True)
