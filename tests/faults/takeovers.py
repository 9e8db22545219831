"""F17: under mixed load the leader of a group is lost in some way, and another member takes over.

Nothing that was accepted is lost, no commit of a former leader follows one of the next, and no
client hears from a former leader once another one may lead.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from itertools import pairwise
from traceback import extract_tb
from typing import Final

from _pytest.outcomes import Skipped

from tests.faults.checkers import judge
from tests.faults.leader_faults import LETTERS, Letter
from tests.faults.plan import Fault, Impossible, Plan, Report, spread
from tests.faults.prompt import PromptClient
from tests.faults.scene import TAKEOVER_S, Scene
from tests.faults.server import NotReady
from tests.faults.workload import all_drained
from tests.support import postgres
from tests.support.socket_client import SocketClient

UP_S: Final = (0.3, 1.2)
"""Minimum and maximum number of seconds between two faults."""

ROUNDS: Final = 20
"""Messages that the prompt client has received when the fault happens."""

LISTENS_S: Final = 120.0
"""Seconds for which the prompt client waits for a leader that says nothing."""

LOOK_S: Final = 0.01


def fault_of(letter: str) -> Fault:
    """Return the fault of the catalogue that F17 has under a letter."""
    return partial(leader_lost, letter=letter)


async def leader_lost(plan: Plan, letter: str) -> Report:
    """F17: carry out the faults of one letter, and judge what clients were told."""
    try:
        server = postgres.server("takeovers")
    except Skipped as reason:
        raise Impossible(str(reason)) from None
    return await Takeovers(plan, letter, server).run()


class Takeovers:
    """One run of the faults of one letter.

    `heard_ms` has for each fault when the client of the former leader heard from it last.
    """

    def __init__(self, plan: Plan, name: str, server: postgres.Server) -> None:
        self._plan: Final = plan
        self._name: Final = f"F17{name}"
        self._letter: Final[Letter] = LETTERS[name]
        self._scene: Final = Scene(
            plan, server, size=self._letter.size, gives_back=self._letter.gives_back
        )
        self._report: Final = Report()
        self._took_ms: Final[list[float]] = []
        self._heard_ms: Final[list[float]] = []
        self._longest_lag_s = 0.0

    async def run(self) -> Report:
        scene, report = self._scene, self._report
        try:
            async with scene:
                for scene.cycle in range(1, self._plan.cycles + 1):
                    await self._one()
                    self._plan.step()
                await self._finish()
        except (NotReady, TimeoutError, RuntimeError) as error:
            steps = " < ".join(step.name for step in reversed(extract_tb(error.__traceback__)))
            report.problems.append(f"{self._name}: cycle {scene.cycle}: {error!r} in {steps}")
        return report

    async def _one(self) -> None:
        """Carry out the fault once, with a client at the leader that needs no commits."""
        scene = self._scene
        await asyncio.sleep(scene.chosen.uniform(*UP_S))
        former = scene.leader
        async with SocketClient(former.port, patience_s=LISTENS_S) as client:
            prompt = PromptClient(client)
            await prompt.attach(self._plan.address("prompt"))
            talking = asyncio.create_task(prompt.run_until_silent(LISTENS_S))
            await until_told(prompt, ROUNDS)
            async with self._letter.fault(scene) as moves:
                if moves:
                    self._took_ms.append(await scene.taken_over() * 1000)
            await scene.settle()
            if moves:
                await talking
                self._check_silence(prompt)
                return
            await until_told(prompt, prompt.rounds + 1)
            self._report.check(
                former.running and not former.stands_by.is_set(),
                f"{self._name}: cycle {scene.cycle}: the leader was replaced",
            )
            client.writer.transport.abort()  # a task that waits by wait_for may miss a cancellation
            await talking

    def _check_silence(self, prompt: PromptClient) -> None:
        """Check that the former leader said nothing once another member might lead."""
        scene = self._scene
        heard_ms = max(0.0, prompt.heard_s - scene.struck_s) * 1000
        self._heard_ms.append(heard_ms)
        self._longest_lag_s = max(self._longest_lag_s, scene.lag.longest_s)
        self._report.check(
            heard_ms < scene.group.silence_ms + scene.lag.longest_s * 1000,
            f"{self._name}: cycle {scene.cycle}: a former leader answered after {heard_ms:.0f} ms",
        )

    async def _finish(self) -> None:
        """Let the clients end, drain what is left, and judge."""
        scene, report, load = self._scene, self._report, self._scene.load
        load.station.stop()
        await asyncio.gather(*scene.working)
        drained = await all_drained(load.drains, scene.leader.port)
        for member in (*scene.standbys, scene.leader):
            report.check(await member.stop() == 0, f"{self._name}: a member did not end with 0")
        verdict = judge(load.reading(drained))
        words = f"{self._name} {self._letter.words}"
        report.add(words, verdict, recorder=load.recorder, plan=self._plan)
        commits = await scene.group.commits()
        stale = sum(later < earlier for earlier, later in pairwise(commits))
        report.check(stale == 0, f"{self._name}: {stale} commits of former leaders")
        epochs = len({epoch for epoch, _ in commits})
        report.lines.append(
            f"   {self._plan.cycles} times, {scene.missed} not where they were to be; {epochs}"
            f" epochs, {stale} stale of {len(commits)} commits; first accept ms:"
            f" {spread(self._took_ms)}; former leader heard until ms: {spread(self._heard_ms)},"
            f" read up to {self._longest_lag_s * 1000:.0f} ms late"
        )


async def until_told(prompt: PromptClient, rounds: int) -> None:
    """Wait until a prompt client has received so many messages; raise TimeoutError if it hangs."""
    deadline_s = time.monotonic() + TAKEOVER_S
    while prompt.rounds < rounds:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"the leader answered only {prompt.rounds} of {rounds} messages")
        await asyncio.sleep(LOOK_S)
