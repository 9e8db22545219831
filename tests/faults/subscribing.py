"""F27: the broker is killed between its answer to a subscriber and the first publication."""

from __future__ import annotations

import asyncio
import random

from tests.faults.checkers import judge
from tests.faults.client import Client
from tests.faults.history import Recorder
from tests.faults.plan import Plan, Report
from tests.faults.reading import Reading
from tests.faults.server import Server
from tests.faults.workload import Consumer, Station, Worker


class Publisher(Worker):
    """Publishes a few messages and waits for the outcome of each."""

    async def publish(self, port: int, topic: str, count: int) -> None:
        async with Client(port, self.name) as client:
            sender = await client.sender(topic, kind="topic")
            for _ in range(count):
                await (await self.send(sender, topic))


async def subscriptions_killed(plan: Plan) -> Report:
    """F27: a confirmed subscription gets later publications; one that was ended does not."""
    chosen = random.Random(plan.seed)
    report = Report()
    missed = ghosts = 0
    server = Server(plan.place)
    await server.start()
    try:
        for number in range(plan.cycles):
            recorder = Recorder()
            station = Station(recorder)
            topic, name = plan.address(f"f27-{number}"), plan.address(f"sub-{number}")
            await answered_and_killed(server, topic, name, delay_s=chosen.choice([0, 0, 0.001]))
            publisher = Publisher(station, "publisher", plan.seed)
            await publisher.publish(server.port, topic, 5)
            place = f"{topic}/{name}"
            subscriber = Consumer(
                station, name, plan.seed, address=topic, place=place, subscription=name
            )
            await subscriber.drain(server.port)
            verdict = judge(
                Reading(
                    recorder.events,
                    topics={topic: {place: 0}},
                    alone=frozenset({subscriber.by}),
                )
            )
            missed += len(verdict.findings["lost"])
            report.problems += [f"F27: {problem}" for problem in verdict.problems()]
            ghosts += await left_and_killed(server, name)
            plan.step()
        report.check(await server.stop() == 0, "F27: the broker did not end well")
    finally:
        await server.close()
    report.check(ghosts == 0, f"F27: {ghosts} subscriptions are there again")
    report.lines.append(
        f"F27 kill after the answer: {plan.cycles} times, missed {missed}, ghosts {ghosts}"
    )
    return report


async def answered_and_killed(server: Server, topic: str, name: str, *, delay_s: float) -> None:
    """Subscribe, wait for the answer, kill the broker, and start it again."""
    client = Client(server.port, name)
    async with client:
        await client.receiver(topic, credit=0, subscription=name)
        if delay_s:
            await asyncio.sleep(delay_s)
        await server.kill()
    await server.start()


async def left_and_killed(server: Server, name: str) -> int:
    """End the subscription, kill the broker, and start it again; return 1 if it is still there."""
    client = Client(server.port, name)
    async with client:
        assert await client.unsubscribe(name)
        await server.kill()
    await server.start()
    async with Client(server.port, name) as again:
        return int(await again.unsubscribe(name))
