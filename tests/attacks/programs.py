"""The processes of an attack: the broker, healthy clients and the attacker, known by their pids."""

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
"""A value for clear_refs that resets the kernel's peak of resident memory."""

END_S: Final = 10.0
OUTPUT_MAX: Final = 2**24

T = TypeVar("T")


class Failure(RuntimeError):  # noqa: N818 - names an event
    """A program that did not end as it should."""


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
    """Kill a process that this one started, unless it has ended."""
    if process.returncode is None:
        process.kill()
        await process.wait()


async def through(process: Process, reading: Awaitable[T], patience_s: float) -> T:
    """Read a program's output until it ends; raise Failure if it fails or takes too long."""
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
    """Run the attacker; return its result, or raise Failure if it fails or takes too long."""
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
        """Return whether a request that began after that moment has been answered."""
        return bool(self.samples) and self.samples[-1].began_s > moment_s and not self.errors

    async def finish(self) -> None:
        """End the program and read its remaining output; raise Failure if it fails."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await through(self._process, self._reading, END_S)

    async def end(self) -> None:
        """Stop reading, and kill the program if it still runs."""
        self._reading.cancel()
        await killed(self._process)


def resident_mib(pid: int, what: str = "VmRSS") -> float:
    """Return the resident memory of a process in MiB; of `VmHWM`, the peak."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / MEBIBYTE_IN_KIB
    raise Failure(f"the kernel does not tell {what} of process {pid}")


def peak_anew(pid: int) -> None:
    """Reset the peak of the resident memory of a process that this one started."""
    Path(f"/proc/{pid}/clear_refs").write_text(PEAK_ANEW)
