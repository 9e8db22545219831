"""Power cuts: a broker's writes recorded by strace, and images of what a cut may leave of them.

    python -m tests.faults.power_cut --images 10000 --seed 1

Each image follows from a prefix of all events. Synced writes are there; others are kept, dropped,
or torn at 512 bytes. The real store opens the image, and its content is compared with what clients
had been told when the power failed. A line of counts is printed; the exit status is 1 unless all
are 0.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.faults import power_trace
from tests.faults.power_check import COUNTED, Findings, Judge, findings_of
from tests.faults.power_image import Cut, Disk, Image
from tests.faults.power_trace import Event, Heard, Said
from tests.faults.power_wire import History
from tests.faults.power_workload import Numbers, Workload
from tests.interop.broker_process import BrokerProcess, command

DATABASE: Final = "store.db"
# without an audit: the images have one folder, and no promise is about its records
SETTINGS: Final = 'store = "sqlite:///data/store.db"\naudit.enabled = false\n'
PID: Final = re.compile(r" pid=(\d+)$", re.MULTILINE)

CUTS: Final = tuple(Cut)


class TracedBroker:
    """A broker under strace. strace takes no signals: they are sent to the broker itself."""

    def __init__(self, folder: Path, trace: Path, jms_broker: Sequence[str]) -> None:
        config = folder / "broker.toml"
        serving = [*jms_broker, "serve", "--port", "0", "--config", str(config)]
        program = [*power_trace.command(trace), *serving]
        self._process: Final = BrokerProcess(folder, settings=SETTINGS, program=program)
        self.port: Final = urlsplit(self._process.url).port or 0
        found = PID.search(self._process.log.read_text())
        assert found is not None
        self._pid: Final = int(found[1])

    def end(self, number: signal.Signals) -> None:
        """Send the broker that signal and wait for its end; the trace is complete afterwards."""
        os.kill(self._pid, number)
        self._process.wait()


ENDS: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
"""The signals that end the successive runs on one store."""


@dataclass
class Recording:
    """The events of successive runs on one store."""

    events: list[Event] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    "Events at which a stopping broker had no client left, so that nothing was in flight."

    async def record(
        self, folder: Path, *, seed: int, size: int, program: Sequence[str] = ()
    ) -> None:
        """Run clients and a broker, and end it, several times on one store, new at first."""
        numbers = Numbers(seed)
        for run, end in enumerate(ENDS):
            trace = folder / f"trace{run}"
            broker = TracedBroker(folder, trace, program or command())
            workload = Workload(broker.port, numbers, size=size)
            await workload.run(run, time.time_ns() // 1_000_000)
            await asyncio.to_thread(broker.end, end)
            self.events += power_trace.events_of(trace, folder / "data", f"run {run}: ")
            trace.unlink()
            if end is signal.SIGTERM:
                self.stops.append(last_word(self.events))


def last_word(events: Sequence[Event]) -> int:
    """Return the index behind the last event in which clients said or were told something."""
    return max(at for at, event in enumerate(events) if isinstance(event, Said | Heard)) + 1


@dataclass(frozen=True)
class Shot:
    """One image to make: the event before which the power fails, the fate of unsynced writes."""

    at: int
    cut: Cut
    seed: int


def shots_of(events: Sequence[Event], images: int, seed: int) -> list[Shot]:
    """Return `images` shots, spread over all events that change the disk or inform a client."""
    draw = random.Random(seed)
    places = [at + 1 for at, event in enumerate(events) if not isinstance(event, Heard)]
    shots = [
        Shot(draw.choice(places), draw.choice(CUTS), draw.getrandbits(32)) for _ in range(images)
    ]
    return sorted(shots, key=lambda shot: shot.at)


@dataclass
class Result:
    """The findings and figures of all images together."""

    findings: Findings = field(default_factory=Findings)
    images: int = 0
    several: int = 0
    "Number of images made when something had not been synced."
    acknowledged: int = 0
    "Number of promised copies that were looked for in the images."
    seconds: float = 0.0

    def broken(self) -> set[str]:
        """Return the promises that were broken."""
        return set(self.findings.counts)

    def line(self) -> str:
        """Return the verdict in one line."""
        counts = ", ".join(f"{name} {self.findings.counts[name]}" for name in COUNTED)
        verdict = "FAILED" if self.broken() else "passed"
        rate = self.images / self.seconds if self.seconds else 0.0
        return (
            f"{verdict}: F3 power cut: {self.images} images ({self.several} with writes not"
            f" synced), {self.acknowledged} promises looked for: {counts}; {rate:.0f} images/s"
        )

    def examples(self) -> list[str]:
        return [f"    {kind}: {what}" for kind, what in sorted(self.findings.examples.items())]


async def judge_images(
    recording: Recording, shots: Sequence[Shot], folder: Path, *, step: Callable[[], None]
) -> Result:
    """Make each image in `folder`, open it, and judge its content; `step` follows each image."""
    result = Result()
    events = recording.events
    judge = Judge(History(events), recording.stops)
    disk, at = Disk(), 0
    began = time.monotonic()
    for shot in shots:
        while at < shot.at:
            disk.apply(events[at])
            at += 1
        result.several += disk.has_pending()
        write_image(folder, disk.image(shot.cut, random.Random(shot.seed)))
        found = await findings_of(folder, DATABASE, shot.at, judge)
        for kind, what in found.examples.items():
            found.examples[kind] = f"{what}; cut {shot.at}, not synced: {shot.cut.value}"
        result.findings.merge(found)
        result.images += 1
        result.acknowledged += judge.acknowledged(shot.at)
        step()
    result.seconds = time.monotonic() - began
    return result


def write_image(folder: Path, image: Image) -> None:
    """Make `folder` contain the files of `image` and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in image.items():
        (folder / name).write_bytes(content)


def scratch() -> Path | None:
    """Return a folder whose files need no disk, None if there is none."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None


async def run(
    *,
    images: int,
    seed: int,
    size: int,
    program: Sequence[str] = (),
    step: Callable[[], None] = lambda: None,
) -> Result:
    """Record one workload on the broker `program`, and judge `images` images of it.

    `step` is called after each image.
    """
    with (
        tempfile.TemporaryDirectory() as recorded,
        tempfile.TemporaryDirectory(dir=scratch()) as made,
    ):
        recording = Recording()
        await recording.record(Path(recorded), seed=seed, size=size, program=program)
        shots = shots_of(recording.events, images, seed)
        return await judge_images(recording, shots, Path(made) / "image", step=step)


def main() -> int:
    """Print the verdict; return the exit status."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--images", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--size", type=int, default=6, help="how much clients do")
    given = options.parse_args()
    reason = power_trace.reason_not_to()
    if reason is not None:
        print(f"SKIPPED: F3 power cut: {reason}")
        return 0
    result = asyncio.run(run(images=given.images, seed=given.seed, size=given.size))
    print(result.line(), *result.examples(), sep="\n")
    return 1 if result.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
