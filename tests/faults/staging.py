"""F28: the broker is killed while a sink stages, and before, during and after its commit."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from broker.amqp.terminus import COPY, Source
from tests.faults.asking import Asking
from tests.faults.client import Client
from tests.faults.links import is_accepted
from tests.faults.plan import Plan, Report
from tests.faults.server import Server
from tests.support.frames import message

QUERY: Final = "faults"

PARTITIONS: Final = 3
ROWS_MAX: Final = 40
"""Maximum number of rows of a task; every other row is for the second queue."""

MOMENTS: Final = ("while it stages", "before", "during", "during", "during", "after")
"""Moments relative to the commit. Most are during it, since it takes only milliseconds."""

DURING_S: Final = 0.02
"""Seconds within which most commits of a few messages are answered."""


@dataclass
class Sink:
    """The content of a query's two queues after its commits, and the batch to be committed next."""

    queues: tuple[str, str]
    query: str
    expected: tuple[list[bytes], list[bytes]] = ([], [])
    batch: int = -1
    rows: list[int] = field(default_factory=list)
    attempt: int = 0

    def begin(self, chosen: random.Random) -> None:
        """Begin the next batch, with a random number of rows in each partition."""
        self.batch += 1
        self.rows = [chosen.randint(1, ROWS_MAX) for _ in range(PARTITIONS)]

    def bodies(self, partition: int) -> list[bytes]:
        return [b"%d.%d.%d" % (self.batch, partition, row) for row in range(self.rows[partition])]

    def after(self) -> tuple[list[bytes], list[bytes]]:
        """Return the content of both queues after the commit of the batch."""
        added = [each for partition in range(PARTITIONS) for each in _parts(self.bodies(partition))]
        return (
            self.expected[0] + [body for rows in added[::2] for body in rows],
            self.expected[1] + [body for rows in added[1::2] for body in rows],
        )

    def commit(self) -> dict[str, object]:
        """Return the body of the COMMIT request."""
        return {
            "batch": self.batch,
            "partitions": list(range(PARTITIONS)),
            "attempts": [self.attempt] * PARTITIONS,
            "counts": self.rows,
        }


def _parts(rows: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    return rows[::2], rows[1::2]


async def stage(port: int, sink: Sink, *, halfway: bool = False) -> None:
    """Stage the batch as a new attempt, after an abandoned attempt that has one partition only.

    If `halfway`, return before the broker has accepted everything.
    """
    sink.attempt += 2
    async with Client(port, f"task-{sink.attempt}") as client:
        outcomes = []
        for attempt, partitions in ((sink.attempt - 1, 1), (sink.attempt, PARTITIONS)):
            for partition in range(partitions):
                for place, rows in enumerate(_parts(sink.bodies(partition))):
                    sender = await client.sender(
                        sink.queues[place],
                        properties={
                            "stage-query": sink.query,
                            "stage-batch": sink.batch,
                            "stage-partition": partition,
                            "stage-attempt": attempt,
                        },
                    )
                    for body in rows:
                        await sender.room()
                        outcomes.append(await sender.send(message(body, durable=True)))
        if not halfway:
            for outcome in outcomes:
                assert is_accepted(await outcome)


async def seen(port: int, sink: Sink) -> tuple[list[bytes], list[bytes]]:
    """Return the messages that browsers of both queues see."""
    async with Client(port, "browser") as client:
        found = []
        for queue in sink.queues:
            source = Source(address=queue, distribution_mode=COPY)
            receiver = await client.receiver(queue, credit=0, source=source)
            found.append([delivery.body for delivery in await receiver.all()])
        return found[0], found[1]


async def killed_around(server: Server, sink: Sink, moment: str, chosen: random.Random) -> bool:
    """Stage, commit, and kill the broker at `moment`; return whether it had answered the commit."""
    if moment == "while it stages":
        await stage(server.port, sink, halfway=True)
        await server.kill()
        return False
    await stage(server.port, sink)
    async with Client(server.port, "driver") as driver:
        asking = await Asking.of(driver)
        answered = False
        if moment != "before":
            await asking.send("COMMIT", "sink", sink.query, sink.commit())
        if moment == "after":
            answered = (await asking.answer()).map["committed"] is True
        if moment == "during":
            await asyncio.sleep(chosen.uniform(0, DURING_S))
            answered = await asking.has_answered()
        await server.kill()
        return answered


async def commits_killed(plan: Plan) -> Report:
    """F28: each batch is in the queues completely or not at all, in order, and once."""
    chosen = random.Random(plan.seed)
    report = Report()
    found: Counter[str] = Counter()
    sink = Sink((plan.address("f28-a"), plan.address("f28-b")), plan.address(QUERY))
    server = Server(plan.place)
    await server.start()
    try:
        for number in range(plan.cycles):
            sink.begin(chosen)
            moment = MOMENTS[number] if number < len(MOMENTS) else chosen.choice(MOMENTS)
            answered = await killed_around(server, sink, moment, chosen)
            await server.start()
            there = await seen(server.port, sink)
            is_done = there == sink.after()
            report.check(is_done or there == sink.expected, f"F28: half of batch {sink.batch}")
            report.check(is_done or not answered, f"F28: batch {sink.batch} is lost")
            found[f"{moment}: {'all' if is_done else 'nothing'}"] += 1
            if moment == "while it stages":
                await stage(server.port, sink)
            await again(server.port, sink, is_done=is_done, report=report)
            sink.expected = sink.after()
            plan.step()
        report.check(await server.stop() == 0, "F28: the broker did not end well")
    finally:
        await server.close()
    figures = ", ".join(f"{what} {count}" for what, count in sorted(found.items()))
    report.lines.append(f"F28 kill around a sink's commit: {plan.cycles} times, {figures}")
    return report


async def again(port: int, sink: Sink, *, is_done: bool, report: Report) -> None:
    """Commit the batch twice more; check that it is done once, and that nothing stays staged."""
    async with Client(port, "driver") as driver:
        asking = await Asking.of(driver)
        for expected in (not is_done, False):
            reply = await asking.ask("COMMIT", "sink", sink.query, sink.commit())
            told = reply.map.get("committed") if reply.status == 200 else reply.description
            report.check(told is expected, f"F28: batch {sink.batch} again: {told}")
        record = (await asking.ask("READ", "sink", sink.query)).map
        left = [record.get(name) for name in ("batch", "stages", "staged", "staged_bytes")]
        report.check(left == [sink.batch, 0, 0, 0], f"F28: what is left is {record}")
    there = await seen(port, sink)
    report.check(there == sink.after(), f"F28: batch {sink.batch} is not there once, in order")
