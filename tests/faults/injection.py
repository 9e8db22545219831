"""F2, F4, F8, F9: system calls that kill the broker, fail or are delayed, and a second broker."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.faults.checkers import judge
from tests.faults.client import Client
from tests.faults.history import Action, Phase, Recorder
from tests.faults.plan import Impossible, Plan, Report, spread
from tests.faults.reading import Fate, Reading
from tests.faults.server import NotReady, Server, strace, why_no_strace
from tests.faults.workload import (
    GONE,
    Consumer,
    Producer,
    Station,
    TransactedProducer,
    Worker,
    all_drained,
)

LIFE_S: Final = 6.0
"""Seconds after which a broker that has not reached its point is killed."""

LATE_S: Final = 0.1
"""Seconds after a disk error within which every outcome already sent has arrived."""


@dataclass(frozen=True)
class Point:
    """A moment in a broker's life: it dies before one of the first `most` calls `call` on `file`.

    If `fresh`, the store is deleted before the broker starts.
    """

    name: str
    call: str
    most: int
    file: str = ""
    fresh: bool = False


POINTS: Final = (
    Point("while the schema is made", "pwrite64", 40, "store.db-wal", fresh=True),
    Point("before a commit is synced", "fdatasync", 40, "store.db-wal"),
    Point("before the loop hears of a commit or a client of an outcome", "write", 300),
    Point("before the log of a commit is written", "pwrite64", 300, "store.db-wal"),
    Point("before what a checkpoint wrote is synced", "fdatasync", 3, "store.db"),
    Point("while a checkpoint writes", "pwrite64", 60, "store.db"),
    Point("while the loop looks for work", "epoll_pwait", 600),
)


class Load:
    """Two producers, one of them transacted, and a consumer if `takes`; they are always at work."""

    def __init__(self, plan: Plan, name: str, *, takes: bool = True) -> None:
        self.recorder: Final = Recorder()
        self.station: Final = Station(self.recorder)
        queue, orders = plan.address(f"{name}-plain"), plan.address(f"{name}-orders")
        made, seed = self.station, plan.seed
        self.workers: Final[list[Worker]] = [
            Producer(made, "plain", seed, address=queue),
            TransactedProducer(made, "orders", seed, addresses=[orders, queue]),
        ]
        if takes:
            self.workers.append(Consumer(made, "taker", seed, address=queue, pause_s=0.002))
        self.drains: Final = [
            Consumer(made, f"drain-{each}", seed, address=each) for each in (queue, orders)
        ]
        self._tasks: Final[list[asyncio.Task[None]]] = []

    def begin(self) -> None:
        self._tasks.extend(asyncio.create_task(worker.work()) for worker in self.workers)

    async def finish(self) -> None:
        """Stop the workers and wait until they have their last outcomes."""
        self.station.stop()
        await asyncio.gather(*self._tasks)

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def heard(self) -> list[str]:
        """Return for each worker why the broker closed its connection."""
        return [worker.heard for worker in self.workers]

    async def reading(self, port: int) -> Reading:
        """Drain the queues and return the digest of the history."""
        drained = await all_drained(self.drains, port)
        return Reading(self.recorder.events, alone=drained)


def need_strace(plan: Plan) -> None:
    reason = why_no_strace()
    if reason:
        raise Impossible(reason)
    if not plan.place.is_sqlite:
        raise Impossible("the files of a database server are not the broker's to write")


# ---- F2


async def killed_at_points(plan: Plan) -> Report:
    """F2: `kill -9` before a given call; what the sender was told is compared with the store."""
    need_strace(plan)
    chosen = random.Random(plan.seed)
    server = Server(plan.place)
    report = Report()
    matrices: dict[str, Counter[str]] = {point.name: Counter() for point in POINTS}
    for number in range(plan.cycles):
        point = POINTS[number % len(POINTS)]
        matrix = matrices[point.name]
        load = Load(plan, f"f2-{number}")
        if point.fresh:
            shutil.rmtree(plan.place.database.parent, ignore_errors=True)
        reached = await die_at(server, point, chosen.randint(1, point.most), load=load)
        try:
            await server.start()
        except NotReady as error:
            report.problems.append(f"F2 {point.name}: the next start failed: {error}")
            shutil.rmtree(plan.place.database.parent)
            continue
        load.station.came_up(server.port)
        reading = await load.reading(server.port)
        if await server.stop() != 0:
            report.problems.append(f"F2 {point.name}: no clean stop afterwards")
        matrix["died there" if reached else "not reached"] += 1
        fill(matrix, reading)
        verdict = judge(reading)
        report.problems += [f"F2 {point.name}: {problem}" for problem in verdict.problems()]
        if not verdict.holds:
            load.recorder.write(plan.place.folder / f"history-{number}.jsonl")
        plan.step()
    for name, matrix in matrices.items():
        if matrix:
            told = ", ".join(f"{what} {count}" for what, count in sorted(matrix.items()))
            report.lines.append(f"F2 {name}: {told}")
    return report


async def die_at(server: Server, point: Point, when: int, *, load: Load) -> bool:
    """Run the broker until it dies at call number `when`; return False if it had to be killed."""
    paths = [server.place.database.with_name(point.file)] if point.file else []
    within = strace(f"{point.call}:signal=KILL:when={when}", paths=paths)
    try:
        await server.start(within=within)
    except NotReady:
        return True
    load.station.came_up(server.port)
    load.begin()
    reached = True
    try:
        try:
            await server.wait(LIFE_S)
        except TimeoutError:
            reached = False
        load.station.going_down()
    finally:
        await load.cancel()
        await server.close()
    return reached


def fill(matrix: Counter[str], reading: Reading) -> None:
    """Count messages by what their sender was told and by whether the store has them."""
    words = {Fate.DONE: "accepted", Fate.NOT_DONE: "refused", Fate.IN_DOUBT: "unanswered"}
    for subject, sent in reading.sent.items():
        there = any(reading.seen(place, subject) for place in reading.places(sent))
        matrix[f"{words[reading.fate(sent)]}-and-{'there' if there else 'gone'}"] += 1


# ---- F4

INJECTED: Final = re.compile(r"^\d+\s+(?P<at>\d+\.\d+) .*\(INJECTED\)", re.MULTILINE)


@dataclass(frozen=True)
class Sync:
    """A call to fail: the sync or the write of a commit, or of a checkpoint."""

    name: str
    injection: str
    file: str
    most: int

    def within(self, plan: Plan, number: int, log: Path) -> list[str]:
        """Return the command to run the broker within, so that the call with this number fails."""
        paths = [plan.place.database.with_name(self.file)]
        return strace(self.injection.format(n=number), log=log, paths=paths)


SYNCS: Final = (
    Sync("from one sync of the log on", "fdatasync:error=EIO:when={n}+", "store.db-wal", 80),
    Sync("one sync of the log", "fdatasync:error=EIO:when={n}", "store.db-wal", 80),
    Sync("one write of the log", "pwrite64:error=EIO:when={n}", "store.db-wal", 300),
    Sync("syncs of checkpoints", "fdatasync:error=EIO:when={n}+", "store.db", 2),
)


async def syncs_that_fail(plan: Plan) -> Report:
    """F4: `fdatasync` fails with EIO; the broker answers nothing more and ends, nothing is lost."""
    need_strace(plan)
    chosen = random.Random(plan.seed)
    report = Report()
    endings: list[float] = []
    late = 0
    server = Server(plan.place)
    for number in range(plan.cycles):
        sync = SYNCS[number % len(SYNCS)]
        name = sync.name
        load = Load(plan, f"f4-{number}")
        log = plan.place.folder / f"strace-{number}.log"
        within = sync.within(plan, chosen.randint(1, sync.most), log)
        code = await run_until_it_fails(server, within, load=load)
        ended_at = time.time()
        failed_at = first_injection(log)
        if failed_at is not None and code is not None:
            endings.append((ended_at - failed_at) * 1000)
            late += outcomes_behind(load.recorder, failed_at)
            report.check(code > 0, f"F4 {name}: it ended with status {code}")
        elif failed_at is not None:
            report.problems.append(f"F4 {name}: the broker lived on")
        await server.start()
        load.station.came_up(server.port)
        verdict = judge(await load.reading(server.port))
        report.problems += [f"F4 {name}: {problem}" for problem in verdict.problems()]
        report.check(await server.stop() == 0, f"F4 {name}: no clean stop afterwards")
        report.lines.append(f"F4 {name}: {verdict.line()}")
        plan.step()
    report.check(late == 0, f"F4: {late} outcomes more than {LATE_S} s after the error")
    report.check(max(endings, default=0) < 1000, f"F4: the end took {max(endings, default=0)} ms")
    report.lines.append(
        f"   {len(endings)} errors, ms to the end: {spread(endings)}; outcomes"
        f" behind the error: {late}"
    )
    return report


async def run_until_it_fails(server: Server, within: list[str], *, load: Load) -> int | None:
    """Run the broker under load; return its exit code, None if it had to be killed."""
    try:
        await server.start(within=within)
    except NotReady:
        return await server.wait()
    load.station.came_up(server.port)
    load.begin()
    try:
        return await server.wait(LIFE_S)
    except TimeoutError:
        return None
    finally:
        load.station.going_down()
        await load.cancel()
        await server.close()


def first_injection(log: Path) -> float | None:
    """Return when the first call failed, in seconds of the wall clock; None if none failed."""
    found = INJECTED.search(log.read_text(errors="replace")) if log.exists() else None
    return None if found is None else float(found["at"])


def outcomes_behind(recorder: Recorder, failed_at: float) -> int:
    """Return the number of sends and commits accepted more than LATE_S after the disk error."""
    offset = time.time() - time.monotonic()
    return sum(
        event.action in (Action.SEND, Action.COMMIT)
        and event.phase is Phase.OK
        and event.at_ns / 1e9 + offset > failed_at + LATE_S
        for event in recorder.events
    )


# ---- F8


async def two_on_one_store(plan: Plan) -> Report:
    """F8: a second broker on the store is refused, and the first one continues.

    On a slow machine a refusal may take three times as long as the first broker's start.
    """
    report = Report()
    load = Load(plan, "f8")
    first, second = Server(plan.place), Server(plan.place)
    refusals: list[float] = []
    began = time.monotonic()
    try:
        await first.start()
        limit_ms = max(2000 * slowness(plan), 3000 * (time.monotonic() - began))
        load.station.came_up(first.port)
        load.begin()
        for _ in range(plan.cycles):
            began = time.monotonic()
            await second.launch()
            code = await second.wait()
            refusals.append((time.monotonic() - began) * 1000)
            report.check(code > 0, f"F8: the second broker ended with status {code}")
            said = " ".join(second.lines)
            report.check("in use" in said or "already" in said, f"F8: it said {said!r}")
            plan.step()
        await load.finish()
        verdict = judge(await load.reading(first.port))
        report.check(await first.stop() == 0, "F8: the first broker did not end well")
    finally:
        await load.cancel()
        await first.close()
        await second.close()
    report.add("F8 two brokers on one store", verdict, recorder=load.recorder, plan=plan)
    report.check(max(refusals) < limit_ms, f"F8: a refusal took {max(refusals)} ms")
    report.lines.append(f"   {plan.cycles} refusals, ms: {spread(refusals)}")
    return report


def slowness(plan: Plan) -> int:
    """Return the factor for time limits: an interpreted broker takes longer to start."""
    return 1 if plan.place.compiled else 4


# ---- F9

DELAYS_MS: Final = (5, 500, 50)
WATCHED_S: Final = 2.5
STALL_S: Final = 30.0
STALLED_SYNC: Final = 60
"""Number of the sync that is delayed; the queues have been created by then."""

IDLE_MS: Final = 1000


async def slow_syncs(plan: Plan) -> Report:
    """F9: every sync is delayed; no client is dropped, silence stays short, the order holds."""
    need_strace(plan)
    report = Report()
    for number in range(plan.cycles):
        delay_ms = DELAYS_MS[number % len(DELAYS_MS)]
        injection = f"fdatasync:delay_enter={delay_ms * 1000}"
        await watched(plan, report, f"{delay_ms} ms", injection=injection, seconds=WATCHED_S)
        plan.step()
    return report


async def stalled_sync(plan: Plan) -> Report:
    """F9: one sync takes half a minute, and still no client is dropped."""
    need_strace(plan)
    report = Report()
    for _ in range(plan.cycles):
        injection = f"fdatasync:delay_enter={STALL_S * 1e6:.0f}:when={STALLED_SYNC}"
        what = f"{STALL_S:.0f} s, once"
        longest = await watched(plan, report, what, injection=injection, seconds=STALL_S + 10)
        report.check(longest > STALL_S * 1000 / 2, f"F9 {what}: nobody had to wait")
        plan.step()
    return report


async def watched(
    plan: Plan, report: Report, what: str, *, injection: str, seconds: float
) -> float:
    """Run load and an idle connection while syncs are delayed; return the longest wait, in ms."""
    load = Load(plan, f"f9-{len(report.lines)}")
    server = Server(plan.place)
    try:
        await server.start(within=strace(injection))
        load.station.came_up(server.port)
        load.begin()
        silence, dropped = await idle_connection(server.port, seconds)
        await load.finish()
        reading = await load.reading(server.port)
        report.check(await server.stop() == 0, "F9: the broker did not end well")
    finally:
        await load.cancel()
        await server.close()
    verdict = judge(reading)
    report.add(f"F9 syncs of {what}", verdict, recorder=load.recorder, plan=plan)
    attaches = max(worker.attaches for worker in load.workers)
    report.check(attaches == 1, f"F9 {what}: a client was dropped")
    report.check(not dropped, f"F9 {what}: an idle connection was dropped")
    report.check(silence < IDLE_MS / 1000, f"F9 {what}: silent for {silence:.2f} s")
    waits = told_after_ms(load.recorder)
    report.lines.append(
        f"   accepted {verdict.acked / seconds:.0f}/s, told after ms: {spread(waits)}, longest"
        f" silence {silence * 1000:.0f} ms"
    )
    return max(waits, default=0.0)


async def idle_connection(port: int, seconds: float) -> tuple[float, bool]:
    """Return the longest silence in s on an idle connection, and whether it was dropped."""
    async with Client(port, "idle", idle_time_out=IDLE_MS) as client:
        with suppress(*GONE):
            await client.change(0.01)
            dropped = await client.ended(seconds)
            return client.longest_silence_s, dropped
    return seconds, True


def told_after_ms(recorder: Recorder) -> list[float]:
    """Return how long senders waited for each outcome, in ms."""
    asked = {
        event.subject: event.at_ns
        for event in recorder.events
        if event.action is Action.SEND and event.phase is Phase.INVOKE
    }
    return [
        (event.at_ns - asked[event.subject]) / 1e6
        for event in recorder.events
        if event.action is Action.SEND and event.phase is Phase.OK
    ]
