"""F11: clients are killed during a transfer, in a transaction, or with many unsettled messages."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from tests.faults.asking import record_of
from tests.faults.checkers import judge
from tests.faults.client import Client
from tests.faults.history import Recorder
from tests.faults.plan import Plan, Report, spread
from tests.faults.reading import Reading
from tests.faults.server import Server
from tests.faults.workload import Consumer, Station, Worker
from tests.interop.broker_process import ROOT

MODES: Final = ("unsettled", "transfer", "transaction")

BACKLOG: Final = 400
"""Number of messages in the queue; the killed clients hold some of them."""

RETURNED_S: Final = 2.0
"""Maximum number of seconds until messages of a lost socket are back; it is noticed at once."""


class Filler(Worker):
    """Sends a number of messages and waits for all their outcomes."""

    async def fill(self, port: int, address: str, count: int) -> None:
        async with Client(port, self.name) as client:
            sender = await client.sender(address)
            told = [await self.send(sender, address) for _ in range(count)]
            await asyncio.gather(*told)


async def clients_killed(plan: Plan) -> Report:
    """F11: `kill -9` of client processes; the messages that they held are back soon, in order."""
    report = Report()
    server = Server(plan.place)
    returned_ms: list[float] = []
    await server.start()
    try:
        for number in range(plan.cycles):
            recorder = Recorder()
            queue = plan.address(f"f11-{number}")
            station = Station(recorder)
            await Filler(station, "filler", plan.seed).fill(server.port, queue, BACKLOG)
            count = (3, 1, 6)[number % 3]
            victims = [await victim(server.port, queue, mode) for mode in (MODES * count)[:count]]
            for each in victims:
                each.kill()
            killed_at = time.monotonic()
            await asyncio.gather(*(each.wait() for each in victims))
            drain = Consumer(station, "drain", plan.seed, address=queue)
            taken = 0
            while taken < BACKLOG and time.monotonic() < killed_at + RETURNED_S * 5:
                taken += await drain.drain(server.port)
            returned_ms.append((time.monotonic() - killed_at) * 1000)
            links = {f"drain#{attach}" for attach in range(1, drain.attaches + 1)}
            alone = frozenset(links if len(links) == 1 else ())
            verdict = judge(Reading(recorder.events, alone=alone))
            report.problems += [f"F11: {problem}" for problem in verdict.problems()]
            left = await held(server.port, queue)
            report.check(left == {"messages": 0, "acquired": 0}, f"F11: left behind {left}")
            plan.step()
        report.check(await server.stop() == 0, "F11: the broker did not end well")
    finally:
        await server.close()
    report.check(max(returned_ms) < RETURNED_S * 1000, f"F11: back after {max(returned_ms)} ms")
    report.lines.append(
        f"F11 clients killed: {plan.cycles} times; all {BACKLOG} drained in ms: "
        f"{spread(returned_ms)}"
    )
    return report


async def victim(port: int, queue: str, mode: str) -> asyncio.subprocess.Process:
    """Start a client process and return it once it is in the middle of `mode`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.faults.victim", str(port), queue, mode),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 20)
    assert line == b"busy\n", line
    return process


async def held(port: int, queue: str) -> dict[str, object]:
    """Return the queue's numbers of messages and of acquired ones, as management reports them."""
    async with Client(port, "manager") as client:
        record = await record_of(client, "queue", queue)
    return {name: record[name] for name in ("messages", "acquired")}
