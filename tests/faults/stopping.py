"""F21: SIGTERM under load, a second one, and one while the broker starts."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from typing import Final

from tests.faults.checkers import judge
from tests.faults.injection import Load
from tests.faults.plan import Plan, Report, spread
from tests.faults.server import Server

WAYS: Final = ("once", "twice", "while it starts")

STOP_S: Final = 10.0

SIGTERM_KILLED: Final = -signal.SIGTERM
"""Exit status of a process that the signal ended before it had installed a handler."""


CODES: Final = {"once": (0,), "twice": (0, 1), "while it starts": (0, SIGTERM_KILLED)}
"""Exit statuses that the broker may have. A second signal may arrive after a complete stop."""


async def told_to_stop(plan: Plan) -> Report:
    """F21: every client is told why, accepted messages are stored, and the exit status is right."""
    chosen = random.Random(plan.seed)
    report = Report()
    stops: dict[str, list[float]] = {way: [] for way in WAYS}
    server = Server(plan.place)
    for number in range(plan.cycles):
        way = WAYS[number % len(WAYS)]
        codes = CODES[way]
        load = Load(plan, f"f21-{number}")
        try:
            if way == "while it starts":
                took, codes = (
                    await stopped_at_start(server, chosen.uniform(0, 0.8)),
                    (0, SIGTERM_KILLED),
                )
            else:
                took = await stopped_under_load(server, load, chosen=chosen, twice=way == "twice")
            code = await server.wait()
            report.check(code in codes, f"F21 {way}: it ended with status {code}")
            stops[way].append(took)
            if way == "once":
                heard = [each for each in load.heard if each]
                report.check(
                    set(heard) <= {"amqp:connection:forced"} and bool(heard),
                    f"F21: clients were told {sorted(set(heard))}",
                )
            await server.start()
            load.station.came_up(server.port)
            verdict = judge(await load.reading(server.port))
            report.problems += [f"F21 {way}: {problem}" for problem in verdict.problems()]
            report.lines.append(f"F21 SIGTERM {way}: {verdict.line()}")
            report.check(await server.stop() == 0, f"F21 {way}: no clean stop afterwards")
        finally:
            await load.cancel()
            await server.close()
        plan.step()
    for way, times in stops.items():
        report.lines.append(f"   {way}: ms to the end: {spread(times)}")
        report.check(max(times, default=0) < STOP_S * 1000, f"F21 {way}: it took too long")
    return report


async def stopped_under_load(
    server: Server, load: Load, *, chosen: random.Random, twice: bool
) -> float:
    """Stop the broker under load; return how long that took, in ms."""
    await server.start()
    load.station.came_up(server.port)
    load.begin()
    await asyncio.sleep(chosen.uniform(0.2, 0.8))
    load.station.going_down()
    began = time.monotonic()
    server.signal(signal.SIGTERM)
    if twice:
        await asyncio.sleep(chosen.uniform(0, 0.02))
        server.signal(signal.SIGTERM)
    await server.wait()
    took = (time.monotonic() - began) * 1000
    await load.cancel()
    return took


async def stopped_at_start(server: Server, after_s: float) -> float:
    """Stop a broker `after_s` seconds after its launch; return how long that took, in ms."""
    await server.launch()
    await asyncio.sleep(after_s)
    began = time.monotonic()
    server.signal(signal.SIGTERM)
    await server.wait()
    return (time.monotonic() - began) * 1000
