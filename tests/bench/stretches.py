"""The longest time for which large batches hold the event loop: a commit, an acquisition, a settle.

    python -P tests/bench/stretches.py 100000

A broker of one process, with a store in SQLite, and no sockets. The messages are staged, committed
to one queue, acquired by a lease in batches of 100,000 and settled. Meanwhile a callback runs in
each turn of the loop and measures the time since the last one. Run it as a file with -P, so that
the installed, compiled package is used and not the sources of the checkout.

It prints one JSON object, for each step: its duration in s, the turns of the loop, the longest
turns in ms by the wall clock and in thread CPU time. The latter leaves out other processes, and
waits for another thread that has the interpreter. And whether the broker is compiled.
"""

import asyncio
import gc
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Final

import uvloop

import broker.journal as journal_module
from broker.app import App
from broker.journal import SWITCH_INTERVAL_S
from broker.log_lines import configure_logging
from broker.management.durable import Durable
from broker.management.entity import Caller, Entity
from broker.management.later import Later, SpawnedTasks
from broker.management.leases import LeaseEntity
from broker.management.request import Request
from broker.management.response import Response
from broker.management.sinks import Sinks
from broker.message import Message, Origin
from broker.routing.addresses.address import Address
from broker.routing.batches.staged_transaction import Task
from broker.routing.queues.node import QUEUE
from broker.security.decision import Decision
from broker.security.identity import Identity
from broker.security.resources import Resource
from broker.settings import load_settings

BODY: Final = b"\x00\x53\x70\xc0\x02\x01\x41" + b"\x00\x53\x75\xa0\x64" + b"x" * 100
PORTION: Final = 500
LEASED: Final = 100_000
SHOWN: Final = 6
SUCCESS: Final = 200
ANYBODY: Final = Identity("", roles=frozenset())


@dataclass(frozen=True)
class Turn:
    """A turn of the loop: its duration in ms, by the wall clock and in thread CPU time."""

    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True)
class Turns:
    """The turns of the loop during one step, which took `seconds`."""

    seconds: float
    turns: list[Turn]

    def longest_cpu_ms(self) -> float:
        """Return the CPU time of the longest turn in ms."""
        return max(turn.cpu_ms for turn in self.turns)

    def figures(self) -> dict[str, object]:
        """Return what is printed."""
        return {
            "seconds": round(self.seconds, 3),
            "turns": len(self.turns),
            "longest_wall_ms": nlargest(SHOWN, (round(turn.wall_ms, 1) for turn in self.turns)),
            "longest_cpu_ms": nlargest(SHOWN, (round(turn.cpu_ms, 1) for turn in self.turns)),
        }


class Probe:
    """Measures the turns of the running loop until `stop`."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._is_over = False
        self._turns: Final[list[Turn]] = []
        self._began_s = self._wall_s = time.perf_counter()
        self._cpu_s = time.thread_time()
        self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        if self._is_over:
            return
        wall_s, cpu_s = time.perf_counter(), time.thread_time()
        turn = Turn(1000 * (wall_s - self._wall_s), 1000 * (cpu_s - self._cpu_s))
        self._turns.append(turn)
        self._wall_s, self._cpu_s = wall_s, cpu_s
        self._loop.call_soon(self._turn)

    def stop(self) -> Turns:
        """End the measurement; return what was measured."""
        self._turn()
        self._is_over = True
        return Turns(time.perf_counter() - self._began_s, self._turns)


class Client:
    """Sends requests to the broker as its management does, and waits until they are durable."""

    def __init__(self, app: App) -> None:
        self._container: Final = app.container
        self._beside: Final = SpawnedTasks()
        router, journal = app.container.router, app.container.journal
        self._entities: Final[dict[str, Entity]] = {
            "sink": Sinks(router, journal, app.store, spawn=self._beside.spawn),
            "lease": LeaseEntity(router, journal, self._beside.spawn),
        }

    async def durable(self) -> None:
        """Wait until all that is noted now is durable."""
        durable = Durable()
        self._container.journal.submit(durable)
        self._container.run_round()
        await durable.happened.wait()

    async def ask(self, kind: str, operation: str, **arguments: object) -> object:
        """Return the body of a response, once it is durable."""
        told: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        caller = Caller(identity=ANYBODY, address="bench", may=allow, tell=told.set_result)
        asked = Request(operation=operation, type=kind, name="bench", arguments=arguments)
        found = self._entities[kind].operations()[operation](asked, caller)
        if isinstance(found, Later):
            found = await found.answer()
        self._container.run_round()
        response = found if isinstance(found, Response) else await told
        if response.status != SUCCESS:
            raise RuntimeError(f"{operation}: {response.description}")
        await self.durable()
        return response.body


def allow(verb: str, resource: Resource) -> Decision:  # noqa: ARG001
    """Allow everything."""
    return Decision(allowed=True, rule="", because="bench")


async def stage(app: App, client: Client, count: int) -> None:
    """Stage `count` messages for the queue `bench`, as one task."""
    router = app.container.router
    address = Address("bench", QUEUE)
    target = router.resolve(address, app.container.journal.batch)
    task = Task(query="bench", batch=0, partition=0, attempt=0)
    stage = router.staging_area.begin(task, target, "bench", origin=Origin())
    for first in range(0, count, PORTION):
        for _ in range(min(PORTION, count - first)):
            now_ms = router.clock.wall_ms()
            message = Message(
                encoded=BODY,
                durable=True,
                priority=4,
                ttl_ms=0,
                arrived_ms=now_ms,
                expires_at_ms=0,
                origin=stage.origin,
            )
            stage.put(message, app.container.journal.batch)
        await client.durable()


async def measure(count: int, store: Path) -> dict[str, Turns]:
    """Return the turns of all steps."""
    app = App(load_settings(None, store=f"sqlite:///{store}", port=0))
    await app.start()
    client = Client(app)
    figures: dict[str, Turns] = {}
    await stage(app, client, count)
    probe = Probe()
    await client.ask("sink", "COMMIT", batch=0, partitions=[0], attempts=[0], counts=[count])
    figures["commit"] = probe.stop()
    await client.ask("lease", "OPEN", address="bench")
    token = app.container.router.leases.fencing_token
    probe = Probe()
    leased = min(count, LEASED)
    at = {"fencing_token": int(token), "batch": 1}
    await client.ask("lease", "ACQUIRE", max_messages=leased, wait_ms=10_000, **at)
    figures["acquire"] = probe.stop()
    probe = Probe()
    await client.ask("lease", "SETTLE", **at)
    figures["settle"] = probe.stop()
    await app.stop()
    return figures


def main() -> None:
    configure_logging("console", "error")
    # as `serving.py` has it
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        work = measure(int(sys.argv[1]), Path(folder) / "store.db")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            figures = runner.run(work)
    compiled = not str(journal_module.__file__).endswith(".py")
    shown = {step: turns.figures() for step, turns in figures.items()}
    print(json.dumps({**shown, "compiled": compiled}, indent=1))


if __name__ == "__main__":
    main()
