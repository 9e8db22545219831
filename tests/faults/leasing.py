"""F29: the broker is killed while a driver acquires, reads and settles batches of a lease."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from librt.strings import BytesWriter

from broker.amqp.encode import put_value
from broker.amqp.sections import put_header
from broker.amqp.terminus import COPY, Source, SourceFilter
from broker.amqp.types import Described, Map, Symbol, UInt
from broker.links.slices import LEASE_SLICE
from tests.faults.asking import Asking
from tests.faults.client import Client
from tests.faults.links import Delivery, Lost, is_accepted
from tests.faults.plan import Plan, Report
from tests.faults.server import Server
from tests.support.frames import body_of, header_of
from tests.support.management import Reply
from tests.support.routing import encoded

LEASE: Final = "faults"

SLICES: Final = 3
ROWS_MAX: Final = 60
GROUPS: Final = 4
"""Number of message groups; every other message belongs to one."""

MOMENTS: Final = ("after ACQUIRE", "during ACQUIRE", "during SETTLE", "after SETTLE", "before")

DURING_S: Final = 0.02
"""Seconds within which most requests are answered."""

Slices = list[list[bytes]]
"""The complete messages read from each slice of a batch."""


@dataclass
class Driver:
    """The user of one lease; its knowledge is kept over all kills of the broker.

    `read` has the messages of unsettled batches, `done` the bodies of settled ones.
    """

    queue: str
    name: str
    sent: list[bytes] = field(default_factory=list)
    fencing_token: int = 0
    batch_number: int = 0
    settled: int = 0
    read: dict[int, Slices] = field(default_factory=dict)
    done: list[bytes] = field(default_factory=list)

    def body(self, **more: object) -> dict[str, object]:
        return {"fencing_token": self.fencing_token, **more}

    def is_settled_up_to(self, batch_number: int) -> None:
        """Record that all batches up to `batch_number` are settled."""
        for number in range(self.settled + 1, batch_number + 1):
            for part in self.read.pop(number):
                self.done += [body_of(payload) for payload in part]
        self.settled = batch_number


def durable(body: bytes, group: str) -> bytes:
    """Return a durable message of a group, or of none if `group` is empty."""
    out = BytesWriter()
    put_header(out, durable=True, priority=4, ttl=-1, first_acquirer=False, delivery_count=0)
    return out.getvalue() + encoded(body, group=group)


async def send(client: Client, driver: Driver, count: int) -> None:
    """Send `count` messages more and check that all are accepted."""
    sender = await client.sender(driver.queue)
    outcomes = []
    for _ in range(count):
        number = len(driver.sent)
        body = b"%d" % number
        driver.sent.append(body)
        await sender.room()
        group = f"g{number % GROUPS}" if number % 2 else ""
        outcomes.append(await sender.send(durable(body, group)))
    for outcome in outcomes:
        assert is_accepted(await outcome)


async def read_slice(
    client: Client, driver: Driver, batch_number: int, index: int
) -> list[Delivery]:
    """Return all messages of a slice, in order."""
    said = [("lease", driver.name), ("fencing_token", driver.fencing_token)]
    value = Map([*said, ("batch", batch_number), ("slice", index)])
    out = BytesWriter()
    put_value(out, Described(Symbol(LEASE_SLICE), value))
    wanted = SourceFilter(
        key="lease-slice", descriptor=LEASE_SLICE, value=value, encoded=out.getvalue()
    )
    source = Source(address=driver.queue, distribution_mode=COPY, filter=[wanted])
    receiver = await client.receiver(driver.queue, credit=0, source=source)
    return await receiver.all()


async def read(client: Client, driver: Driver, batch_number: int, report: Report) -> None:
    """Read a whole batch; report a problem if it differs from an earlier reading.

    No other consumer has its messages, and the lease never expires: all have delivery-count 0.
    """
    found: Slices = []
    for index in range(SLICES):
        deliveries = await read_slice(client, driver, batch_number, index)
        found.append([delivery.payload for delivery in deliveries])
    counts = {count_in(payload) for part in found for payload in part}
    report.check(counts <= {0}, f"F29: batch {batch_number} has the delivery-counts {counts}")
    before = driver.read.setdefault(batch_number, found)
    report.check(before == found, f"F29: batch {batch_number} is not as it was")


def count_in(payload: bytes) -> int:
    """Return the delivery-count in the header of a message."""
    count = header_of(payload)[4]
    return count.value if isinstance(count, UInt) else 0


def acquire_of(driver: Driver, batch_number: int) -> dict[str, object]:
    return driver.body(batch=batch_number, slices=SLICES, max_messages=ROWS_MAX)


async def reopened(asking: Asking, driver: Driver, report: Report) -> None:
    """Open the lease; check that it continues where it was, or further on if an answer was lost."""
    reply = await asking.ask("OPEN", "lease", driver.name, {"address": driver.queue})
    told = numbers_in(reply)
    report.check(
        told["fencing_token"] > driver.fencing_token, "F29: a fencing token was given twice"
    )
    report.check(
        driver.batch_number <= told["batch"] <= driver.batch_number + 1,
        f"F29: batch {driver.batch_number}, then {told}",
    )
    report.check(
        driver.settled <= told["settled"] <= driver.batch_number,
        f"F29: settled {driver.settled}, then {told}",
    )
    driver.fencing_token = told["fencing_token"]
    driver.batch_number = told["batch"]
    driver.is_settled_up_to(told["settled"])


def numbers_in(reply: Reply) -> dict[str, int]:
    """Return the integers of a response; raise Lost unless its status is 200."""
    if reply.status != 200:
        raise Lost(f"{reply.status} {reply.description}")
    return {name: value for name, value in reply.map.items() if isinstance(value, int)}


async def go_on(client: Client, asking: Asking, driver: Driver, report: Report) -> None:
    """Acquire each unsettled batch again, and check that it reads as before."""
    for lease_batch in range(driver.settled + 1, driver.batch_number + 1):
        again = numbers_in(
            await asking.ask("ACQUIRE", "lease", driver.name, acquire_of(driver, lease_batch))
        )
        await read(client, driver, lease_batch, report)
        count = sum(len(part) for part in driver.read[lease_batch])
        report.check(
            again["messages"] == count, f"F29: batch {lease_batch} has {count}, not {again}"
        )


async def killed_at(
    server: Server, driver: Driver, moment: str, *, chosen: random.Random, report: Report
) -> None:
    """Continue with the lease until the broker is killed at `moment`."""
    async with Client(server.port, "driver") as client:
        asking = await Asking.of(client)
        await reopened(asking, driver, report)
        await go_on(client, asking, driver, report)
        await send(client, driver, chosen.randint(1, ROWS_MAX))
        operation = moment.split()[-1]
        if operation == "ACQUIRE":
            request = acquire_of(driver, driver.batch_number + 1)
        else:
            request = driver.body(batch=driver.batch_number)
        if moment != "before":
            await asking.send(operation, "lease", driver.name, request)
        if moment.startswith("during"):
            await asyncio.sleep(chosen.uniform(0, DURING_S))
        if moment.startswith("after") or (
            moment.startswith("during") and await asking.has_answered()
        ):
            told = numbers_in(await asking.answer())
            if operation == "SETTLE":
                driver.is_settled_up_to(told["settled"])
            elif told["messages"] > 0:
                driver.batch_number += 1
                await read(client, driver, driver.batch_number, report)
        await server.kill()


async def finished(port: int, driver: Driver, report: Report) -> None:
    """Acquire and settle everything left; check that queue and lease are empty then."""
    async with Client(port, "driver") as client:
        asking = await Asking.of(client)
        await reopened(asking, driver, report)
        await go_on(client, asking, driver, report)
        while True:
            settled = await asking.ask(
                "SETTLE", "lease", driver.name, driver.body(batch=driver.batch_number)
            )
            driver.is_settled_up_to(numbers_in(settled)["settled"])
            request = acquire_of(driver, driver.batch_number + 1)
            told = numbers_in(await asking.ask("ACQUIRE", "lease", driver.name, request))
            if told["messages"] == 0:
                break
            driver.batch_number += 1
            await read(client, driver, driver.batch_number, report)
        record = (await asking.ask("READ", "queue", driver.queue)).map
        report.check(record["messages"] == 0, f"F29: what is left is {record}")
        released = await asking.ask("RELEASE", "lease", driver.name, driver.body())
        report.check(released.map == {"messages": 0}, f"F29: the lease had {released.map}")


async def leases_killed(plan: Plan) -> Report:
    """F29: every message is in one batch, reads the same each time, and is settled once."""
    chosen = random.Random(plan.seed)
    report = Report()
    moments: Counter[str] = Counter()
    driver = Driver(plan.address("f29"), plan.address(LEASE))
    server = Server(plan.place)
    await server.start()
    try:
        for number in range(plan.cycles):
            moment = MOMENTS[number] if number < len(MOMENTS) else chosen.choice(MOMENTS)
            await killed_at(server, driver, moment, chosen=chosen, report=report)
            await server.start()
            moments[moment] += 1
            plan.step()
        await finished(server.port, driver, report)
        report.check(await server.stop() == 0, "F29: the broker did not end well")
    except Lost as lost:
        report.check(False, f"F29: {lost}")
    finally:
        await server.close()
    twice = [body for body, count in Counter(driver.done).items() if count > 1]
    report.check(not twice, f"F29: settled twice: {twice[:5]}")
    missing = set(driver.sent) - set(driver.done)
    report.check(not missing, f"F29: {len(missing)} of {len(driver.sent)} are lost")
    report.lines.append(
        f"F29 kill around a lease's requests: {plan.cycles} times, {len(driver.done)} messages in"
        f" {driver.batch_number} batches, {dict(sorted(moments.items()))}"
    )
    return report
