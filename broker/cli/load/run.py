"""The run of a load: its processes, the phases that they pass together, and the samples."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Final, final

from broker.cli.client import connected
from broker.cli.ending import ClientError
from broker.cli.load.counts import LoadSample
from broker.cli.load.plan import SECOND_NS
from broker.cli.load.report import LoadTimeline
from broker.cli.load.worker import BeginLoad, Failed, Finished, Ready, Stop, run_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection as Pipe
    from multiprocessing.context import ForkProcess

    from broker.cli.load.plan import LoadPlan, Share

START_NS: Final = SECOND_NS // 20
"""Nanoseconds from the order to begin until the first message is due."""

QUIET_S: Final = 2.0
"""Seconds without a message after which those not yet received are lost."""

STEP_S: Final = 0.1
KILL_S: Final = 5.0
"""Seconds for a process to end before it is killed."""


@dataclass
class Process:
    """A process of the load and the end of its pipe."""

    share: Share
    process: ForkProcess
    pipe: Pipe
    is_ready: bool = False
    has_finished: bool = False


@final
class LoadRun:
    """A run of `plan`, once. `interrupted` tells whether ^C ended it early."""

    def __init__(self, plan: LoadPlan, on_step: Callable[[LoadTimeline, float], None]) -> None:
        """Take what to call ten times a second, with the seconds since the start."""
        self.interrupted = False
        self._plan: Final = plan
        self._on_step: Final = on_step
        self._processes: Final[list[Process]] = []
        self._timeline = LoadTimeline(plan, 0)

    def run(self) -> LoadTimeline:
        """Run the load. Raise ClientError if it cannot be run to its end."""
        # a login that fails, or a wrong certificate, is explained here, once
        with connected(self._plan.url, self._plan.timeout_s, tls=self._plan.tls):
            pass
        try:
            for number, share in enumerate(self._plan.shares()):
                self._start(number, share)
            start_ns = time.monotonic_ns() + START_NS
            self._timeline = LoadTimeline(self._plan, start_ns)
            self._tell(BeginLoad(start_ns), self._processes)
            self._until_sent(start_ns)
            self._until_received()
        finally:
            self._end()
        return self._timeline

    def _start(self, number: int, share: Share) -> None:
        """Start a process, and wait until its clients are attached."""
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=run_process, args=(theirs, self._plan, number, share), daemon=True
        )
        process.start()
        theirs.close()
        started = Process(share, process, ours)
        self._processes.append(started)
        while not started.is_ready:
            self._read(STEP_S)

    def _until_sent(self, start_ns: int) -> None:
        """Wait until the senders have sent all, or until the user interrupts them."""
        senders = [each for each in self._processes if each.share.sends_first]
        while not all(each.has_finished for each in senders):
            try:
                self._read(STEP_S)
                self._on_step(self._timeline, (time.monotonic_ns() - start_ns) / SECOND_NS)
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True
                self._timeline.end_at(time.monotonic_ns())
                self._tell(Stop(), senders)

    def _until_received(self) -> None:
        """Wait until the receivers have all messages, or none comes any more."""
        timeline = self._timeline
        received, quiet_s = timeline.received, time.monotonic() + QUIET_S
        while timeline.received < timeline.expected and time.monotonic() < quiet_s:
            self._read(STEP_S)
            if timeline.received > received:
                received, quiet_s = timeline.received, time.monotonic() + QUIET_S
        receivers = [each for each in self._processes if not each.share.sends_first]
        self._tell(Stop(), receivers)
        while not all(each.has_finished for each in receivers):
            self._read(STEP_S)

    def _tell(self, order: BeginLoad | Stop, processes: list[Process]) -> None:
        for each in processes:
            if not each.has_finished:
                each.pipe.send(order)

    def _read(self, patience_s: float) -> None:
        """Read what the processes report. Raise ClientError if one of them cannot go on."""
        by_pipe = {each.pipe: each for each in self._processes if not each.has_finished}
        for pipe in wait(list(by_pipe), patience_s):
            process = by_pipe[pipe]  # type: ignore[index]
            try:
                report = process.pipe.recv()
            except EOFError:
                process.process.join()
                raise ClientError(
                    f"a {process.share.role.value} ended with status {process.process.exitcode}"
                ) from None
            if isinstance(report, LoadSample):
                self._timeline.add(report)
            elif isinstance(report, Failed):
                raise ClientError(report.text, report.exit_status)
            process.is_ready = process.is_ready or isinstance(report, Ready)
            process.has_finished = isinstance(report, Finished)

    def _end(self) -> None:
        """End all processes; those that have not finished are killed."""
        for each in self._processes:
            if not each.has_finished:
                each.process.kill()
            each.process.join(KILL_S)
            each.pipe.close()
