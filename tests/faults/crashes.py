"""F1 and F23: the broker is killed at random times, under mixed load and again and again."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing

from tests.faults.checkers import judge
from tests.faults.history import Recorder
from tests.faults.plan import Plan, Report, spread
from tests.faults.reading import Reading
from tests.faults.server import NotReady, Server
from tests.faults.workload import (
    Consumer,
    Mover,
    Producer,
    Station,
    TransactedProducer,
    Worker,
    all_drained,
)

UP_S = (0.05, 0.9)
"""Minimum and maximum number of seconds that the broker lives in a cycle of F1."""


GIVES_BACK = 0.02


class MixedLoad:
    """Clients of queues, priorities, transactions, and a topic with two durable subscriptions.

    `workers` send and receive; `drains` empty each place in the end. `station` knows where the
    broker is; without it, one that knows one broker. Two consumers release a share of
    `gives_back`.
    """

    def __init__(
        self, plan: Plan, station: Station | None = None, *, gives_back: float = GIVES_BACK
    ) -> None:
        self.station = station or Station(Recorder())
        self.recorder = self.station.recorder
        plain, ranked, inbox, outbox, topic = map(
            plan.address, ("plain", "ranked", "inbox", "outbox", "topic")
        )
        station, seed = self.station, plan.seed
        self.subscribers = [
            Consumer(
                station,
                name,
                seed,
                address=topic,
                place=f"{topic}/{name}",
                subscription=name,
            )
            for name in (plan.address("first"), plan.address("second"))
        ]
        self.topic = topic
        self.workers: list[Worker] = [
            *self.subscribers,
            Producer(station, "plain-1", seed, address=plain),
            Producer(station, "plain-2", seed, address=plain, window=1, pause_s=0.0),
            Producer(station, "ranked", seed, address=ranked, priorities=10),
            Producer(station, "news", seed, address=topic, kind="topic", pause_s=0.004),
            TransactedProducer(station, "orders", seed, addresses=[inbox]),
            TransactedProducer(station, "both", seed, addresses=[plain, ranked]),
            Mover(station, "moved", seed, source=inbox, target=outbox),
            Consumer(station, "taker-1", seed, address=plain, gives_back=gives_back),
            Consumer(station, "taker-2", seed, address=plain, pause_s=0.001),
            Consumer(station, "ranking", seed, address=ranked, gives_back=gives_back),
            Consumer(station, "outward", seed, address=outbox),
        ]
        self.drains = [
            *(
                Consumer(station, f"drain-{each}", seed, address=each)
                for each in (plain, ranked, inbox, outbox)
            ),
            *self.subscribers,
        ]

    async def subscribe(self, port: int) -> None:
        """Create the subscriptions; call this before anything is published."""
        for subscriber in self.subscribers:
            await subscriber.drain(port)

    def reading(self, drained: frozenset[str]) -> Reading:
        places = {f"{self.topic}/{each.name}": 0 for each in self.subscribers}
        return Reading(self.recorder.events, topics={self.topic: places}, alone=drained)


async def killed_at_random(plan: Plan) -> Report:
    """F1: `kill -9` at random times under mixed load."""
    chosen = random.Random(plan.seed)
    load = MixedLoad(plan)
    server = Server(plan.place)
    report = Report()
    await server.start()
    await load.subscribe(server.port)
    working = [asyncio.create_task(worker.work()) for worker in load.workers]
    try:
        load.station.came_up(server.port)
        for _ in range(plan.cycles):
            await asyncio.sleep(chosen.uniform(*UP_S))
            load.station.going_down()
            await server.kill()
            await server.start()
            load.station.came_up(server.port)
            plan.step()
        await asyncio.sleep(UP_S[1])
        load.station.stop()
        await asyncio.gather(*working)
        await server.kill()
        await server.start()
        drained = await all_drained(load.drains, server.port)
        report.check(await server.stop() == 0, "the broker did not end with status 0")
    finally:
        await over(server, working)
    verdict = judge(load.reading(drained))
    report.add("F1 kill -9 under mixed load", verdict, recorder=load.recorder, plan=plan)
    report.lines.append(f"   {plan.cycles} kills, restart ms: {spread(server.starts_ms)}")
    return report


async def over(server: Server, working: list[asyncio.Task[None]]) -> None:
    """Cancel the workers, wait for their end, and close the server."""
    for task in working:
        task.cancel()
    await asyncio.gather(*working, return_exceptions=True)
    await server.close()


async def crash_loop(plan: Plan) -> Report:
    """F23: the broker is killed before it is ready, or soon after; nothing grows or is lost."""
    chosen = random.Random(plan.seed)
    recorder = Recorder()
    station = Station(recorder)
    queue = plan.address("loop")
    producer = Producer(station, "looping", plan.seed, address=queue)
    drain = Consumer(station, "drain", plan.seed, address=queue)
    server = Server(plan.place)
    report = Report()
    await server.start()
    working = [asyncio.create_task(producer.work())]
    sizes: list[int] = []
    try:
        station.came_up(server.port)
        for _ in range(plan.cycles):
            await asyncio.sleep(chosen.uniform(0, 0.2))
            station.going_down()
            await server.kill()
            sizes.append(stored_bytes(plan))
            await server.launch()
            if chosen.random() < 0.5:
                await asyncio.sleep(chosen.uniform(0, 0.6))
                await server.kill()
                await server.launch()
            await server.ready()
            station.came_up(server.port)
            plan.step()
        station.stop()
        await asyncio.gather(*working)
        drained = await all_drained([drain], server.port)
        await server.kill()
        await server.start()
        again = await drain.drain(server.port)
        report.check(await server.stop() == 0, "the broker did not end with status 0")
    except NotReady as error:
        report.problems.append(f"F23: a start failed: {error}")
        return report
    finally:
        await over(server, working)
    verdict = judge(Reading(recorder.events, alone=drained))
    report.add("F23 crash loop", verdict, recorder=recorder, plan=plan)
    if plan.place.is_sqlite:
        rows = rows_left(plan)
        report.lines.append(
            f"   {plan.cycles} loops, restart ms: {spread(server.starts_ms)}; bytes of the store:"
            f" {spread(sizes)}, in the end {stored_bytes(plan)}; rows left {rows} of {again}"
        )
        report.check(rows == 0, f"F23: {rows} rows are left in the store")
    return report


def stored_bytes(plan: Plan) -> int:
    """Return the size of all files of an SQLite store in bytes; 0 for another store."""
    folder = plan.place.database.parent
    return sum(file.stat().st_size for file in folder.glob("*")) if plan.place.is_sqlite else 0


def rows_left(plan: Plan) -> int:
    """Return the number of message segments and bodies in the tables; the broker must not run."""
    with closing(sqlite3.connect(plan.place.database)) as database:
        return sum(
            int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            for table in ("segment", "body")
        )
