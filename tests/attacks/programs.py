"""The processes around an attack: the broker, healthy clients and the attacker, by their pids."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable
from pathlib import Path
from typing import Final, TypeVar

from tests.attacks.latency import Sample
from tests.attacks.plan import Reached, Site
from tests.interop.broker_process import ROOT

MEBIBYTE_IN_KIB: Final = 1024
PEAK_ANEW: Final = "5"
"""Written to clear_refs, it makes the kernel take the peak of resident memory anew."""

END_S: Final = 10.0
OUTPUT_MAX: Final = 2**24

T = TypeVar("T")


class Failure(RuntimeError):  # noqa: N818 - what happened
    """A program that ended otherwise than it should."""


async def started(module: str, *arguments: str) -> Process:
    """Start `python -m tests.attacks.MODULE` in a process of its own."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"tests.attacks.{module}", *arguments),
        cwd=ROOT,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=OUTPUT_MAX,
    )


async def killed(process: Process) -> None:
    """End a process of ours, unless it has ended."""
    if process.returncode is None:
        process.kill()
        await process.wait()


async def through(process: Process, reading: Awaitable[T], patience_s: float) -> T:
    """Wait until its output has been read and it has ended. Failure if it fails, or never does."""
    assert process.stderr is not None
    try:
        async with asyncio.timeout(patience_s):
            errors, output = await asyncio.gather(process.stderr.read(), reading)
            code = await process.wait()
    except TimeoutError:
        raise Failure(f"a program was not through after {patience_s:.0f} s") from None
    if code:
        raise Failure(errors.decode().strip().rpartition("\n")[2] or f"it ended with {code}")
    return output


async def attacked(name: str, site: Site, patience_s: float) -> Reached:
    """Run the attacker, and return what it reached. Failure if it fails, or takes longer."""
    process = await started("attacker", name, site.encoded())
    try:
        assert process.stdout is not None
        return Reached.decoded((await through(process, process.stdout.read(), patience_s)).decode())
    finally:
        await killed(process)


class Probe:
    """A healthy client that makes one request after another in a process of its own."""

    def __init__(self, process: Process) -> None:
        self.samples: Final[list[Sample]] = []
        self.errors: Final[list[str]] = []
        self._process: Final = process
        self._reading: Final = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, kind: str, port: int, *, has_users: bool) -> Probe:
        extra = ["--with-user"] if has_users and kind != "http" else []
        return cls(await started("probes", kind, str(port), *extra))

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            began_s, took_ms, error = json.loads(line)
            self.samples.append(Sample(began_s, took_ms))
            if error:
                self.errors.append(error)

    def served_since(self, moment_s: float) -> bool:
        """Return whether a request has been answered that was begun behind that moment."""
        return bool(self.samples) and self.samples[-1].began_s > moment_s and not self.errors

    async def finish(self) -> None:
        """Have it end, and read what it still has to tell. Failure if it fails."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await through(self._process, self._reading, END_S)

    async def end(self) -> None:
        """Leave nothing of it."""
        self._reading.cancel()
        await killed(self._process)


def resident_mib(pid: int, what: str = "VmRSS") -> float:
    """Return resident memory of a process in MiB; of `VmHWM` the most there has been."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / MEBIBYTE_IN_KIB
    raise Failure(f"the kernel does not tell {what} of process {pid}")


def peak_anew(pid: int) -> None:
    """Have the kernel forget the peak of a process of ours."""
    Path(f"/proc/{pid}/clear_refs").write_text(PEAK_ANEW)
