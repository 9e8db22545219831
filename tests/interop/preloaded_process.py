"""A broker in a process that preloaded.py has forked, for tests that start many.

Its process is a child of another one, so it is no `subprocess.Popen`; both classes offer the part
of it, and of asyncio's own processes, that tests use.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.interop.preloaded import Loaded, place_of_calls
from tests.interop.preloaded_call import ANSWER_BYTES, call

STANDARD_INPUT: Final = 0


class PreloadedProcess:
    """A running broker.

    `output` is what it prints, as a descriptor that its user closes. `ended` is a socket that is
    readable once it has ended.

    It leads a group of processes, so that a signal to the group reaches the shards that it starts.
    """

    def __init__(
        self,
        command: Sequence[str],
        arguments: Sequence[str],
        *,
        folder: Path,
        variables: Mapping[str, str],
    ) -> None:
        """Start `jms-broker`, which a user starts by `command`, with `arguments` in `folder`."""
        self.returncode: int | None = None
        self.ended: Final = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # a test need not look at the end of each broker that it has killed
        weakref.finalize(self, self.ended.close)
        self.ended.connect(place_of_calls(Loaded.BROKER))
        self.output, written = os.pipe()
        self.pid: Final = call(
            self.ended,
            command,
            arguments,
            folder=str(folder),
            variables=variables,
            files=(STANDARD_INPUT, written, written),
        )
        os.close(written)

    def poll(self) -> int | None:
        """Return the exit code as Popen has it, minus the signal that killed it, or None."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code; raise TimeoutExpired if it still runs after `timeout` seconds."""
        if self.returncode is None:
            self.ended.settimeout(timeout)
            try:
                self.returncode = int(self.ended.recv(ANSWER_BYTES))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("jms-broker", timeout or 0) from None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            # it can have ended without an answer yet
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class AwaitedProcess:
    """A `PreloadedProcess` for coroutines, made by `of`."""

    def __init__(self, process: PreloadedProcess, stdout: asyncio.StreamReader) -> None:
        self._process: Final = process
        self.stdout: Final = stdout
        self.pid: Final = process.pid
        self._waiting: Final = asyncio.Lock()

    @classmethod
    async def of(cls, process: PreloadedProcess) -> AwaitedProcess:
        """Return the running `process` with a reader of what it prints."""
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(process.output, "rb")
        )
        return cls(process, reader)

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    async def wait(self) -> int:
        """Return the exit code once the broker has ended."""
        async with self._waiting:
            while (code := self._process.poll()) is None:
                await self._answered()
        return code

    async def _answered(self) -> None:
        loop, answered = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._process.ended, answered.set)
        try:
            await answered.wait()
        finally:
            loop.remove_reader(self._process.ended)
