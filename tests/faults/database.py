"""F15: PostgreSQL ends sessions, during commits too, or crashes, sometimes with the broker.

Nothing that was accepted is lost, and while the broker lives no client loses its connection.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace
from typing import Final

from _pytest.outcomes import Skipped

from tests.faults.checkers import judge
from tests.faults.crashes import UP_S, MixedLoad, over
from tests.faults.plan import Impossible, Plan, Report, spread
from tests.faults.server import Server
from tests.faults.workload import all_drained
from tests.support import postgres

BETWEEN_S: Final = (0.05, 0.6)
"""Minimum and maximum number of seconds between two disturbances of the database."""

KILLED_EVERY: Final = 4
"""In one of this number of cycles the broker is killed while the database restarts."""

END_ALL: Final = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name LIKE 'jms-broker%'"
)

END_COMMITTING: Final = f"{END_ALL} AND state = 'active' AND pid <> pg_backend_pid()"

ATTEMPTS: Final = 200
"""Maximum number of attempts to find a session that is in the middle of a commit."""


class Database:
    """The database of one run, and ways to disturb it.

    `away_ms` has the duration of each outage, in ms; `met` counts sessions ended during a commit.
    """

    def __init__(self, server: postgres.Server) -> None:
        self._server: Final = server
        self.url: Final = server.url(server.database())
        self.away_ms: Final[list[float]] = []
        self.met = 0

    async def end(self) -> None:
        """End the broker's session, whatever it is doing."""
        await self._server.sql(END_ALL)

    async def end_committing(self) -> None:
        """End the broker's session during a statement or a commit; give up after ATTEMPTS."""
        for _ in range(ATTEMPTS):
            rows = await self._server.sql(END_COMMITTING)
            if rows[0]["count"]:
                self.met += 1
                return

    async def crash(self) -> None:
        """Stop the server as a kill would, and start it again."""
        began = time.monotonic()
        await asyncio.to_thread(self._server.stop, "immediate")
        await asyncio.to_thread(self._server.start)
        self.away_ms.append((time.monotonic() - began) * 1000)


async def database_lost(plan: Plan) -> Report:
    """F15: the database is disturbed under mixed load."""
    try:
        database = Database(postgres.server())
    except Skipped as reason:
        raise Impossible(str(reason)) from None
    plan = replace(plan, place=replace(plan.place, store=database.url))
    load = MixedLoad(plan)
    server = Server(plan.place)
    report = Report()
    await server.start()
    await load.subscribe(server.port)
    before = [worker.attaches for worker in load.workers]
    working = [asyncio.create_task(worker.work()) for worker in load.workers]
    try:
        load.station.came_up(server.port)
        kills = await befall(database, server, load, plan=plan)
        load.station.stop()
        await asyncio.gather(*working)
        for worker, attaches in zip(load.workers, before, strict=True):
            again = worker.attaches - attaches - 1 - kills
            report.check(again <= 0, f"F15: {worker.name} lost its connection {again} times")
        drained = await all_drained(load.drains, server.port)
        report.check(await server.stop() == 0, "the broker did not end with status 0")
    finally:
        await over(server, working)
        postgres.stop_servers()
    verdict = judge(load.reading(drained))
    report.add(
        "F15 PostgreSQL is lost under mixed load", verdict, recorder=load.recorder, plan=plan
    )
    report.lines.append(
        f"   {plan.cycles} times, {database.met} in a commit, {len(database.away_ms)} crashes, away"
        f" ms: {spread(database.away_ms)}; {kills} kills of the broker"
    )
    return report


async def befall(database: Database, server: Server, load: MixedLoad, *, plan: Plan) -> int:
    """Carry out all disturbances, one after another; return how often the broker was killed."""
    chosen = random.Random(plan.seed)
    kills = 0
    for cycle in range(1, plan.cycles + 1):
        await asyncio.sleep(chosen.uniform(*BETWEEN_S))
        if cycle % KILLED_EVERY:
            await chosen.choice([database.end, database.end_committing, database.crash])()
        else:
            kills += 1
            load.station.going_down()
            await server.kill()
            await database.crash()
            await server.start()
            load.station.came_up(server.port)
        plan.step()
    await asyncio.sleep(UP_S[1])
    return kills
