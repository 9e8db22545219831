"""A broker process that is started, killed, told to stop, and started again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.interop.broker_process import READY, ROOT, forks_brokers, from_checkout
from tests.interop.preloaded_process import AwaitedProcess, PreloadedProcess

START_S: Final = 30.0
STOP_S: Final = 15.0
"""Maximum number of seconds for a stop; the broker promises ten."""

LINES_KEPT: Final = 200

STANDBY: Final = "standby of "
"""Beginning of the line by which a broker says that another one of its group leads."""

SQLITE: Final = "sqlite:///"
DEFAULT_STORE: Final = "sqlite:///data/store.db"


AnyProcess = asyncio.subprocess.Process | AwaitedProcess


class NotReady(RuntimeError):  # noqa: N818 - named for the broker's state
    """The broker ended, or took too long, before it was ready."""


@dataclass(frozen=True)
class Place:
    """The broker's program, store, folder and port, 0 for a free one.

    `settings` is the text of its settings file; `variables` are added to its environment. With
    `sources`, the program is the one in that folder, interpreted.
    """

    folder: Path
    store: str = DEFAULT_STORE
    compiled: bool = field(default_factory=lambda: not from_checkout())
    settings: str = ""
    port: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    sources: Path | None = None

    @property
    def is_sqlite(self) -> bool:
        return self.store.startswith(SQLITE)

    @property
    def is_forked(self) -> bool:
        """Return whether preloaded.py has the modules of the broker that is to be started."""
        return forks_brokers() and self.sources is None and self.compiled is not from_checkout()

    @property
    def database(self) -> Path:
        """Return the path of an SQLite store's file."""
        return self.folder / self.store.removeprefix(SQLITE)

    def command(self) -> list[str]:
        """Return how a user starts `jms-broker`."""
        if self._interpreted:
            return [sys.executable, "-m", "broker"]
        return [str(Path(sys.executable).with_name("jms-broker"))]

    def arguments(self) -> list[str]:
        """Write the settings file; return the arguments with which the broker is started."""
        config = self.folder / "broker.toml"
        config.write_text(self.settings)
        options = ["--port", str(self.port), "--config", str(config), "--store", self.store]
        return ["serve", *options]

    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("JMS_BROKER_") and name != "PYTHONPATH"
        }
        kept |= self.variables
        return kept | {"PYTHONPATH": str(self._interpreted)} if self._interpreted else kept

    @property
    def _interpreted(self) -> Path | None:
        """Return the folder of the sources that are interpreted, None for the installed program."""
        return self.sources or (None if self.compiled else ROOT)


class Server:
    """The broker at a place, one process after another. `port` is that of the latest."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.starts_ms: Final[list[float]] = []
        self.lines: Final[deque[str]] = deque(maxlen=LINES_KEPT)
        self.port = 0
        self.pid = 0
        self._process: AnyProcess | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self.stands_by: Final = asyncio.Event()
        """Set while it stands by: after the line that says so, until it is ready."""

    async def start(self, *, within: Sequence[str] = ()) -> None:
        """Start the broker as a child of the program `within`, and wait until it is ready."""
        await self.launch(within=within)
        await self.ready()

    async def launch(self, *, within: Sequence[str] = ()) -> None:
        """Start the broker, and do not wait for it."""
        self._started_at = time.monotonic()
        self._ready.clear()
        self.stands_by.clear()
        self.pid = 0
        self._process = await self._begun(within)
        self._reading = asyncio.create_task(self._read(self._process))

    async def _begun(self, within: Sequence[str]) -> AnyProcess:
        place = self.place
        command, arguments = place.command(), place.arguments()
        if place.is_forked and not within:
            return await AwaitedProcess.of(
                PreloadedProcess(
                    command, arguments, folder=place.folder, variables=place.environment()
                )
            )
        return await asyncio.create_subprocess_exec(
            *within,
            *command,
            *arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=place.folder,
            env=place.environment(),
            start_new_session=True,
        )

    async def ready(self) -> None:
        """Wait for the ready line; raise NotReady if none arrives."""
        assert self._reading is not None
        waiting = asyncio.create_task(self._ready.wait())
        await asyncio.wait(
            [waiting, self._reading], timeout=START_S, return_when=asyncio.FIRST_COMPLETED
        )
        if not waiting.done():
            waiting.cancel()
            await self.kill()
            raise NotReady("\n".join(self.lines))
        self.starts_ms.append((time.monotonic() - self._started_at) * 1000)

    async def _read(self, process: AnyProcess) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            text = line.decode(errors="replace").rstrip()
            self.lines.append(text)
            if text.startswith(STANDBY):
                self._ready.clear()
                self.stands_by.set()
            if ready := READY.match(text):
                self.port = urlsplit(ready["url"]).port or 0
                self.pid = int(ready["pid"])
                self.stands_by.clear()
                self._ready.set()

    # -- its end

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def leads(self) -> bool:
        """Return whether the broker has said that it is ready, and not that it stands by since."""
        return self.running and self._ready.is_set()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the broker, not to a program that it runs within."""
        assert self._process is not None
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.pid or self._process.pid, number)

    async def kill(self) -> int:
        """Send SIGKILL and wait for the end; return the exit code."""
        self._kill_all()
        return await self.wait()

    def _kill_all(self) -> None:
        """Kill the broker and the program around it: without its tracer it would live on."""
        assert self._process is not None
        if self.running:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def wait(self, patience_s: float = STOP_S) -> int:
        """Wait for the broker's end and return its exit code.

        After `patience_s` seconds, kill the broker and raise TimeoutError.
        """
        assert self._process is not None
        assert self._reading is not None
        try:
            async with asyncio.timeout(patience_s):
                code = await self._process.wait()
        except TimeoutError:
            self._kill_all()
            await self._process.wait()
            raise
        await self._reading
        return code

    async def stop(self) -> int:
        """Send SIGTERM and wait for the end; return the exit code."""
        self.signal(signal.SIGTERM)
        return await self.wait()

    async def close(self) -> None:
        """Kill the broker if it still runs."""
        if self.running:
            await self.kill()


def strace(*injections: str, log: Path | None = None, paths: Sequence[Path] = ()) -> list[str]:
    """Return the command to run a broker within, so that some of its system calls go wrong.

    An injection is `CALL:HOW`, as in `fdatasync:error=EIO:when=3+`. With `paths`, only calls on
    those files count.
    """
    calls = sorted(
        {call for injection in injections for call in injection.partition(":")[0].split(",")}
    )
    options = ["strace", "--quiet=all", "--follow-forks", "-ttt", "-e", f"trace={','.join(calls)}"]
    # strace 6.1 injects no signals at calls that seccomp selects for it
    if not paths and not any("signal=" in injection for injection in injections):
        options.append("--seccomp-bpf")
    for path in paths:
        options += ["-P", str(path)]
    for injection in injections:
        options += ["-e", f"inject={injection}"]
    return [*options, "-o", str(log or "/dev/null")]


def why_no_strace() -> str:
    """Return why nothing can be injected here; empty if it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(
        [*strace("sync:error=EIO"), "true"], capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()}"
