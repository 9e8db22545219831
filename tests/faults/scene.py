"""F17: a group of brokers under mixed load, with what a fault needs to find its place."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final, Self

from tests.faults.crashes import MixedLoad
from tests.faults.failover import Members, stands_by
from tests.faults.history import Recorder
from tests.faults.plan import Plan
from tests.faults.server import Server
from tests.faults.workload import GONE, Station
from tests.support import postgres
from tests.support.cut_proxy import PortProxy
from tests.support.postgres_proxy import Proxy

PAUSE_S: Final = (0.02, 0.1)
"""Minimum and maximum seconds that a client waits before it tries the next member."""

TAKEOVER_S: Final = 60.0
"""Seconds after which a member that does not lead yet counts as one that never will."""

LOOK_S: Final = 0.02

SURVIVED: Final = (*GONE, TimeoutError)
"""Errors after which a client tries another member: one that is stopped never answers."""


class GroupStation(Station):
    """Knows the ports of all members, which clients try one after another until one serves them."""

    def __init__(self, recorder: Recorder, ports: Sequence[int], chosen: random.Random) -> None:
        super().__init__(recorder)
        self.survived = SURVIVED
        self._ports: Final = ports
        self._chosen: Final = chosen

    async def port(self) -> int:
        await asyncio.sleep(self._chosen.uniform(*PAUSE_S))
        return self._chosen.choice(self._ports)


class Lag:
    """The longest time that this process was late, in seconds, since `longest_s` was set to 0.

    What it reads may have arrived that much earlier.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def watch(self) -> None:
        while True:
            due_s = time.monotonic() + LOOK_S
            await asyncio.sleep(LOOK_S)
            self.longest_s = max(self.longest_s, time.monotonic() - due_s)


class Scene:
    """A group of `size` brokers under mixed load, within `async with`.

    Clients reach each member by a proxy. `leader` is the member that leads, `out` the members that
    cannot lead now, `cycle` the number of the cycle.
    """

    def __init__(
        self, plan: Plan, server: postgres.Server, *, size: int, gives_back: float
    ) -> None:
        self.plan: Final = plan
        self.size: Final = size
        self._gives_back: Final = gives_back
        self.chosen: Final = random.Random(plan.seed)
        self.lag: Final = Lag()
        self._server: Final = server
        self.database: Final = server.database()
        self.group: Final = Members(
            plan.place.folder,
            server,
            self.database,
            compiled=plan.place.compiled,
        )
        self.doors: Final[dict[Server, PortProxy]] = {}
        self.out: set[Server] = set()
        self.cycle = 0
        self.struck_s = 0.0
        self.missed = 0
        self._stack: Final = AsyncExitStack()
        self._tasks: Final[list[asyncio.Task[None]]] = []

    async def __aenter__(self) -> Self:
        try:
            await self._stack.enter_async_context(self.group)
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def _start(self) -> None:
        self.leader, *_ = members = await self.group.start(self.size)
        for member in members:
            door = PortProxy(member.port)
            self.doors[member] = await self._stack.enter_async_context(door)
        ports = [door.port for door in self.doors.values()]
        station = GroupStation(Recorder(), ports, self.chosen)
        self.load = MixedLoad(self.plan, station, gives_back=self._gives_back)
        await self.load.subscribe(self.leader.port)
        self.working = [asyncio.create_task(worker.work()) for worker in self.load.workers]
        self._tasks.extend([*self.working, asyncio.create_task(self.lag.watch())])
        self.load.station.came_up(self.leader.port)

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    @property
    def standbys(self) -> list[Server]:
        return [member for member in self.group.members if member is not self.leader]

    # -- a fault

    @property
    def session(self) -> Proxy:
        """The proxy by which the leader reaches the database."""
        return self.group.sessions[self.leader]

    def strike(self, *out: Server, is_outage: bool = True) -> None:
        """Note that a fault happens now, after which the members `out` cannot lead."""
        self.out = set(out)
        self.lag.longest_s = 0.0
        self.struck_s = time.monotonic()
        if is_outage:
            self.load.station.going_down()

    def leave_some(self) -> None:
        """Have every second client give its connection up, as if it had been idle for too long."""
        for worker in self.load.workers:
            if worker.client is not None and self.chosen.random() < 0.5:
                worker.client.abort()

    async def taken_over(self) -> float:
        """Wait until a member other than `out` accepts a message; it is the leader then.

        Return the seconds since the fault. Raise TimeoutError after TAKEOVER_S.
        """
        async with asyncio.timeout(TAKEOVER_S):
            while not (leader := await self._accepting()):  # noqa: ASYNC110 - it asks processes
                await asyncio.sleep(LOOK_S)
            took_s = time.monotonic() - self.struck_s
        await leader.ready()
        self.leader = leader
        self.load.station.came_up(leader.port)
        return took_s

    async def _accepting(self) -> Server | None:
        """Return the member that accepts a message, None if none does."""
        with suppress(TimeoutError):
            return await self.group.accepting(self.plan.address("probe"), out=self.out)
        return None

    async def settle(self) -> None:
        """Wait until every member but the leader stands by."""
        for member in self.standbys:
            await stands_by(member)
