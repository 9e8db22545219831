"""A broker under test: started as a child process, read from /proc and stopped by its own pid."""

import os
import re
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.bench.disk import disk_folder
from tests.bench.places import BenchError
from tests.bench.syncs import Syncs

AMQP: Final = "amqp"
AMQPS: Final = "amqps"
WS: Final = "ws"
LOGINS: Final = "logins"
"""The kind of a listener of AMQP that lists PLAIN only, and knows one user."""

STOP_SECONDS: Final = 20.0
POLL_SECONDS: Final = 0.002  # as exact is the time of a start
CLOCK_OF_ALL_THREADS: Final = 2  # CPUCLOCK_SCHED, the scheduler's own count in nanoseconds


class Server(ABC):
    """One broker. Its output goes to a log file, which is searched for its line of readiness."""

    name: str
    ready: re.Pattern[str]  # has a group for each port in the line, named by the kind of listener
    has_topics = True
    is_ours = False  # this project's broker
    kinds: frozenset[str] = frozenset({AMQP})  # of listeners that it can have
    idle_connections = 10_000  # number that the row of idle connections opens
    start_seconds = 90.0  # limit for a start

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.folder = Path()  # for the files of the process that runs now
        self.wanted = frozenset({AMQP})  # kinds of listeners, to be set before the start
        self.ports: dict[str, int] = {}  # by kind
        self.ready_seconds = 0.0  # from the start of the process to its line of readiness
        self.ready_cpu_seconds = 0.0
        self._command: list[str] = []  # what runs now
        self._starts = 0  # in this folder
        self._syncs: Syncs | None = None
        self._began = 0.0

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command to run."""

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the process, besides those of its parent."""
        return {}

    @abstractmethod
    def manner(self) -> str:
        """Return how the broker's code runs: compiled, interpreted, or another word for it."""

    @property
    def port(self) -> int:
        return self.ports[AMQP]

    @property
    def peer(self) -> str:
        return self.peer_over(AMQP)

    def peer_over(self, kind: str) -> str:
        """Return the address of the listener of that kind."""
        return f"127.0.0.1:{self.ports[kind]}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start a fresh process and return when it is ready for connections."""
        self._temporary = tempfile.TemporaryDirectory(prefix="bench-", dir=disk_folder())
        self.folder = Path(self._temporary.name)
        self.folder.chmod(0o711)
        self.ports = {}
        self._syncs = Syncs.of(self.folder)
        self._starts = 0
        try:
            self._command = self.command()
            self._run()
        except BaseException:
            self.stop()
            raise

    def restart(self) -> None:
        """End the process, if it is there, and start it again with the files and ports it had."""
        if self._process is not None:
            self._end(self._process)
        self._run()

    def _run(self) -> None:
        """Start the process, and wait until it is ready."""
        self._starts += 1
        log = self.folder / ("output.log" if self._starts == 1 else f"output-{self._starts}.log")
        self._process = self._launched(log)
        self._await_ready(log)

    def _launched(self, log: Path) -> subprocess.Popen[bytes]:
        self._began = time.monotonic()
        with log.open("wb") as output:
            return subprocess.Popen(
                self._command,
                cwd=self.folder,
                env=os.environ | self.syncs.environment | self.variables(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _await_ready(self, log: Path) -> None:
        assert self._process is not None
        deadline = time.monotonic() + self.start_seconds
        while time.monotonic() < deadline:
            text = log.read_text(errors="replace")
            found = self.ready.search(text)
            if found is not None:
                self.ready_seconds = time.monotonic() - self._began
                self.ready_cpu_seconds = self.cpu_seconds()
                given = found.groupdict().items()
                self.ports |= {kind: int(port) for kind, port in given if port is not None}
                return
            if self._process.poll() is not None:
                raise BenchError(f"{self.name} ended at once:\n{text[-2000:]}")
            time.sleep(POLL_SECONDS)
        raise BenchError(f"{self.name} is not ready after {self.start_seconds:.0f} s")

    def stop(self) -> None:
        """Ask the process to end; kill it if it does not."""
        process, self._process = self._process, None
        if process is not None:
            self._end(process)
        if self._syncs is not None:
            self._syncs.close()
            self._syncs = None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"{self.name} did not stop; killed", file=sys.stderr)
            process.kill()
            process.wait()

    @property
    def syncs(self) -> Syncs:
        """Return the counter of the syncs of all the broker's processes."""
        assert self._syncs is not None, "not started"
        return self._syncs

    def processes(self) -> list[int]:
        """Return the pids of all processes that do the broker's work."""
        return [self.pid]

    def cpu_seconds(self) -> float:
        """Return user and system time of all threads so far, from the kernel's nanosecond clock."""
        spent = 0.0
        for pid in self.processes():
            with suppress(OSError):  # the process has ended meanwhile
                spent += cpu_seconds_of(pid)
        return spent

    def rss_mib(self) -> float:
        """Return the resident memory now, in MiB."""
        return rss_mib_of(self.pid)


def cpu_seconds_of(pid: int) -> float:
    """Return user and system time of all threads of a process. OSError if it has ended."""
    return time.clock_gettime(~pid << 3 | CLOCK_OF_ALL_THREADS)


def rss_mib_of(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
