"""F40: a bridge's brokers are killed, and its network is cut, around the steps of a batch."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from typing import Final

from broker.amqp.terminus import COPY, Source
from tests.faults.asking import Asking
from tests.faults.client import Client
from tests.faults.links import is_accepted
from tests.faults.plan import Plan, Report
from tests.faults.server import DEFAULT_STORE, Place, Server
from tests.support.cut_proxy import CutLink, PortProxy, Streams
from tests.support.frames import message

MESSAGES: Final = 120
"""Messages of a cycle, in batches of BATCH."""

BATCH: Final = 30
SHORT_S: Final = 0.02
"""Seconds within which most commits of a few messages are answered."""

PATIENCE_S: Final = 60.0

SOURCE: Final = "source"
TARGET: Final = "target"
NETWORK: Final = "network"
SILENCE: Final = "silence"

STAGING: Final = "while it stages"
COMMIT: Final = "at COMMIT"
ANSWER: Final = "at its answer"
SETTLED: Final = "behind its answer"


@dataclass(frozen=True)
class Step:
    """The part that fails, and the moment at which it does."""

    part: str
    moment: str

    def __str__(self) -> str:
        return f"{self.part} {self.moment}"


STEPS: Final = (
    Step(SOURCE, ANSWER),
    Step(TARGET, COMMIT),
    Step(NETWORK, ANSWER),
    Step(SOURCE, STAGING),
    Step(SOURCE, COMMIT),
    Step(SOURCE, SETTLED),
    Step(TARGET, STAGING),
    Step(TARGET, ANSWER),
    Step(TARGET, SETTLED),
    Step(NETWORK, STAGING),
    Step(NETWORK, COMMIT),
    Step(SILENCE, COMMIT),
    Step(SILENCE, ANSWER),
)
"""The first three are those of the quick suite."""


class BridgeProxy(PortProxy):
    """A proxy between a bridge and its target; `reached` is set when the moment has come.

    The answer of a commit is lost if that is the moment. While it `is_shut`, nobody gets through.
    """

    def __init__(self) -> None:
        super().__init__(0)
        self.target = 0
        self.moment = ""
        self.reached = asyncio.Event()
        self.is_shut = False
        self._is_committing = False

    def arm(self, moment: str) -> None:
        """Wait for `moment` from now on."""
        self.moment = moment
        self._is_committing = False
        self.reached = asyncio.Event()

    def shut(self) -> None:
        """Cut all connections, and let nobody through until `is_shut` is false."""
        self.is_shut = True
        self.cut()

    async def reach(self) -> Streams:
        if self.is_shut:
            raise ConnectionRefusedError
        return await asyncio.open_connection("127.0.0.1", self.target)

    def see_request(self, link: CutLink, data: bytes) -> bytes:  # noqa: ARG002
        if b"COMMIT" in data:
            self._is_committing = True
            self._come(COMMIT)
        elif b"bridged-" in data:
            self._come(STAGING)
        return data

    def see_answer(self, link: CutLink, data: bytes) -> bytes:
        if self._is_committing and b"committed" in data:
            if self.moment == ANSWER:
                link.is_held = True
                self._come(ANSWER)
                return b""
            self._come(SETTLED)
        return data

    def _come(self, moment: str) -> None:
        if moment == self.moment:
            self.moment = ""
            self.reached.set()


class BridgeSite:
    """Two brokers, a bridge from `q` to `there`, and the proxy between them."""

    def __init__(self, plan: Plan, chosen: random.Random) -> None:
        self.queue: Final = plan.address("q")
        self.there: Final = plan.address("there")
        self.proxy: Final = BridgeProxy()
        self.sent: list[bytes] = []
        self._plan: Final = plan
        self._chosen: Final = chosen
        folder = plan.place.folder / TARGET
        folder.mkdir()
        self.target: Final = Server(
            Place(folder, store=DEFAULT_STORE, compiled=plan.place.compiled)
        )
        self.source: Final = Server(plan.place)

    async def start(self) -> None:
        """Start the target, then the source, whose settings name the proxy."""
        await self.target.start()
        self.proxy.target = self.target.port
        place = self._plan.place
        settings = (
            f'[[bridge]]\nname = "to-there"\nfrom = "{self.queue}"\nto = "{self.there}"\n'
            f'url = "amqp://127.0.0.1:{self.proxy.port}"\nbatch = {BATCH}\n'
        )
        self.source.place = Place(
            place.folder, store=place.store, compiled=place.compiled, settings=settings
        )
        await self.source.start()

    async def send(self) -> None:
        """Send the messages of a cycle to the source, while the bridge cannot move them."""
        self.proxy.shut()
        first = len(self.sent)
        bodies = [b"bridged-%d" % number for number in range(first, first + MESSAGES)]
        async with Client(self.source.port, "producer") as client:
            sender = await client.sender(self.queue)
            outcomes = []
            for body in bodies:
                await sender.room()
                outcomes.append(await sender.send(message(body, durable=True)))
            for outcome in outcomes:
                assert is_accepted(await outcome)
        self.sent += bodies
        self.proxy.is_shut = False

    async def fail(self, step: Step) -> None:
        """Wait for the moment of `step`, and let its part fail; then mend it."""
        async with asyncio.timeout(PATIENCE_S):
            await self.proxy.reached.wait()
        if step.moment in (COMMIT, SETTLED):
            await asyncio.sleep(self._chosen.uniform(0, SHORT_S))
        if step.part == SOURCE:
            await self.source.kill()
            self.proxy.cut()
            await self.source.start()
        elif step.part == TARGET:
            await self.target.kill()
            self.proxy.cut()
            await self.target.start()
            self.proxy.target = self.target.port
        elif step.part == SILENCE:
            self.proxy.lose()
            await asyncio.sleep(1)
            await self._moved_on()
        else:
            self.proxy.cut()

    async def _moved_on(self) -> None:
        """Let the bridge find out that nothing comes any more, then connect it again."""
        while not any("silent for" in line for line in self.source.lines):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        self.source.lines.clear()
        self.proxy.cut()

    async def moved(self) -> list[bytes]:
        """Return the bodies at the target, once the source holds no message."""
        async with asyncio.timeout(PATIENCE_S):
            while await held_at(self.source.port, self.queue):  # noqa: ASYNC110 - it asks a process
                await asyncio.sleep(0.05)
        async with Client(self.target.port, "browser") as client:
            source = Source(address=self.there, distribution_mode=COPY)
            receiver = await client.receiver(self.there, credit=0, source=source)
            return [delivery.body for delivery in await receiver.all()]

    async def close(self) -> None:
        """End both brokers."""
        await self.source.close()
        await self.target.close()


async def held_at(port: int, queue: str) -> int:
    """Return how many messages a queue has, leased ones among them."""
    async with Client(port, "looker") as client:
        asking = await Asking.of(client)
        record = (await asking.ask("READ", "queue", queue)).map
        return int(str(record["messages"])) + int(str(record["acquired"]))


async def bridges_fail(plan: Plan) -> Report:
    """F40: all messages are at the target, each once, in their order."""
    chosen = random.Random(plan.seed)
    report = Report()
    done: Counter[str] = Counter()
    lost = twice = 0
    site = BridgeSite(plan, chosen)
    async with site.proxy:
        try:
            await site.start()
            for number in range(plan.cycles):
                step = STEPS[number % len(STEPS)]
                site.proxy.arm(step.moment)
                await site.send()
                await site.fail(step)
                found = await site.moved()
                counts = Counter(found)
                missing = [body for body in site.sent if body not in counts]
                again = [body for body, count in counts.items() if count > 1]
                lost += len(missing)
                twice += len(again)
                report.check(not missing, f"F40 {step}: lost {missing[:3]}")
                report.check(not again, f"F40 {step}: twice {again[:3]}")
                report.check(found == site.sent, f"F40 {step}: not in order")
                done[str(step)] += 1
                plan.step()
        finally:
            await site.close()
    report.lines.append(
        f"F40 a bridge's brokers killed, its network cut: {plan.cycles} times,"
        f" {len(site.sent)} messages, {lost} lost, {twice} twice"
    )
    report.lines += [f"  {step}: {count}" for step, count in done.items()]
    return report
